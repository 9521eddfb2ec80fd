"""Translate a request or an error from one dialect to another.

For another dialect a request is parsed, adapted (losses are reported there) and rendered. In its own dialect its bytes
pass, except for another vendor's signatures: what is in our envelopes is for its issuer alone, and a field for another
vendor's signature is rejected by models that do not know it. Both are removed where the target is not theirs, and
reported. A body that has neither is not parsed for that.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.core.traits import TextCalls, Traits
from dragoman.dialects.record import Call, Dialect, ErrorReply, Tools
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.arrange import CONTINUED, signed_steps
from dragoman.interpreter.carry import MARK, native
from dragoman.interpreter.faults import as_fault, is_envelope, losses_of
from dragoman.interpreter.fitting import ENVELOPES, NO_UNDO, Fitting, Links, Undo
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.prefix_cache import PrefixCache, Scope
from dragoman.interpreter.request_history import RequestHistory
from dragoman.interpreter.signing import Signer, UnsignedCall, sign_again, unknown_ids, unsigned_calls
from dragoman.interpreter.text_calls.prompt import in_words
from dragoman.interpreter.tools_cache import ToolsCache, ToolSet
from dragoman.interpreter.traits import traits_for
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import spliced


class Translation(Struct, frozen=True, kw_only=True):
    """A translated request and what is needed to translate its reply back."""

    call: Call
    losses: tuple[Loss, ...] = ()
    undo: Undo = NO_UNDO
    request: Request | None = None
    """The caller's request in the core; None when its bytes were passed on unread."""
    tool_set: ToolSet | None = None
    """Its tools as the cache has them; None for those that did not come as one array."""


class Asked(Struct, frozen=True):
    """A request, where it comes from and goes to, and what is wished for; see `translate_request`."""

    call: Call
    here: Dialect
    there: Dialect
    model: str = ""
    form: str = ""
    strict: bool = False
    signer: Signer | None = None
    links: Links | None = None
    text_calls: TextCalls = ""


class Caches(Struct, frozen=True):
    """The two caches of request translation."""

    tools: ToolsCache
    prefixes: PrefixCache


CACHES = Caches(ToolsCache(), PrefixCache())
"""What this process keeps of the requests that went through it."""


class ParsedRequest:
    """A request on its way from one dialect to another, parsed but not yet translated."""

    tool_set: ToolSet | None = None
    unknown_ids: Sequence[str] = ()
    """Calls that it takes for unsigned, and that nobody has looked up; if one is signed, it must be parsed again."""
    _history: RequestHistory | None = None
    _known = 0
    """How many messages stand before what is new in the request."""
    _unsigned: Sequence[UnsignedCall] = ()
    """Calls among the new messages that came without a signature."""

    def __init__(self, asked: Asked, caches: Caches) -> None:
        self._asked = asked
        self._tools = caches.tools
        call, here = asked.call, asked.here
        signer = self._signer = asked.signer if here is not asked.there else None
        if len(call.body) < 2 * caches.prefixes.least:
            self._request = here.parse_request(call, read_tools=self._read_tools)
        else:
            history = RequestHistory(call, here, caches.prefixes, self._scope(), self._read_tools, signer)
            self._history, self._request, self._known = history, history.request, history.known
            self.unknown_ids = list(history.unconfirmed)
        if signer is not None and (unsigned := unsigned_calls(self._new_messages())):
            self._unsigned = unsigned
            self.unknown_ids = [*self.unknown_ids, *unknown_ids(unsigned, signer)]

    @property
    def request(self) -> Request:
        """The request as the client sent it, without stored signatures."""
        return self._request

    def _scope(self) -> Scope:
        asked, signer = self._asked, self._signer
        # Signatures are an owner's own; and where links are fetched, other parts are made of them.
        owner = "" if signer is None else f"signed for {signer.scope}"
        links = "" if asked.links is None else f"links taken: {asked.links.taken}"
        return asked.here.name, asked.there.name, asked.model, owner, links

    def _read_tools(self, raw: bytes, where: str) -> Tools:
        self.tool_set = self._tools.read(self._asked.here, raw, where)
        return self.tool_set.tools

    def _new_messages(self) -> tuple[Message, ...]:
        messages = self._request.messages
        return messages[self._known :] if self._known else messages

    def translate(self, links: Links | None) -> Translation:
        """Translate the request, with the links that were fetched for it; `Unfetched` for those that must be."""
        asked = self._asked
        here, there = asked.here, asked.there
        request = self._signed() if self._unsigned else self._request
        traits = traits_for(there.name, asked.model or request.model)
        ledger = Ledger(here.pointers, asked.call.body)
        if here is there:
            adapted, undo = structs.replace(request, model=asked.model or request.model), NO_UNDO
        else:
            whole = request
            if not request.messages or here.declared is not None:
                whole = complete(request, here, ledger)
            known, tools = self.tool_set, self._tools
            fitting = Fitting(traits, ledger, here.issuer, asked.model, links=links, tool_set=known, tools_cache=tools)
            prefix_of = None
            if self._history is not None:
                prefix_of = partial(self._history.translate_prefix, whole.messages, there, traits, links=links)
            adapted, undo = adapt(whole, fitting, prefix_of)
        call, losses = _render(adapted, traits, ledger, asked)
        return Translation(call=call, losses=losses, undo=undo, request=request, tool_set=self.tool_set)

    def _signed(self) -> Request:
        """Give new calls the signatures they came without; what the prefix cache knows has them already."""
        request, signer = self._request, self._signer
        new = self._new_messages()
        signed = sign_again(new, self._unsigned, signer) if signer is not None else new
        if signed is new:
            return request
        return structs.replace(request, messages=(*request.messages[: self._known], *signed))


