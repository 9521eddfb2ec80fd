"""Fit a whole reply to the client's dialect.

One all of whose parts pass as they are, which most do, is taken at once; what is said of it is what is said of its
events. Any other is replayed and collected again.
"""

from msgspec import structs

from dragoman.core.events import Failed
from dragoman.core.parts import AnyPart, Signature, Text, ToolCall
from dragoman.core.response import Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.interpreter.reply import ReplyFitter
from dragoman.interpreter.reply_fields import book_usage
from dragoman.wire import json


class WholeFitter(ReplyFitter):
    """Fits a whole reply, once."""

    def fit(self, response: Response) -> Response:
        """Return a reply as the client's dialect can say it; raise the `Problem` of one that it cannot."""
        if response.id and all(map(self._passes, response.parts)):
            return self._at_once(response)
        return collect(fitted for event in replay(response) for fitted in self.feed(event))

    def _at_once(self, response: Response) -> Response:
        self._reply_id = response.id
        parts = tuple([self._passed(part) for part in response.parts])
        if response.extras is not None:
            for field, raw in response.extras.fields.items():
                self._native(field, raw)
        usage = self._counted(response.usage) if response.usage is not None else None
        finished = self._finished(response.finish)
        if isinstance(finished, Failed):
            raise finished.problem
        return structs.replace(response, parts=parts, usage=usage, finish=finished.finish, extras=None)

    def _counted(self, usage: Usage) -> Usage:
        book_usage(usage, self._holds, self._ledger)
        return structs.replace(usage, extras=None) if usage.extras is not None else usage

    def _passes(self, part: AnyPart) -> bool:
        """Tell whether a part can be told as it is, but for the id of a call."""
        if part.extras is not None or (part.signature is not None and not self._keeps(part.signature, part)):
            return False
        match part:
            case Text(citations=citations):
                return not citations
            case ToolCall(form="json", complete=complete, arguments=arguments):
                # Of a call that cannot be taken back the arguments must be an object.
                return not self._single and (
                    not self._holds.object_arguments or (complete and (not arguments or json.is_object(arguments)))
                )
            case _:
                return False

    def _keeps(self, signature: Signature, part: AnyPart) -> bool:
        """Tell whether the client holds a call's signature as its own vendor wrote it."""
        native = signature.issuer == self._client.issuer or signature.issuer in self._holds.call_issuers
        return native and isinstance(part, ToolCall) and "call" in self._holds.signatures

    def _passed(self, part: AnyPart) -> AnyPart:
        if not isinstance(part, ToolCall):
            self._note_order(part)
            return part
        self._calls += 1
        call_id = self._call_id(part)
        return part if call_id == part.id else structs.replace(part, id=call_id)
