"""Translate a whole reply from one dialect to another."""

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, FoundTools, Reasoning, Refusal, Search, Signature, Text, ToolCall, ToolSearch
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.call_wrapper import WRAPPER_NAMES, expand_calls
from dragoman.interpreter.deferred_replies import adapt_search_reply
from dragoman.interpreter.history_parts import wrap_free_text
from dragoman.interpreter.ids import generate_id
from dragoman.interpreter.ledger import open_reply_ledger
from dragoman.interpreter.reply_adapter import (
    CUT_OFF,
    NO_CONTEXT,
    NOT_AN_OBJECT,
    ONE_CALL,
    REFUSAL_AS_TEXT,
    Context,
    ReplyAdapter,
    has_other_envelope,
)
from dragoman.interpreter.reply_fields import can_cite, drop_reply_fields
from dragoman.interpreter.searches import (
    ReplySearches,
    arrange_parts,
    drop_search_fields,
    join_texts,
    place_searches,
)
from dragoman.interpreter.text_call_detector import detect_calls
from dragoman.interpreter.undo import restore_call
from dragoman.wire.json import REPLY_NESTED_TOO_DEEPLY, is_nested_too_deeply


class TranslatedResponse(Struct, frozen=True):
    """A translated reply and its losses."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    response: Response | None = None
    """The reply in the core; None if its bytes were forwarded without parsing."""


def translate_response(body: bytes, source: str, target: str, context: Context = NO_CONTEXT) -> TranslatedResponse:
    """Translate a whole reply of the dialect `source` to `target`, the client's dialect."""
    source_dialect, target_dialect = dialect_named(source), dialect_named(target)
    if is_nested_too_deeply(body):
        raise Problem("malformed_reply", REPLY_NESTED_TOO_DEEPLY)
    if source_dialect is target_dialect and context.passes and not has_other_envelope(source_dialect, body, context):
        return TranslatedResponse(body)
    response = source_dialect.parse_response(body)
    ledger = open_reply_ledger(source_dialect, body, exact=not response.spelling)
    detector = context.call_detector(target_dialect, ledger)
    if not WRAPPER_NAMES.isdisjoint([part.name for part in response.parts if type(part) is ToolCall]):
        response = expand_calls(response, ledger)
    if detector is not None:
        response = detect_calls(response, detector)
    if source_dialect is target_dialect:
        response = _restore_reply(response, context)
    else:
        response = ResponseAdapter(source_dialect, target_dialect, ledger, context.reply_options()).adapt(
            response, context
        )
    return TranslatedResponse(
        target_dialect.build_response(response, context.client_request()), ledger.losses(), response
    )


def _restore_reply(response: Response, context: Context) -> Response:
    """Return a reply with the client's own tool names and arguments, and a creation time."""
    parts = [restore_call(part, context.undo) if type(part) is ToolCall else part for part in response.parts]
    created = context.now if response.created is None else response.created
    return structs.replace(response, parts=tuple(parts), created=created)


