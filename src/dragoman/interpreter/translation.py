"""A request that is translated to another dialect: parsed once, then adapted and rendered."""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import Text
from dragoman.core.request import Message, Request
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect, Tools
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.arrange import CONTINUED
from dragoman.interpreter.fitting import Undo
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.links import Links
from dragoman.interpreter.prefix_cache import Prefix, PrefixCache, Scope
from dragoman.interpreter.request_history import RequestHistory
from dragoman.interpreter.signing import Signer, UnsignedCall, sign_again, unknown_ids, unsigned_calls
from dragoman.interpreter.tools_cache import Arguments, ToolsCache, ToolSet
from dragoman.interpreter.traits import traits_for

NO_UNDO = Undo()


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


class ParsedRequest:
    """A request on its way from one dialect to another, parsed but not yet translated."""

    tool_set: ToolSet | None = None
    unknown_ids: Sequence[str] = ()
    """Calls taken for unsigned whose signatures nobody has looked up yet."""
    _history: RequestHistory | None = None
    _known = 0
    """How many messages stand before what is new in the request."""
    _unsigned: Sequence[UnsignedCall] = ()
    """Calls among the new messages that came without a signature."""

    def __init__(self, asked: Asked, caches: Caches) -> None:
        self._asked = asked
        self._caches = caches
        call, here = asked.call, asked.here
        self._signer = asked.signer if here is not asked.there else None
        if len(call.body) < 2 * caches.prefixes.least:
            self._request = here.parse_request(call, read_tools=self._read_tools)
        else:
            history = RequestHistory(call, here, caches.prefixes, self._scope(), self._read_tools, self._signer)
            self._history, self._request, self._known = history, history.request, history.known
            self.unknown_ids = list(history.unconfirmed)
        if self._signer is not None:
            self._unsigned = unsigned_calls(self._new_messages())
            self.unknown_ids = [*self.unknown_ids, *unknown_ids(self._unsigned, self._signer)]

    def _scope(self) -> Scope:
        asked, signer = self._asked, self._signer
        # Signatures are an owner's own; and where links are fetched, other parts are made of them.
        owner = "" if signer is None else f"signed for {signer.scope}"
        links = "" if asked.links is None else f"links taken: {asked.links.taken}"
        return asked.here.name, asked.there.name, asked.model, owner, links

    def _read_tools(self, raw: bytes, where: str) -> Tools:
        self.tool_set = self._caches.tools.read(self._asked.here, raw, where)
        return self.tool_set.tools

    def _new_messages(self) -> tuple[Message, ...]:
        messages = self._request.messages
        return messages[self._known :] if self._known else messages

    def translate(self, links: Links | None) -> Translation:
        """Translate the request; `links` are those that were fetched for it."""
        asked = self._asked
        here, there, form = asked.here, asked.there, asked.form
        request = self._signed()
        wanted = asked.model or request.model
        traits = traits_for(there.name, wanted)
        adapted, undo, losses = request, NO_UNDO, ()
        if here is not there:
            ledger = Ledger(here.pointers, asked.call.body)
            whole = with_declared(spoken(request, ledger), here)
            adapted, undo = adapt(
                whole,
                here.issuer,
                traits,
                ledger,
                None if self._history is None else partial(self._prefix, self._history, whole.messages, links),
                links,
                self.tool_set,
                self._caches.tools,
            )
            losses = ledger.losses() if len(ledger) else ()
        if asked.strict:
            refuse(losses)
        if wanted != adapted.model or form:
            spelling = adapted.spelling | {form} if form else adapted.spelling
            adapted = structs.replace(adapted, model=wanted, spelling=spelling)
        call = there.render_request(adapted, traits)
        return Translation(call=call, losses=losses, undo=undo, request=request, tool_set=self.tool_set)

    def _signed(self) -> Request:
        """Give new calls the signatures they came without; what the prefix cache knows has them already."""
        request = self._request
        if self._signer is None or not self._unsigned:
            return request
        new = self._new_messages()
        signed = sign_again(new, self._unsigned, self._signer)
        if signed is new:
            return request
        return structs.replace(request, messages=(*request.messages[: self._known], *signed))

    def _prefix(
        self, history: RequestHistory, messages: tuple[Message, ...], links: Links | None, retold: Arguments
    ) -> Prefix:
        there = self._asked.there
        traits = traits_for(there.name, self._asked.model or self._request.model)
        return history.translate_prefix(messages, there, traits, retold, links)


def spoken(request: Request, ledger: Ledger) -> Request:
    """Let the user say something where nobody does: no target takes an empty conversation."""
    if request.messages:
        return request
    ledger.approximated("", f"nobody says anything: the user begins, with {CONTINUED!r}")
    return structs.replace(request, messages=(Message(role="user", parts=(Text(text=CONTINUED),)),))


def with_declared(request: Request, here: Dialect) -> Request:
    """Let tools that the conversation declares on its way stand beside the others, behind them."""
    if here.declared is None:
        return request
    declared = here.declared(request.messages)
    new = tuple(tool for tool in declared if tool not in request.tools)
    return structs.replace(request, tools=(*request.tools, *new)) if new else request
