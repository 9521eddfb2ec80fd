"""A request that is said in words to a model without tools, be it in the caller's own dialect.

Nothing is remembered here: what is remembered elsewhere was made for models that have tools.
"""

from msgspec import structs

from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.cleaned import cleaned
from dragoman.interpreter.ledger import Ledger, refuse
from dragoman.interpreter.text_calls.saying import in_words
from dragoman.interpreter.traits import traits_for
from dragoman.interpreter.translation import NO_UNDO, Asked, Translation, spoken, with_declared

ENVELOPES = frozenset({"code_assist"})
"""Forms of a dialect in which a client may speak through an envelope."""


def translated_in_words(asked: Asked) -> Translation | None:
    """Translate a request; None for one of the target's dialect that has nothing to be said in words."""
    here, there = asked.here, asked.there
    ledger = Ledger(here.pointers, asked.call.body)
    call = cleaned(asked.call, here, asked.model, ledger) if here is there else asked.call
    request = here.parse_request(call)
    wanted = asked.model or request.model
    traits = traits_for(there.name, wanted, asked.text_calls)
    whole = with_declared(spoken(request, ledger), here)
    if here is there:
        said = in_words(whole, here.issuer, traits, ledger)
        if said is None:
            return None
        adapted, undo = said.request, said.undo or NO_UNDO
    else:
        adapted, undo = adapt(whole, here.issuer, traits, ledger, links=asked.links)
    losses = ledger.losses() if len(ledger) else ()
    if asked.strict:
        refuse(losses)
    spelling = adapted.spelling - ENVELOPES | ({asked.form} if asked.form else frozenset[str]())
    adapted = structs.replace(adapted, model=wanted, spelling=spelling)
    return Translation(call=there.render_request(adapted, traits), losses=losses, undo=undo, request=request)
