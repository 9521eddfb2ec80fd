"""Which upstream a request goes to that is passed on untouched, and whether its key may go there.

The model decides, where one is named: in the path, in a JSON body or in a form. Else the path names the upstream, or
there is only one of that vendor. A key with a list of models needs one that fits: the model as it asks for it, or, for
what the path says of an upstream, `upstream/model` and `upstream/v1/files`.
"""

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.passthrough import ModelForm, Passage, form_of, renamed_within
from dragoman.gateway.router import Routes, Target
from dragoman.http.message import Request
from dragoman.server.auth import Key
from dragoman.server.routes import OtherPath
from dragoman.upstreams.upstream import Upstream

_PREFIX = "models/"
"""Google's clients write it before a model's name, or do not."""


class Found(Struct, frozen=True):
    """A passage, and the model it is for."""

    passage: Passage
    model: str


def found(request: Request, other: OtherPath, dialect: str, routes: Routes, key: Key) -> Found:
    """Return where a request goes, or raise the `Problem` for which it goes nowhere."""
    form = ModelForm(request.body) if other.model else form_of(request.body, request.header("content-type"))
    model = (other.model or form.model).removeprefix(_PREFIX)
    target, asked = _target(other, model, dialect, routes)
    if not key.allows(asked):
        raise Problem("permission", f"this key may not ask for {asked!r}")
    there = model if other.upstream else target.model.removeprefix(_PREFIX)
    if not other.model:
        prefix = _PREFIX if form.model.startswith(_PREFIX) else ""
        return Found(Passage(target=target, path=other.path, body=form.renamed(prefix + there)), model)
    path = other.path.replace(f"/models/{model}:", f"/models/{there}:", 1)
    body = request.body if there == model else renamed_within(request.body, model, there)
    return Found(Passage(target=target, path=path, body=body), model)


def _target(other: OtherPath, model: str, dialect: str, routes: Routes) -> tuple[Target, str]:
    """Return the upstream, and the name by which a key is allowed to ask there."""
    if other.upstream:
        target = routes.named(other.upstream, model)
        if target is None:
            raise Problem("not_found", f"there is no upstream {other.upstream!r}", code="unknown_url")
        return target, f"{other.upstream}/{model}" if model else other.upstream + other.path
    vendor = dialect_named(dialect).issuer
    if model:
        fitting = [target for target in routes.of(model) if _serves(target.upstream, vendor)]
        if not fitting:
            raise Problem("not_found", f"the upstream of the model {model!r} has no {other.path}", code="unknown_url")
        return fitting[0], model
    those = [upstream for upstream in routes.upstreams if _serves(upstream, vendor)]
    if len(those) != 1:
        names = ", ".join(f"/upstreams/{upstream.name}{other.path}" for upstream in those)
        words = f"say which upstream is meant: {names}" if those else f"no upstream has {other.path}"
        raise Problem("not_found", words, code="unknown_url")
    return routes.at(those[0]), those[0].name + other.path


def _serves(upstream: Upstream, vendor: str) -> bool:
    return upstream.others and dialect_named(upstream.dialect).issuer == vendor
