"""Translate a whole reply from one dialect to another."""

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.response import Response
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.history_parts import wrap_free_text
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_adapter import (
    CUT_OFF,
    NO_CONTEXT,
    NO_OBJECT,
    ONE_CALL,
    REFUSAL_AS_TEXT,
    Context,
    ReplyAdapter,
    is_wrapped_otherwise,
)
from dragoman.interpreter.reply_fields import can_cite, drop_reply_fields
from dragoman.interpreter.text_calls.detector import detect_calls
from dragoman.interpreter.undo import generate_id, restore_call


class Rendered(Struct, frozen=True):
    """A translated reply and what it could not say."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    response: Response | None = None
    """The reply in the core; None when its bytes were passed on unread."""


def translate_response(body: bytes, source: str, target: str, context: Context = NO_CONTEXT) -> Rendered:
    """Say a whole reply of `source` in `target`, the client's dialect."""
    here, there = dialect_named(source), dialect_named(target)
    if here is there and context.passes and not is_wrapped_otherwise(here, body, context):
        return Rendered(body)
    response = here.parse_response(body)
    ledger = Ledger(here.reply_pointers, body, exact=not response.spelling)
    detector = context.call_detector(there, ledger)
    if detector is not None:
        response = detect_calls(response, detector)
    if here is there:
        response = _restored(response, context)
    else:
        response = ResponseAdapter(here, there, ledger, context.reply_options()).adapt(response, context)
    return Rendered(there.build_response(response, context.client_request()), ledger.losses(), response)


def _restored(response: Response, context: Context) -> Response:
    """Return a reply in the caller's terms."""
    parts = [restore_call(part, context.undo) if type(part) is ToolCall else part for part in response.parts]
    created = context.now if response.created is None else response.created
    return structs.replace(response, parts=tuple(parts), created=created)


class ResponseAdapter(ReplyAdapter):
    """Adapts a whole reply part by part."""

    def adapt(self, response: Response, context: Context) -> Response:
        """Return the reply as the client can be told it; raise the `Problem` of one that cannot."""
        undo = context.undo
        restores = undo.arguments or undo.names or undo.custom
        if not response.id:
            # The id is made of all that the reply says.
            response, restores = _restored(response, context), None
            reply_id = generate_id(self.client.reply_prefix, self.options.salt, *map(repr, replay(response)))
            response = structs.replace(response, id=reply_id)
        self.reply_id = response.id
        adapted: list[AnyPart] = []
        for part in response.parts:
            if type(part) is ToolCall:
                self._adapt_call(restore_call(part, undo) if restores else part, adapted)
            elif type(part) is Text or not (why := self.reason_to_leave_out(part)):
                self._adapt_part(part, adapted)
            else:
                self._leave_out(part, why)
        if response.extras is not None:
            drop_reply_fields(self, response.extras.fields)
        return Response(
            id=response.id,
            model=response.model,
            parts=tuple(adapted),
            usage=None if response.usage is None else self.adapt_usage(response.usage),
            finish=self.adapt_finish(response.finish),
            created=context.now if response.created is None else response.created,
        )

    def _leave_out(self, part: AnyPart, why: str) -> None:
        if part.extras is not None:
            self.drop_fields(part.where, part.extras.fields)
        self.ledger.dropped(part.where, why)

    def _adapt_call(self, call: ToolCall, adapted: list[AnyPart]) -> None:
        self.calls += 1
        if self.calls > 1 and self.options.single:
            self._leave_out(call, ONE_CALL)
            return
        if call.extras is not None:
            self.drop_fields(call.where, call.extras.fields)
        holds, arguments, form, signature = self.holds, call.arguments, call.form, call.signature
        call_id = self.call_id(call)
        is_free_text = form == "text" and not holds.custom_calls
        if signature is not None:
            # A free-form call that is told as a function's holds no signature of a call.
            signature = self._hold(signature, call, Text if is_free_text else ToolCall, adapted)
        if is_free_text:
            arguments, form = wrap_free_text(arguments), "json"
        elif holds.object_arguments:
            told = self.object_arguments(arguments, call.where, call.complete)
            if told is None:
                self.ledger.dropped(call.where, NO_OBJECT if call.complete else CUT_OFF)
                return
            arguments = told
        adapted.append(
            structs.replace(call, id=call_id, arguments=arguments, form=form, signature=signature, extras=None)
        )

    def _adapt_part(self, part: AnyPart, adapted: list[AnyPart]) -> None:
        if type(part) is Text:
            if part.citations:
                told = [one for number, one in enumerate(part.citations) if can_cite(self, one, part, number)]
                part = structs.replace(part, citations=tuple(told))
        elif type(part) is Refusal and not self.holds.refusal:
            self.ledger.approximated(part.where, REFUSAL_AS_TEXT)
            part = Text(text=part.text, where=part.where, signature=part.signature, extras=part.extras)
        if self.calls:
            self.report_order(part)
        signature, extras, held = part.signature, part.extras, None
        if signature is not None:
            held = self._hold(signature, part, type(part), adapted)
        elif type(part) is Reasoning:
            held = self.mark_unsigned()
        if extras is not None:
            is_carried = type(part) is Reasoning and held is not None and held is not signature
            self.drop_fields(part.where, extras.fields, signature if is_carried else None)
        adapted.append(
            part if held is signature and extras is None else structs.replace(part, signature=held, extras=None)
        )

    def _hold(
        self, signature: Signature, part: AnyPart, kind: type[AnyPart], adapted: list[AnyPart]
    ) -> Signature | None:
        """Return a signature as a part holds it; reasoning before it carries one that a call cannot hold."""
        held = self.hold_signature(signature, kind, part)
        if held is None:
            carrier = self.carry_signature(signature, part, is_call=kind is ToolCall)
            if carrier is not None:
                adapted.append(Reasoning(signature=carrier))
        return held
