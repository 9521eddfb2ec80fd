"""The steps that adapt a reply to the client's dialect, shared by whole replies and streams.

`Context` is what a reply answers: the client's request, the way back, the envelope. What the dialect cannot hold is
left out and reported, never bent. Counts, sources and fields that have no place at the client are reported leaf by
leaf. A leaf that says nothing (null, a count of zero, an empty text or container) is no loss, and neither is one that
says nothing of the answer: the kind of document (`object`, `type`, `role`), the number of a choice, a call or an event,
the time the reply was made.
"""

from msgspec import Struct, structs

from dragoman.core.parts import AnyPart, Media, Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.core.response import Finish, Usage
from dragoman.dialects.record import Dialect
from dragoman.interpreter.adaptation import ENVELOPES
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signature_envelopes import UNSIGNED, find_item_id, seal_signature
from dragoman.interpreter.text_calls.detector import CallDetector
from dragoman.interpreter.undo import NO_UNDO, Undo, build_call_id_stem, generate_id, to_plain_id
from dragoman.wire import json


class ReplyOptions(Struct, frozen=True):
    """What the client wants of a reply beside its dialect."""

    salt: str = ""
    """Keeps generated ids unique in a conversation."""
    single_call: bool = False
    """Only the first call is wanted."""
    is_whole: bool = False
    """The events of a stream are collected into one reply."""


class Context(Struct, frozen=True):
    """What a reply is an answer to: the client's request in the core, the way back, the envelope it wants."""

    request: Request | None = None
    undo: Undo = NO_UNDO
    form: str = ""
    now: int | None = None
    """The time a reply is said to be made at that tells none itself, in seconds since 1970."""

    @property
    def salt(self) -> str:
        """Keep minted ids unique in a conversation even where the upstream names no reply."""
        return str(len(self.request.messages)) if self.request is not None else ""

    @property
    def passes(self) -> bool:
        """Tell whether a reply in the client's own dialect can pass as it is."""
        return self.undo is NO_UNDO and not self.form

    def reply_options(self) -> ReplyOptions:
        """Return how the reply is adapted to the client."""
        return ReplyOptions(self.salt, self.undo.single_call)

    def call_detector(self, there: Dialect, ledger: Ledger) -> CallDetector | None:
        """Return what detects calls in the text of a model that has no others."""
        spoken = self.undo.text_calls
        return CallDetector(spoken, there.call_prefix, self.salt, ledger) if spoken is not None else None

    def client_request(self) -> Request | None:
        """Return the request the reply's writer looks at for what it must echo and how it must wrap."""
        if not self.form:
            return self.request
        request = self.request or Request(model="", messages=())
        return structs.replace(request, spelling=request.spelling | {self.form})


NO_CONTEXT = Context()


def has_other_envelope(dialect: Dialect, head: bytes, context: Context) -> bool:
    """Tell whether a reply stands in an envelope that the client did not use itself, or in none where it did."""
    if dialect.is_wrapped is None:
        return False
    spoke = context.request is not None and bool(context.request.spelling & ENVELOPES)
    return dialect.is_wrapped(head) is not spoke


CUT_OFF = "the call was cut off inside its arguments"
NOT_AN_OBJECT = "the call's arguments are not a JSON object"
ONE_CALL = "the client wants one call at a time: only the first is told"
REFUSAL_AS_TEXT = "a refusal is told as text"
UNKNOWN_TO_CLIENT = "not known to the client's dialect"
_NO_COUNT = "the client's dialect has no such count"
_SIGNATURE_KINDS: dict[type[AnyPart], str] = {ToolCall: "call", Reasoning: "reasoning", Text: "text", Media: "text"}
"""What `Holds.signatures` calls the parts that may be signed."""


