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
from dragoman.interpreter.prefix_cache import Prefix, PrefixCache
from dragoman.interpreter.request_history import RequestHistory
from dragoman.interpreter.signing import Signer, sign_again, unknown_ids
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

    def __init__(self, asked: Asked, caches: Caches) -> None:
        self._asked = asked
        self._caches = caches
        here, there = asked.here, asked.there
        self._signer = asked.signer if here is not there else None
        scope = (
            here.name,
            there.name,
            asked.model,
            # Signatures are an owner's own; and where links are fetched, other parts are made of them.
            "" if self._signer is None else f"signed for {self._signer.scope}",
            "" if asked.links is None else f"links taken: {asked.links.taken}",
        )
        history = RequestHistory(asked.call, here, caches.prefixes, scope, self._read_tools, self._signer)
        self._history = history
        if self._signer is not None:
            new = unknown_ids(history.request.messages[history.known :], self._signer)
            self.unknown_ids = [*history.unconfirmed, *new]

    def _read_tools(self, raw: bytes, where: str) -> Tools:
        self.tool_set = self._caches.tools.read(self._asked.here, raw, where)
        return self.tool_set.tools

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
                partial(self._prefix, whole.messages, links),
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
        request, known = self._history.request, self._history.known
        if self._signer is None:
            return request
        new = request.messages[known:] if known else request.messages
        signed = sign_again(new, self._signer)
        return request if signed is new else structs.replace(request, messages=(*request.messages[:known], *signed))

    def _prefix(self, messages: tuple[Message, ...], links: Links | None, retold: Arguments) -> Prefix:
        asked = self._asked
        traits = traits_for(asked.there.name, asked.model or self._history.request.model)
        return self._history.translate_prefix(messages, asked.there, traits, retold, links)


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