class PendingRequest(Struct, frozen=True):
    """A request that is parsed only when it is translated; see `ParsedRequest`."""

    translate: Callable[[Links | None], Translation]
    unknown_ids: Sequence[str] = ()
    request: Request | None = None
    tool_set: ToolSet | None = None


def translate_request(  # noqa: PLR0913  a call, two dialects, and independent options
    call: Call,
    source: str,
    target: str,
    *,
    model: str = "",
    strict: bool = False,
    form: str = "",
    signer: Signer | None = None,
    links: Links | None = None,
    text_calls: TextCalls = "",
) -> Translation:
    """Say a request of `source` in `target`, for `model` there (the caller's own name for it when empty).

    `form` names a variant of the target's envelope, such as Gemini's "code_assist". Strict refuses any loss. `signer`
    is asked for signatures that the target demands and the caller did not bring. With `links` media that the target
    does not fetch is replaced by what was fetched for it; `Unfetched` if it must be. With `text_calls` the target has
    no tools of its own: they are told to it in words, and it calls them in its text.
    """
    here, there = dialect_named(source), dialect_named(target)
    asked = Asked(call, here, there, model, form, strict, signer, links, text_calls)
    return parse_request(asked).translate(links)


def parse_request(asked: Asked, caches: Caches | None = None) -> ParsedRequest | PendingRequest:
    """Parse a request, so that it can be translated as soon as all it needs is known."""
    if asked.text_calls:
        return PendingRequest(partial(_translate_in_words, asked))
    if asked.here is asked.there and not asked.form:
        return PendingRequest(partial(_pass_on, asked))
    return ParsedRequest(asked, caches or CACHES)


def complete(request: Request, here: Dialect | None, ledger: Ledger) -> Request:
    """Add to a request what no target does without: a first message, and tools that its history declares on its way."""
    if not request.messages:
        ledger.approximated("", f"nobody says anything: the user begins, with {CONTINUED!r}")
        request = structs.replace(request, messages=(Message(role="user", parts=(Text(text=CONTINUED),)),))
    declared = here.declared(request.messages) if here is not None and here.declared is not None else ()
    new = tuple(tool for tool in declared if tool not in request.tools)
    return structs.replace(request, tools=(*request.tools, *new)) if new else request


def _render(adapted: Request, traits: Traits, ledger: Ledger, asked: Asked) -> tuple[Call, tuple[Loss, ...]]:
    """Render an adapted request; return it and the losses, or raise a `Problem` for those in strict mode."""
    losses = ledger.losses() if len(ledger) else ()
    if asked.strict:
        refuse(losses)
    if adapted.spelling or asked.form:
        form = frozenset({asked.form}) if asked.form else frozenset[str]()
        adapted = structs.replace(adapted, spelling=adapted.spelling - ENVELOPES | form)
    return asked.there.render_request(adapted, traits), losses


