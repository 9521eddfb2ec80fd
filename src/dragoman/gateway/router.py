"""Which upstream answers for a model, and what the model is called there.

A model is looked for by its full name, then by the patterns, the longest first, then as `upstream/model`, and last by
its family among the upstreams. A pattern has one `*`. A target that is `upstream/*` means the client's own name; a `*`
inside a longer one stands for what the pattern's matched.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.media import MediaFetcher
from dragoman.http.client import Deadlines
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.upstream import Place, Upstream


class Target(Struct, frozen=True):
    """An upstream and what it calls the model."""

    upstream: Upstream
    model: str
    deadlines: Deadlines = Deadlines()
    media_fetcher: MediaFetcher | None = None
    """Who fetches linked media that the upstream does not."""
    fetches_links: bool = True
    """It fetches links itself, as far as its models do."""
    text_calls: TextCalls = ""
    """The model has no tools of its own: it gets them in its prompt, and calls them in its text, in this form."""
    signs_calls: bool = False
    """Its calls are signed, and the signatures must come back."""


class UpstreamSet(Struct, frozen=True):
    """The upstreams by name, each with its kind and how long it is waited for."""

    by_name: Mapping[str, Place]
    kinds: Mapping[str, str]
    deadlines: Mapping[str, Deadlines] = {}
    media_fetcher: MediaFetcher | None = None
    without_link_fetch: frozenset[str] = frozenset()
    """Those that fetch no links."""
    text_calls: Mapping[str, Mapping[str, TextCalls]] = {}
    """Those with models that call tools in their text, by patterns of their names."""

    def build_target(self, name: str, model: str) -> Target:
        """Return an upstream as the place of a model."""
        deadlines = self.deadlines.get(name, Deadlines())
        text_calls, upstream = self.find_text_calls(name, model), self.by_name[name](model)
        signs = not text_calls and "call" in dialect_named(upstream.dialect).holds.signatures
        return Target(
            upstream, model, deadlines, self.media_fetcher, name not in self.without_link_fetch, text_calls, signs
        )

    def find_text_calls(self, name: str, model: str) -> TextCalls:
        """Return the form in which a model calls tools in its text; the first pattern that matches decides."""
        for pattern, form in self.text_calls.get(name, {}).items():
            if fnmatchcase(model, pattern):
                return form
        return ""


class Routes:
    """The way from a client's name for a model to where it is answered."""

    def __init__(self, upstreams: UpstreamSet, models: Mapping[str, Sequence[str]], agents: Iterable[str] = ()) -> None:
        self._upstreams = upstreams
        self._agents = tuple(agents)
        """Names that are answered for elsewhere."""
        self._exact = {name: tuple(targets) for name, targets in models.items() if "*" not in name}
        patterns = [(name, tuple(targets)) for name, targets in models.items() if "*" in name]
        self._patterns = sorted(patterns, key=lambda pattern: (-len(pattern[0]), pattern[0]))
        self._cache: dict[str, tuple[Target, ...]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names a client may be shown: those without a pattern."""
        return tuple(self._exact)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All of them; one that plays several vendors is there once for each."""
        models = dict.fromkeys(map(default_model, KINDS))
        asked = [place(model) for place in self._upstreams.by_name.values() for model in models]
        return tuple({id(upstream): upstream for upstream in asked}.values())

    def find_named(self, name: str, model: str) -> Target | None:
        """Return an upstream by its name, as the place of a model; None if there is none."""
        return self._upstreams.build_target(name, model) if name in self._upstreams.by_name else None

    def target_for(self, upstream: Upstream) -> Target:
        """Return an upstream as the place of something that is no model."""
        return Target(upstream, "", self._upstreams.deadlines.get(upstream.name, Deadlines()))

    def find_targets(self, model: str) -> tuple[Target, ...]:
        """Return where a model is answered, in the order to be tried."""
        known = self._cache.get(model)
        if known is None:
            known = self._resolve(model)
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache[model] = known
        return known

    def _resolve(self, model: str) -> tuple[Target, ...]:
        if model in self._exact:
            return self._build_targets(self._exact[model], model, "")
        for pattern, targets in self._patterns:
            before, _, after = pattern.partition("*")
            if model.startswith(before) and model.endswith(after) and len(model) >= len(before) + len(after):
                return self._build_targets(targets, model, model[len(before) : len(model) - len(after)])
        name, slash, rest = model.partition("/")
        if slash and rest and name in self._upstreams.by_name:
            return self._build_targets((model,), model, "")
        return self._find_by_family(model)

    def _build_targets(self, targets: Sequence[str], model: str, matched: str) -> tuple[Target, ...]:
        return tuple(self._build_target(target, model, matched) for target in targets)

    def _build_target(self, target: str, model: str, matched: str) -> Target:
        name, _, called = target.partition("/")
        return self._upstreams.build_target(name, model if called == "*" else called.replace("*", matched, 1))

    def _find_by_family(self, model: str) -> tuple[Target, ...]:
        """Return the first upstream whose models are called like this, or the only one there is."""
        kinds = self._upstreams.kinds
        found = [name for kind in KINDS if _has_family(kind, model) for name in kinds if kinds[name] == kind]
        if found:
            return (self._upstreams.build_target(found[0], model),)
        if len(kinds) == 1 and not self._exact and not self._patterns:
            return (self._upstreams.build_target(next(iter(kinds)), model),)
        if model in self._agents:
            words = f"{model!r} is an agent, and cannot be asked in this way: name a model"
            raise Problem("not_found", words, code="model_not_found")
        known = ", ".join(sorted((*self._exact, *(pattern for pattern, _ in self._patterns), *self._agents))[:20])
        hint = f"configured are {known}" if known else "name it `upstream/model`, or add it to [models]"
        raise Problem("not_found", f"no upstream is configured for the model {model!r}: {hint}", code="model_not_found")


_MAX_CACHED = 1000


def default_model(kind: str) -> str:
    """Return the model that is asked at a kind of upstream where nobody names one."""
    return dialect_named(KINDS[kind].dialects[0]).api.default_model


def _has_family(kind: str, model: str) -> bool:
    """Tell whether models of such a name are found at a kind of upstream."""
    patterns = (dialect_named(name).api.model_names for name in KINDS[kind].dialects)
    return any(pattern and re.match(pattern, model) for pattern in patterns)
