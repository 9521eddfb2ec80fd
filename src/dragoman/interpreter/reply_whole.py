"""Adapt a whole reply to the client's dialect.

Texts, reasoning and whole calls are adapted directly. A reply with any other part, with one that is left out or takes
another form, is replayed through `ReplyFitter` as events and collected again; both ways tell the same.
"""

from msgspec import structs

from dragoman.core.events import Failed
from dragoman.core.parts import AnyPart, Reasoning, Text, ToolCall
from dragoman.core.response import Response
from dragoman.core.stream import collect, replay
from dragoman.interpreter.carry import UNSIGNED, carried_item, sealed
from dragoman.interpreter.reply import SIGNED_WORDS, ReplyFitter
from dragoman.interpreter.reply_fields import UNKNOWN, book_usage
from dragoman.wire import json


class WholeFitter(ReplyFitter):
    """Adapts a whole reply, once."""

    def fit(self, response: Response) -> Response:
        """Return a reply as the client's dialect can say it; raise the `Problem` of one that it cannot."""
        if not response.id or not self._is_direct(response.parts):
            return collect([fitted for event in replay(response) for fitted in self.feed(event)])
        self._reply_id = response.id
        parts = self._adapt(response.parts)
        if response.extras is not None:
            for field, raw in response.extras.fields.items():
                self._native(field, raw)
        usage = response.usage
        if usage is not None and (usage.extras is not None or usage.cache_written):
            book_usage(usage, self._holds, self._ledger)
            usage = structs.replace(usage, extras=None)
        finished = self._finished(response.finish)
        if isinstance(finished, Failed):
            raise finished.problem
        return Response(
            id=response.id,
            model=response.model,
            parts=parts,
            finish=finished.finish,
            usage=usage,
            created=response.created,
        )

    def _is_direct(self, parts: tuple[AnyPart, ...]) -> bool:
        """Tell whether every part stays and keeps its form."""
        holds = self._holds
        for part in parts:
            if type(part) is ToolCall:
                if self._single or (part.form == "text" and not holds.custom_calls):
                    return False
                # Of a call that cannot be taken back the arguments must be an object.
                if holds.object_arguments and not (
                    part.complete and (not part.arguments or json.is_object(part.arguments))
                ):
                    return False
            elif type(part) is Text:
                if part.citations:
                    return False
            elif type(part) is not Reasoning or not holds.reasoning:
                return False
        return True

    def _adapt(self, parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
        """Return the parts with what the client's dialect holds of them, every call with its id there."""
        adapted: list[AnyPart] = []
        for part in parts:
            bare = part
            if part.extras is not None or part.signature is not None or type(part) is Reasoning:
                bare = self._without_foreign_fields(part, adapted)
            if type(bare) is ToolCall:
                self._calls += 1
                call_id = self._call_id(bare)
                adapted.append(bare if call_id == bare.id else structs.replace(bare, id=call_id))
            else:
                self._note_order(bare)
                adapted.append(bare)
        return tuple(adapted)

    def _without_foreign_fields(self, part: AnyPart, before: list[AnyPart]) -> AnyPart:
        """Return a part with its signature as the client holds it and no extras; what cannot be held is reported.

        A signature that a call cannot hold goes to reasoning `before` it.
        """
        kind, signature, held, item = type(part), part.signature, None, ""
        if signature is not None:
            word, redacted = SIGNED_WORDS.get(kind, ""), isinstance(part, Reasoning) and part.redacted
            held = self._held_signature(signature, word, redacted=redacted)
            if held is None and self._is_carried(word):
                before.append(Reasoning(signature=sealed(signature, "call", self._client.issuer)))
            elif held is None:
                self._drop_signature(signature, part, redacted=redacted)
            elif held is not signature and kind is Reasoning:
                item = carried_item(signature)
        elif kind is Reasoning and self._marks_unsigned:
            held = sealed(UNSIGNED, "self", self._client.issuer)
        if part.extras is not None:
            carried = json.encode(item) if item else b""
            for field, raw in part.extras.fields.items():
                if raw != carried:
                    self._ledger.value_dropped(self._field_place(part.where, field), raw, UNKNOWN)
        return structs.replace(part, signature=held, extras=None)