def _translate_in_words(asked: Asked, links: Links | None) -> Translation:
    """Translate a request for a model without tools, be it in the caller's own dialect: they are told to it in words.

    No cache is used: those hold what was made for models that have tools.
    """
    here, there = asked.here, asked.there
    ledger = Ledger(here.pointers, asked.call.body)
    call = remove_foreign_signatures(asked.call, here, asked.model, ledger) if here is there else asked.call
    request = here.parse_request(call)
    model = asked.model or request.model
    traits = traits_for(there.name, model, asked.text_calls)
    whole = complete(request, here, ledger)
    if here is there:
        said = in_words(whole, here.issuer, traits, ledger)
        if said is None:
            return parse_request(structs.replace(asked, text_calls="")).translate(links)
        adapted, undo = structs.replace(said.request, model=model), said.undo or NO_UNDO
    else:
        adapted, undo = adapt(whole, Fitting(traits, ledger, here.issuer, model, links=links))
    call, losses = _render(adapted, traits, ledger, asked)
    return Translation(call=call, losses=losses, undo=undo, request=request)


def _pass_on(asked: Asked, _links: Links | None) -> Translation:
    """Pass a request on in its own dialect: the same bytes, but for another vendor's signatures and an envelope."""
    call, dialect, model = asked.call, asked.here, asked.model
    ledger = Ledger(dialect.pointers, call.body)
    passed, request = remove_foreign_signatures(call, dialect, model, ledger), None
    unwrapped = dialect.unwrap(passed) if dialect.unwrap is not None else None
    if unwrapped is not None:
        request = dialect.parse_request(call)
        passed, left = unwrapped
        for where in left:
            ledger.dropped(where, "only the envelope has a place for it")
    losses = ledger.losses() if len(ledger) else ()
    if asked.strict:
        refuse(losses)
    return Translation(call=_with_model(passed, model, dialect) if model else passed, losses=losses, request=request)


def remove_foreign_signatures(call: Call, dialect: Dialect, model: str, ledger: Ledger) -> Call:
    """Return a request without signatures of other vendors; the same one if it has none."""
    in_envelopes = MARK in call.body
    in_calls = bool(dialect.holds.call_issuers) and _signature_field(dialect) in call.body
    if not in_envelopes and not in_calls:
        return call
    request = dialect.parse_request(call)
    traits = traits_for(dialect.name, model or request.model)
    messages = request.messages
    # Servers that take any reasoning back are lenient with fields, and may be a way to Google themselves.
    if in_calls and not traits.call_signatures and not traits.reasoning_text:
        messages = tuple(_unsigned(message, dialect, ledger) for message in messages)
    if in_envelopes:
        messages = signed_steps(native(messages, dialect.issuer, ledger), traits, ledger)
    elif not len(ledger):
        return call
    return dialect.render_request(structs.replace(request, messages=messages), traits)


def _signature_field(dialect: Dialect) -> bytes:
    """Return the name of the field that a call has for another vendor's signature."""
    return dialect.pointers["part.signature"][0].rpartition("/")[2].encode()


def _unsigned(message: Message, dialect: Dialect, ledger: Ledger) -> Message:
    return structs.replace(message, parts=tuple(_without_signature(part, dialect, ledger) for part in message.parts))


def _without_signature(part: AnyPart, dialect: Dialect, ledger: Ledger) -> AnyPart:
    if not isinstance(part, ToolCall) or part.signature is None:
        return part
    if part.signature.issuer not in dialect.holds.call_issuers:
        return part
    ledger.field_dropped("part.signature", f"signed by {part.signature.issuer}, whose models alone read it", part)
    return structs.replace(part, signature=None)


def _with_model(call: Call, model: str, dialect: Dialect) -> Call:
    """Change the model and nothing else: every other byte of the body stays."""
    try:
        place = next((place for place in dialect.pointers["model"] if lookup(call.body, place) is not None), None)
        body = spliced(call.body, place.removeprefix("/"), json.encode(model)) if place is not None else call.body
        return Call(body, model, call.stream)
    except json.Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None


def translate_error(status: int, headers: Mapping[str, str], body: bytes, source: str, target: str) -> ErrorReply:
    """Say an upstream's error in the client's dialect; an error in its own dialect keeps its body."""
    here, there = dialect_named(source), dialect_named(target)
    problem = here.parse_error(status, headers, body)
    if here is there:
        reply = there.build_error(problem)
        return structs.replace(reply, body=body) if is_envelope(body) else reply
    reply = there.build_error(as_fault(problem, here.issuer, there.issuer))
    return structs.replace(reply, losses=losses_of(problem, body, here, reply))