class ResponseAdapter(ReplyAdapter):
    """Adapts a whole reply part by part."""

    _searches: ReplySearches | None = None

    def adapt(self, response: Response, context: Context) -> Response:
        """Return the reply as the client's dialect can express it; raise a `Problem` for an unknown finish reason."""
        undo = context.undo
        restores = undo.arguments or undo.names or undo.custom or undo.natives
        if not response.id:
            # The id is hashed from the whole reply.
            response, restores = _restore_reply(response, context), None
            reply_id = generate_id(self.client.reply_prefix, self.options.salt, *map(repr, replay(response)))
            response = structs.replace(response, id=reply_id)
        self.reply_id = response.id
        adapted: list[AnyPart] = []
        parts = response.parts
        if self.options.searches and self.capabilities.block_citations:
            parts = arrange_parts(parts, self.ledger, infers=not self.source.capabilities.searches)
        elif self.joins_texts and Search in map(type, parts):
            parts = join_texts(parts, self.ledger)
        elif self.capabilities.searches and Search in map(type, parts):
            parts = place_searches(parts)
        for part in parts:
            if type(part) is ToolCall:
                self._adapt_call(restore_call(part, undo) if restores else part, adapted)
            elif type(part) is Text or not (reason := self.find_drop_reason(part)):
                self._adapt_part(part, adapted)
            else:
                self._drop_part(part, reason)
        searches = self._searches or (ReplySearches(self) if self.cited_pages else None)
        if searches is not None:
            adapted += searches.finish()
        if response.extras is not None:
            drop_reply_fields(self, response.extras.fields)
        usage = None if response.usage is None else self.adapt_usage(response.usage)
        return Response(
            id=response.id,
            model=response.model,
            parts=tuple(adapted),
            usage=usage if searches is None else searches.count(usage),
            finish=self.adapt_finish(response.finish),
            created=context.now if response.created is None else response.created,
        )

    def _drop_part(self, part: AnyPart, reason: str) -> None:
        if part.extras is not None:
            self.drop_fields(part.where, part.extras.fields)
        if not (type(part) is Search and part.places):  # the leaves of the metadata it was read from are reported
            self.ledger.report_dropped(part.where, reason)

    def _adapt_call(self, call: ToolCall, adapted: list[AnyPart]) -> None:
        self.call_count += 1
        if self.call_count > 1 and self.options.single_call:
            self._drop_part(call, ONE_CALL)
            return
        if call.extras is not None:
            self.drop_fields(call.where, call.extras.fields)
        capabilities, arguments, form, signature = self.capabilities, call.arguments, call.form, call.signature
        call_id = self.assign_call_id(call)
        is_free_text = form == "text" and not capabilities.custom_calls
        if signature is not None:
            # A free-form call that is sent as a function call cannot hold the signature of a call.
            signature = self._adapt_part_signature(signature, call, Text if is_free_text else ToolCall, adapted)
        if call.native:
            arguments = self.fit_native_arguments(call)
        elif is_free_text:
            arguments, form = wrap_free_text(arguments), "json"
        elif capabilities.object_arguments:
            checked = self.ensure_object_arguments(arguments, call.where, call.complete)
            if checked is None:
                self.ledger.report_dropped(call.where, NOT_AN_OBJECT if call.complete else CUT_OFF)
                return
            arguments = checked
        adapted.append(
            structs.replace(call, id=call_id, arguments=arguments, form=form, signature=signature, extras=None)
        )

    def _adapt_part(self, part: AnyPart, adapted: list[AnyPart]) -> None:
        if type(part) is Search:
            self._adapt_search(part, adapted)
            return
        if type(part) is Text:
            if part.citations:
                citations = [one for number, one in enumerate(part.citations) if can_cite(self, one, part, number)]
                part = structs.replace(part, citations=tuple(citations))
        elif type(part) is Refusal and not self.capabilities.refusal:
            self.ledger.report_approximated(part.where, REFUSAL_AS_TEXT)
            part = Text(text=part.text, where=part.where, signature=part.signature, extras=part.extras)
        elif isinstance(part, ToolSearch | FoundTools):
            part = adapt_search_reply(part, self)
        if self.call_count:
            self.report_order(part)
        signature, extras, held = part.signature, part.extras, None
        if signature is not None:
            held = self._adapt_part_signature(signature, part, type(part), adapted)
        elif type(part) is Reasoning:
            held = self.seal_unsigned(part)
        if extras is not None:
            is_held = type(part) is Reasoning and held is not None
            self.drop_fields(part.where, extras.fields, signature if is_held else None)
        adapted.append(
            part if held is signature and extras is None else structs.replace(part, signature=held, extras=None)
        )

    def _adapt_search(self, search: Search, adapted: list[AnyPart]) -> None:
        if search.extras is not None:
            drop_search_fields(self, search, search.extras.fields)
        if self._searches is None:
            self._searches = ReplySearches(self)
        whole = self._searches.add(search)
        if whole is not None:
            self.report_order(whole)
            adapted.append(whole)

    def _adapt_part_signature(
        self, signature: Signature, part: AnyPart, kind: type[AnyPart], adapted: list[AnyPart]
    ) -> Signature | None:
        """Return the signature that a part holds; one that a call cannot hold goes on a reasoning part before it."""
        held = self.adapt_signature(signature, kind, part)
        if held is None:
            job_runner = self.seal_for_call(signature, part, is_call=kind is ToolCall)
            if job_runner is not None:
                adapted.append(Reasoning(signature=job_runner))
        return held
