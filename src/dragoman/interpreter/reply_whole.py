"""Fit a whole reply to the client's dialect.

One all of whose parts pass as they are, which most do, is taken at once; what is said of it is what is said of its
events. Any other is replayed and collected again.
"""

from msgspec import structs

from dragoman.core.events import Failed
from dragoman.core.parts import AnyPart, Signature, Text, ToolCall
from dragoman.core.response import Response
from dragoman.core.stream import collect, replay
from dragoman.interpreter.reply import ReplyFitter
from dragoman.interpreter.reply_fields import book_usage
from dragoman.wire import json


class WholeFitter(ReplyFitter):
    """Fits a whole reply, once."""

    def fit(self, response: Response) -> Response:
        """Return a reply as the client's dialect can say it; raise the `Problem` of one that it cannot."""
        if response.id and self._pass(response.parts):
            return self._at_once(response)
        return collect(fitted for event in replay(response) for fitted in self.feed(event))

    def _at_once(self, response: Response) -> Response:
        self._reply_id = response.id
        parts = self._told(response.parts)
        if response.extras is not None:
            for field, raw in response.extras.fields.items():
                self._native(field, raw)
        usage = response.usage
        if usage is not None:
            book_usage(usage, self._holds, self._ledger)
            usage = structs.replace(usage, extras=None) if usage.extras is not None else usage
        finished = self._finished(response.finish)
        if isinstance(finished, Failed):
            raise finished.problem
        return structs.replace(response, parts=parts, usage=usage, finish=finished.finish, extras=None)

    def _pass(self, parts: tuple[AnyPart, ...]) -> bool:
        """Tell whether all parts can be told as they are, but for the ids of calls."""
        objects = self._holds.object_arguments
        for part in parts:
            if part.extras is not None or (part.signature is not None and not self._keeps(part.signature, part)):
                return False
            if type(part) is Text:
                if part.citations:
                    return False
                continue
            if type(part) is not ToolCall or part.form != "json" or self._single:
                return False
            # Of a call that cannot be taken back the arguments must be an object.
            if objects and not (part.complete and (not part.arguments or json.is_object(part.arguments))):
                return False
        return True

    def _keeps(self, signature: Signature, part: AnyPart) -> bool:
        """Tell whether the client holds a call's signature as its own vendor wrote it."""
        native = signature.issuer == self._client.issuer or signature.issuer in self._holds.call_issuers
        return native and isinstance(part, ToolCall) and "call" in self._holds.signatures

    def _told(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Return the parts, every call with its id at the client."""
        told: list[AnyPart] = []
        for part in parts:
            if type(part) is ToolCall:
                self._calls += 1
                call_id = self._call_id(part)
                told.append(part if call_id == part.id else structs.replace(part, id=call_id))
            else:
                self._note_order(part)
                told.append(part)
        return tuple(told)
