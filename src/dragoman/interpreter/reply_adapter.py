"""The steps that adapt a reply to the client's dialect, shared by whole replies and streams.

`Context` describes the request that a reply answers: the client's request, the undo, the envelope. A part that the
client's dialect cannot express is dropped and reported, never distorted. Usage counts, citations and fields that the
client's dialect does not have are reported. An empty value (null, a count of zero, an empty text or container) is no
loss, and neither is one that is not about the answer: the kind of document (`object`, `type`, `role`), the index of a
choice, a call or an event, the creation time. Members that only repeat the request are no loss either.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, structs

from dragoman.core.parts import (
    AnyPart,
    FoundTools,
    Media,
    Opaque,
    Reasoning,
    Search,
    Signature,
    Text,
    ToolCall,
    ToolSearch,
)
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, NativeTool, Request
from dragoman.core.response import Finish, FinishReason, Usage
from dragoman.dialects.record import Dialect
from dragoman.interpreter.foreign_fields import report_unknown_in_reply
from dragoman.interpreter.ids import build_call_id_stem, generate_id, to_plain_id
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signature_envelopes import UNSIGNED, find_item_id, seal_signature
from dragoman.interpreter.text_call_detector import CallDetector
from dragoman.interpreter.tool_kinds import declares_search
from dragoman.interpreter.undo import NO_UNDO, Undo
from dragoman.wire import json
from dragoman.wire.lookup import find_leaves


class ReplyOptions(Struct, frozen=True):
    """What the client requires of a reply in addition to its dialect."""

    salt: str = ""
    """Keeps generated ids unique in a conversation."""
    single_call: bool = False
    """Only the first call is sent."""
    is_whole: bool = False
    """The events of a stream are collected into one reply."""
    saves_signatures: bool = False
    """What is signed is saved for clients that do not send it back."""
    searches: bool = False
    """The client asked for a web search that the provider runs."""
    tools: tuple[AnyTool, ...] = ()
    """The client's tools."""
    names: Mapping[str, tuple[str, str]] = {}
    """The aliases of its tools at the upstream, as in `Undo`."""


class Context(Struct, frozen=True):
    """The request that a reply answers: the client's core request, the undo, and the envelope of the reply (`form`)."""

    request: Request | None = None
    undo: Undo = NO_UNDO
    form: str = ""
    now: int | None = None
    """The creation time for a reply that has none, in seconds since 1970."""
    by_leaf: bool = False
    """The losses of a stream are reported leaf by leaf."""
    saves_signatures: bool = False
    """What is signed in the reply is saved and returned to its vendor for a client that cannot hold it."""

    @property
    def salt(self) -> str:
        """A value that keeps generated ids unique in a conversation, even if the upstream sends no reply id."""
        return str(len(self.request.messages)) if self.request is not None else ""

    @property
    def passes(self) -> bool:
        """Return whether a reply in the client's own dialect can be forwarded unchanged."""
        return self.undo is NO_UNDO and not self.form

    def reply_options(self) -> ReplyOptions:
        """Return the options for adapting the reply to the client."""
        tools = self.request.tools if self.request is not None else ()
        return ReplyOptions(
            self.salt,
            self.undo.single_call,
            saves_signatures=self.saves_signatures,
            tools=tools,
            names=self.undo.names,
            searches=NativeTool in map(type, tools) and declares_search(tools),
        )

    def call_detector(self, client: Dialect, ledger: Ledger) -> CallDetector | None:
        """Return the detector of calls in the model's text; None if its tools were not described in the prompt."""
        settings = self.undo.text_calls
        return CallDetector(settings, client.call_prefix, self.salt, ledger) if settings is not None else None

    def client_request(self) -> Request | None:
        """Return the request from which the reply's renderer takes the fields to echo and the envelope to use."""
        if not self.form:
            return self.request
        request = self.request or Request(model="", messages=())
        return structs.replace(request, spelling=request.spelling | {self.form})


NO_CONTEXT = Context()


def has_other_envelope(dialect: Dialect, head: bytes, context: Context) -> bool:
    """Return whether a reply is wrapped in an envelope and the client's request was not, or the other way round."""
    if dialect.is_wrapped is None:
        return False
    is_request_wrapped = context.request is not None and bool(context.request.spelling & dialect.envelopes)
    return dialect.is_wrapped(head) is not is_request_wrapped


CUT_OFF = "the call was cut off inside its arguments"
NOT_AN_OBJECT = "the call's arguments are not a JSON object, or nested too deeply"
ONE_CALL = "the client allows one call at a time: only the first is sent"
REFUSAL_AS_TEXT = "a refusal is sent as text"
_NO_SEARCHES = "the client's dialect cannot say that a web search was run"
UNKNOWN_TO_CLIENT = "not known to the client's dialect"
_NO_COUNT = "the client's dialect has no such count"
_ENDINGS: dict[FinishReason, str] = {
    "stop": "a normal end",
    "length": "the token limit",
    "tool_calls": "tool calls",
    "filtered": "a content filter",
    "refused": "a refusal",
    "paused": "a pause",
    "malformed_call": "a malformed call",
    "other": "an unknown reason",
}
_SIGNATURE_KINDS: dict[type[AnyPart], str] = {ToolCall: "call", Reasoning: "reasoning", Text: "text", Media: "text"}
"""The names of the parts that may be signed, as the capability `signatures` lists them."""


