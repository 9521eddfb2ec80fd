"""What was said of an answer that is not whole: read from its events, and kept when no more will come."""

from msgspec import structs

from dragoman.agent.history import salvaged
from dragoman.core.events import Failed, Finished
from dragoman.core.parts import ToolCall
from dragoman.core.response import Finish
from dragoman.core.stream import Collector
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.sessions.naming import item_id
from dragoman.sessions.values import Item, Turn
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced

_SAID = ("output", "usage")
"""Members of an answer that grow while it is made."""


class SoFar:
    """Listens to the events of an answer."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._decoder = dialect_named(turn.dialect).decoder()
        self._collector = Collector()

    def feed(self, events: bytes) -> None:
        """Take the next events, in the client's dialect."""
        for event in self._decoder.feed(events):
            # How it ended is said by whoever keeps it.
            if not isinstance(event, Failed | Finished):
                self._collector.feed(event)

    def turn(self, status: str, message: str = "") -> Turn:
        """Return the turn with what was said, and how it ended; `message` is for one that failed."""
        turn, dialect = self._turn, dialect_named(self._turn.dialect)
        parts = salvaged(self._collector.parts, self._collector.growing)
        reply = spliced(turn.reply, "status", json.encode(status))
        if parts:
            self._collector.feed(Finished(Finish("stop")))
            body = dialect.build_response(structs.replace(self._collector.response(), parts=parts), None)
            for name in _SAID:
                found = lookup(body, f"/{name}")
                reply = spliced(reply, name, found[1]) if found is not None else reply
        if message:
            reply = spliced(reply, "error", json.encode({"code": "server_error", "message": message}))
        said = [Item(item_id(body), body, said=True) for body in dialect.turns.said(reply)]
        calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        return structs.replace(
            turn, reply=reply, status=status, items=(*turn.items, *said), calls={**turn.calls, **calls}
        )
