"""The shared state of one request while it is handled."""

from msgspec import Struct

from dragoman.agent import Runtime
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.conversation_recorder import ConversationRecorder
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange
from dragoman.wire.json_stream import ArrayFramer


class CallContext(Struct):
    """What every call of an upstream needs: for whom it is made, and the record of it."""

    request: ClientRequest
    record: Record

    @property
    def has_started(self) -> bool:
        """Whether the client has received a part of the response."""
        return False


class RequestContext(CallContext):
    """One request of a client and everything that handling it needs."""

    exchange: Exchange
    """Writes the response."""
    recorder: ConversationRecorder | None = None
    """Saves the reply in its conversation, if it belongs to one."""
    runtime: Runtime | None = None
    """Runs the steps of a request that is handled in the background."""
    framer: ArrayFramer | None = None
    """Frames the events of a stream that is sent as a JSON array."""
    held_events: bytes = b""
    """Events before the first one with content, while the stream has not started."""
    has_sent: bool = False
    """Whether something was sent in the stream since the last heartbeat."""

    @property
    def has_started(self) -> bool:
        """Whether the client has received a part of the response."""
        return self.exchange.started


def build_program_context(owner: str = "", record: Record | None = None) -> CallContext:
    """Return the context of calls that the program makes itself, not for a client's request."""
    return CallContext(ClientRequest(dialect="", call=Call(b""), owner=owner), record or Record(owner=owner))