class ReplyAdapter:
    """The state of one reply that is translated from one dialect to another, and the steps that adapt it."""

    reply_id = ""
    call_count = 0
    """The number of calls so far."""
    has_lost_call = False
    """A call that the model completed could not be sent."""
    search_id = ""
    """The id of the last search for deferred tools."""
    _call_id_stem = ""
    has_sequence = False
    """The reply has a field for the stop sequence that was hit."""
    block_reason = b""
    """The JSON of the field with the reason why the prompt was blocked."""
    finish_message = b""
    """The JSON of the field in which the vendor explains the finish reason."""

    def __init__(self, source: Dialect, client: Dialect, ledger: Ledger, options: ReplyOptions) -> None:
        self.source = source
        self.client = client
        self.capabilities = client.capabilities
        self.ledger = ledger
        self.options = options
        self._call_ids: set[str] = set()
        self.cited_pointers: dict[str, set[str]] = {}
        """The pointers that citations and searches have sent, by each pointer above them."""
        self.cited_pages: dict[str, str] = {}
        """The pages cited so far, with their titles."""

    def find_drop_reason(self, part: AnyPart) -> str:
        """Return why the client cannot take a part other than text or a call; "" if it can."""
        match part:
            case Search():
                return "" if self.capabilities.searches else _NO_SEARCHES
            case ToolSearch() | FoundTools() if self.capabilities.tool_search:
                return ""
            case Opaque(dialect=dialect) if dialect != self.client.name:
                return "a block that only its own dialect understands"
            case Reasoning() if not self.capabilities.reasoning:
                return "the client's dialect has no reasoning"
            case Media() if not self.capabilities.media:
                return f"the client's dialect cannot hold {part.kind} in a reply"
            case _:
                return ""

    @property
    def joins_texts(self) -> bool:
        """Whether the vendor cites whole blocks and the client's citations have spans, so that texts are joined."""
        return self.source.capabilities.block_citations and not self.capabilities.block_citations

    def mark_sent(self, pointers: Iterable[str]) -> None:
        """Note that what is at these pointers of the reply is sent, so that the fields around it do not report it."""
        for pointer in pointers:
            above = pointer
            while above := above.rpartition("/")[0]:
                self.cited_pointers.setdefault(above, set()).add(pointer)

    def assign_call_id(self, call: ToolCall) -> str:
        """Return the client's id for the latest call; report a namespace that the client's dialect does not have."""
        call_id, capabilities = call.id, self.capabilities
        if not call_id:
            if not self._call_id_stem:
                self._call_id_stem = self.client.call_prefix + build_call_id_stem(self.reply_id, self.options.salt)
            call_id = f"{self._call_id_stem}{self.call_count:04x}"
        if capabilities.plain_ids:
            call_id = to_plain_id(call_id)
        if call_id in self._call_ids:
            reason = f"another call has the id {call.id!r}: this one gets a new id"
            self.ledger.report_approximated_field("call.id", reason, call)
            call_id = generate_id(self.client.call_prefix, self.reply_id, self.options.salt, self.call_count, call_id)
        self._call_ids.add(call_id)
        if call.namespace and not capabilities.namespaces:
            self.ledger.report_dropped_field("call.namespace", "the client's dialect has no namespaces", call)
        return call_id

    def ensure_object_arguments(self, arguments: str, where: str, complete: bool) -> str | None:
        """Return the arguments of a call for a client that parses them; None if they are not an object."""
        if not complete:
            return None
        if not arguments or json.is_object(arguments):
            return arguments
        if arguments.strip() == "null":
            # Groq sends null for no arguments.
            self.ledger.report_approximated(where, "null arguments are sent as {}")
            return "{}"
        self.has_lost_call = True
        return None

    def fit_native_arguments(self, call: ToolCall) -> str:
        """Return the arguments of a call of the client's vendor's own tool as that tool requires."""
        fit = self.client.fit_arguments
        adapted = call.arguments if fit is None else fit(call)
        if adapted is not call.arguments:
            self.ledger.report_approximated(call.where, f"the arguments did not fit the tool {call.native!r}: adapted")
        return adapted

    def report_order(self, part: AnyPart) -> None:
        """Report a part that came after a call if the client's dialect puts it before the call."""
        if self.call_count and not self.capabilities.order:
            self.ledger.report_approximated(
                part.where, "it came after a call; the client's dialect puts it before the calls"
            )

    def adapt_signature(self, signature: Signature, kind: type[AnyPart], part: AnyPart) -> Signature | None:
        """Return the signature for a part of this kind, another vendor's in an envelope; None if it can hold none.

        A signed text keeps its signature if that is saved: the client's encoder leaves it out.
        """
        client, capabilities, kind_name = self.client, self.capabilities, _SIGNATURE_KINDS.get(kind, "")
        if kind_name not in capabilities.signatures:
            is_saved = self.options.saves_signatures and isinstance(part, Text) and not self.call_count
            return signature if is_saved else None
        is_call = kind_name == "call"
        if signature.issuer == client.issuer or (is_call and signature.issuer in capabilities.call_issuers):
            return signature
        if is_call and not capabilities.any_issuer:
            return None
        return seal_signature(signature, "redacted" if _is_redacted(part) else "self", client.issuer)

    def seal_for_call(self, signature: Signature, part: AnyPart, *, is_call: bool) -> Signature | None:
        """Return the envelope for a reasoning part before a call that cannot hold its signature.

        Any other signature is reported as a loss, and None is returned.
        """
        if is_call and "call" not in self.capabilities.signatures and "reasoning" in self.capabilities.signatures:
            return seal_signature(signature, "call", self.client.issuer)
        reason = f"the client's dialect has no field for {signature.issuer}'s signature here"
        field = "part.redacted" if _is_redacted(part) else "part.signature"
        # No vendor requires the signature of a text: it only helps its own model.
        grade = "informational" if isinstance(part, Text) else None
        self.ledger.report_dropped_field(field, reason, part, grade)
        return None

    def seal_unsigned(self, part: AnyPart) -> Signature | None:
        """Return the envelope that marks unsigned reasoning, so that it is not taken for the client's own vendor's.

        It holds the spelling, so that the reasoning returns in the form it came in. If both dialects are of one vendor,
        it names no vendor and holds only that.
        """
        client, capabilities, issuer = self.client, self.capabilities, self.source.issuer
        is_marked = "reasoning" in capabilities.signatures and not capabilities.unsigned_reasoning
        is_same_vendor = issuer == client.issuer
        if not is_marked or (is_same_vendor and not part.spelling):
            return None
        signature = Signature("" if is_same_vendor else issuer, UNSIGNED, part.spelling)
        return seal_signature(signature, "self", client.issuer)

    def drop_fields(self, where: str, fields: dict[str, bytes], held_signature: Signature | None = None) -> None:
        """Report the fields of the part at `where`, except an item id that is sent with `held_signature`."""
        item = find_item_id(held_signature) if held_signature is not None else ""
        held_item, find_pointer = json.encode(item) if item else b"", self.source.find_extra_pointer
        for field, raw in fields.items():
            if raw != held_item:
                pointer = where + field if find_pointer is None else find_pointer(where, field)
                report_unknown_in_reply(pointer, raw, self.source, self.ledger, UNKNOWN_TO_CLIENT)

    def adapt_usage(self, usage: Usage) -> Usage:
        """Return the usage counts that the client's dialect has; report all others."""
        ledger = self.ledger
        if usage.cache_written and "cache_written" not in self.capabilities.counts:
            ledger.report_dropped_field("usage.cache_written", _NO_COUNT)
        if usage.searches and "searches" not in self.capabilities.counts:
            ledger.report_dropped_field("usage.searches", _NO_COUNT)
        if usage.extras is None:
            return usage
        (base,) = ledger.list_pointers("usage")
        counted, repeats_count = ledger.pointers.get("usage.counted", ()), self.source.repeats_count
        for field, raw in usage.extras.fields.items():
            where = base + field
            if repeats_count is not None and repeats_count(field, raw, usage):
                continue
            if not any(find_leaves(raw, where).values()):
                continue  # nothing was counted
            if where in counted:
                ledger.report_approximated(where, "included in another usage count")
            else:
                report_unknown_in_reply(where, raw, self.source, ledger, _NO_COUNT)
        return structs.replace(usage, extras=None)

    def adapt_finish(self, finish: Finish) -> Finish:
        """Return a finish reason that the client's dialect has; raise a `Problem` for any other."""
        reason, raw, finishes = finish.reason, finish.raw, self.capabilities.finishes
        if self.has_sequence if finish.sequence is None else not self.capabilities.stop_sequence:
            self.ledger.report_dropped_field(
                "finish.sequence", "the client's dialect has no field for the stop sequence"
            )
        if self.has_lost_call and reason == "tool_calls":
            reason = "malformed_call"
        if reason == "paused" and reason not in finishes:
            self.ledger.report_approximated_field("finish.reason", "the model paused: reported as the token limit")
            reason = "length"
        elif raw and raw not in self.source.mapped_finishes and json.encode(raw) not in self.block_reason:
            # The vendor's finish reason is more specific than the core's.
            self.ledger.report_approximated_field("finish.reason", f"{raw!r} is reported as {_ENDINGS[reason]}")
        if reason in finishes:
            return finish if reason == finish.reason else Finish(reason, raw)
        explanation = json.peek(self.finish_message) if self.finish_message else ""
        ending = f" ({raw or reason})" + (f": {explanation}" if explanation else "")
        if reason == "malformed_call":
            message = f"the model made a malformed tool call{ending}"
            raise Problem("malformed_reply", message, code="malformed_function_call")
        message = f"the model stopped for an unknown reason{ending}"
        raise Problem("malformed_reply", message, code="unknown_finish")


def _is_redacted(part: AnyPart) -> bool:
    return isinstance(part, Reasoning) and part.redacted
