"""A request that is translated to another dialect, and how, where nothing is known of it but its history."""

from functools import partial

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import Text
from dragoman.core.request import Message, Request
from dragoman.core.traits import TextCalls
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.arrange import CONTINUED
from dragoman.interpreter.conversation import Conversation
from dragoman.interpreter.fitting import Undo
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.links import Links
from dragoman.interpreter.recall import Recall
from dragoman.interpreter.signing import Signer
from dragoman.interpreter.traits import traits_for

NO_UNDO = Undo()


class Translation(Struct, frozen=True, kw_only=True):
    """A translated request and what is needed to translate its reply back."""

    call: Call
    losses: tuple[Loss, ...] = ()
    undo: Undo = NO_UNDO
    request: Request | None = None
    """The caller's request in the core; None when its bytes were passed on unread."""


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


def translated(asked: Asked, recall: Recall) -> Translation:
    """Translate a request, of whose history a beginning may be known."""
    call, here, there, form = asked.call, asked.here, asked.there, asked.form
    signer = asked.signer if here is not there else None
    conversation = Conversation(call, here, there, asked.model, recall, signer, asked.links)
    request = conversation.request
    wanted = asked.model or request.model
    traits = traits_for(there.name, wanted)
    adapted, undo, losses = request, NO_UNDO, ()
    if here is not there:
        ledger = Ledger(here.pointers, call.body)
        whole = with_declared(spoken(request, ledger), here)
        adapted, undo = adapt(whole, here.issuer, traits, ledger, partial(conversation.beginning, traits), asked.links)
        losses = ledger.losses() if len(ledger) else ()
    if asked.strict:
        refuse(losses)
    if wanted != adapted.model or form:
        adapted = structs.replace(
            adapted, model=wanted, spelling=adapted.spelling | {form} if form else adapted.spelling
        )
    return Translation(call=there.render_request(adapted, traits), losses=losses, undo=undo, request=request)


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