class ReplyAdapter:
    """What is known of one reply on its way from one dialect to another, and the steps that adapt it."""

    reply_id = ""
    call_count = 0
    """How many calls there were."""
    has_lost_call = False
    """A call that the model ended could not be told."""
    _call_id_stem = ""
    has_sequence = False
    """A field says that a stop sequence was hit."""
    block_reason = b""
    """The field that says why the prompt was blocked."""

    def __init__(self, source: Dialect, client: Dialect, ledger: Ledger, options: ReplyOptions) -> None:
        self.source = source
        self.client = client
        self.capabilities = client.holds
        self.ledger = ledger
        self.options = options
        self._call_ids: set[str] = set()
        self.cited_pointers: dict[str, set[str]] = {}
        """By each pointer above it, what citations have told."""

    def find_drop_reason(self, part: AnyPart) -> str:
        """Tell why a part that is neither text nor call has no place at the client, "" if it has one."""
        match part:
            case Opaque(dialect=dialect) if dialect != self.client.name:
                return "a block only its own dialect understands"
            case Reasoning() if not self.capabilities.reasoning:
                return "the client's dialect has no place for reasoning"
            case Media() if not self.capabilities.media:
                return f"the client's dialect cannot hold {part.kind} in a reply"
            case _:
                return ""

    def assign_call_id(self, call: ToolCall) -> str:
        """Return the id at the client of the call that came last; report what of its name cannot be told."""
        call_id, holds = call.id, self.capabilities
        if not call_id:
            if not self._call_id_stem:
                self._call_id_stem = self.client.call_prefix + build_call_id_stem(self.reply_id, self.options.salt)
            call_id = f"{self._call_id_stem}{self.call_count:04x}"
        if holds.plain_ids:
            call_id = to_plain_id(call_id)
        if call_id in self._call_ids:
            words = f"another call has the id {call.id!r}: this one gets its own"
            self.ledger.report_approximated_field("call.id", words, call)
            call_id = generate_id(self.client.call_prefix, self.reply_id, self.options.salt, self.call_count, call_id)
        self._call_ids.add(call_id)
        if call.namespace and not holds.namespaces:
            self.ledger.report_dropped_field("call.namespace", "the client's dialect has no namespaces", call)
        return call_id

    def ensure_object_arguments(self, arguments: str, where: str, complete: bool) -> str | None:
        """Return the arguments of a call for a client that parses them; None if they are not an object."""
        if not complete:
            return None
        if not arguments or json.is_object(arguments):
            return arguments
        if arguments.strip() == "null":
            # Groq's word for no arguments.
            self.ledger.report_approximated(where, "null arguments are told as none")
            return "{}"
        self.has_lost_call = True
        return None

    def report_order(self, part: AnyPart) -> None:
        """Report a part that came after a call, where the client's dialect puts it before."""
        if self.call_count and not self.capabilities.order:
            self.ledger.report_approximated(part.where, "the client's dialect cannot say that it came after a call")

    def adapt_signature(self, signature: Signature, kind: type[AnyPart], part: AnyPart) -> Signature | None:
        """Return a signature as a part of this kind holds it, another vendor's in an envelope; None if it cannot."""
        client, holds, word = self.client, self.capabilities, _SIGNATURE_KINDS.get(kind, "")
        if word not in holds.signatures:
            return None
        if signature.issuer == client.issuer or (word == "call" and signature.issuer in holds.call_issuers):
            return signature
        if word == "call" and not holds.any_issuer:
            return None
        return seal_signature(signature, "redacted" if _is_redacted(part) else "self", client.issuer)

    def seal_for_call(self, signature: Signature, part: AnyPart, *, is_call: bool) -> Signature | None:
        """Return the envelope for reasoning before a call that cannot hold the signature itself; report any other."""
        if is_call and "call" not in self.capabilities.signatures and "reasoning" in self.capabilities.signatures:
            return seal_signature(signature, "call", self.client.issuer)
        why = f"the client's dialect cannot hold {signature.issuer}'s signature here"
        self.ledger.report_dropped_field("part.redacted" if _is_redacted(part) else "part.signature", why, part)
        return None

    def seal_unsigned(self) -> Signature | None:
        """Return what marks unsigned reasoning: it must not be taken for the client's own vendor's."""
        client = self.client
        if self.source.issuer == client.issuer or "reasoning" not in self.capabilities.signatures:
            return None
        return seal_signature(UNSIGNED, "self", client.issuer)

    def drop_fields(self, where: str, fields: dict[str, bytes], sealed_signature: Signature | None = None) -> None:
        """Report the fields of the part at `where`; the id of its item may travel with the `carried` signature."""
        item = find_item_id(sealed_signature) if sealed_signature is not None else ""
        told, place = json.encode(item) if item else b"", self.source.field_place
        for field, raw in fields.items():
            if raw != told:
                self.ledger.report_dropped_value(
                    where + field if place is None else place(where, field), raw, UNKNOWN_TO_CLIENT
                )

    def adapt_usage(self, usage: Usage) -> Usage:
        """Return the counts that the client's dialect has a place for; report all others."""
        ledger = self.ledger
        if usage.cache_written and "cache_written" not in self.capabilities.counts:
            ledger.report_dropped_field("usage.cache_written", _NO_COUNT)
        if usage.extras is None:
            return usage
        (base,) = ledger.list_pointers("usage")
        counted = ledger.pointers.get("usage.counted", ())
        for field, raw in usage.extras.fields.items():
            where = base + field
            counts = json.find_leaves(raw, where)
            if where not in counted:
                ledger.report_dropped_leaves(filter(counts.get, counts), _NO_COUNT)
            elif any(counts.values()):
                ledger.report_approximated(where, "counted in with the rest")
        return structs.replace(usage, extras=None)

    def adapt_finish(self, finish: Finish) -> Finish:
        """Return a finish that the client's dialect has a word for; raise the `Problem` of any other."""
        reason, raw, finishes = finish.reason, finish.raw, self.capabilities.finishes
        if self.has_sequence if finish.sequence is None else not self.capabilities.stop_sequence:
            self.ledger.report_dropped_field("finish.sequence", "the client's dialect cannot say what ended the reply")
        if self.has_lost_call and reason == "tool_calls":
            reason = "malformed_call"
        if reason == "paused" and reason not in finishes:
            self.ledger.report_approximated_field("finish.reason", "the model paused; told as a reply cut by length")
            reason = "length"
        elif raw and raw not in self.source.finish_words and json.encode(raw) not in self.block_reason:
            # The vendor's word says more than the core's reason.
            self.ledger.report_approximated_field("finish.reason", f"{raw!r} is told as {reason!r}")
        if reason in finishes:
            return finish if reason == finish.reason else Finish(reason, raw)
        word = raw or reason
        if reason == "malformed_call":
            message = f"the model made a malformed tool call ({word})"
            raise Problem("malformed_reply", message, code="malformed_function_call")
        raise Problem("malformed_reply", f"the model stopped for an unknown reason ({word})", code="unknown_finish")


def _is_redacted(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) and part.redacted
