"""Finds the upstreams for a model, and the model's name there.

A model is looked up by its exact name in [models], then by patterns, the longest first, then as `upstream/model`, and
last by its model family. A pattern has one `*`. The target `upstream/*` keeps the client's model name; a `*` inside a
longer target is replaced by what the `*` of the pattern matched.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.media import MediaFetcher
from dragoman.http.client import Deadlines
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.tool_kinds import find_tool_for
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.upstream import Upstream, UpstreamSelector


class Target(Struct, frozen=True):
    """An upstream and the model name to use there."""

    upstream: Upstream
    model: str
    deadlines: Deadlines = Deadlines()
    media_fetcher: MediaFetcher | None = None
    """Fetches linked media that the upstream does not fetch."""
    fetches_links: bool = True
    """Whether the upstream fetches links itself, if its model supports links."""
    text_calls: TextCalls = ""
    """The format of text calls, for a model without tool support; "" if the model supports tools."""
    signs: bool = False
    """Whether the model may sign its calls, reasoning or texts, so that the signatures must be sent back."""
    cache_marks: bool = True
    """Whether requests of clients without cache marks get some, if the model caches only what is marked."""
    is_exact: bool = False
    """Whether only the model's name is changed in a request of the upstream's own dialect."""
    server: str = ""
    """The name of the server's row in its dialect; "" if neither the configuration nor the base URL identifies it."""
    other_api: "Target | None" = None
    """The same model in the server's other API, if it takes some requests only there."""


class UpstreamSet(Struct, frozen=True):
    """The upstreams by name, each with its kind and its timeouts."""

    by_name: Mapping[str, UpstreamSelector]
    kinds: Mapping[str, str]
    deadlines: Mapping[str, Deadlines] = {}
    media_fetcher: MediaFetcher | None = None
    without_link_fetch: frozenset[str] = frozenset()
    """Upstreams that do not fetch links."""
    text_calls: Mapping[str, Mapping[str, TextCalls]] = {}
    """Upstreams with models that use text calls: formats by model name pattern."""
    without_cache_marks: frozenset[str] = frozenset()
    """Upstreams whose requests get no automatic cache marks."""
    exact: frozenset[str] = frozenset()
    """Upstreams that get requests of their own dialect unchanged, except for the model's name."""
    other_apis: Mapping[str, UpstreamSelector] = {}
    """The other APIs of upstreams whose servers have two."""
    servers: Mapping[str, str] = {}
    """The names of upstreams' servers."""

    def build_target(self, name: str, model: str) -> Target:
        """Return the target for a model at a named upstream."""
        upstream = self.by_name[name](model)
        target = self._build_target(name, model, upstream)
        if name not in self.other_apis or target.text_calls or target.is_exact:
            return target
        traits = traits_for(upstream.dialect, model, "", target.server)
        if not (traits.tools_elsewhere or traits.tools_need_no_effort):
            return target
        return structs.replace(target, other_api=self._build_target(name, model, self.other_apis[name](model)))

    def _build_target(self, name: str, model: str, upstream: Upstream) -> Target:
        deadlines, text_calls = self.deadlines.get(name, Deadlines()), self.find_text_calls(name, model)
        signs = not text_calls and bool(dialect_named(upstream.dialect).capabilities.signatures)
        links, marks = name not in self.without_link_fetch, name not in self.without_cache_marks
        exact, server = name in self.exact, self.servers.get(name, "")
        return Target(
            upstream, model, deadlines, self.media_fetcher, links, text_calls, signs, marks, exact, server=server
        )

    def find_text_calls(self, name: str, model: str) -> TextCalls:
        """Return the format of text calls for a model; the first pattern that matches counts."""
        for pattern, form in self.text_calls.get(name, {}).items():
            if fnmatchcase(model, pattern):
                return form
        return ""


class Routes:
    """Maps model names to upstreams."""

    def __init__(self, upstreams: UpstreamSet, models: Mapping[str, Sequence[str]], agents: Iterable[str] = ()) -> None:
        self._upstreams = upstreams
        self._agents = tuple(agents)
        """Names of agents, which are resolved before routing."""
        self._exact = {name: tuple(targets) for name, targets in models.items() if "*" not in name}
        patterns = [(name, tuple(targets)) for name, targets in models.items() if "*" in name]
        self._patterns = sorted(patterns, key=lambda pattern: (-len(pattern[0]), pattern[0]))
        self._cache: dict[str, tuple[Target, ...]] = {}

    def find_tool_limit(self, model: str) -> int:
        """Return how many tools every target of a model takes."""
        targets = self.find_targets(model)
        return min(traits_for(one.upstream.dialect, one.model, "", one.server).tools_max for one in targets)

    def find_search_tool(self, model: str) -> NativeTool | None:
        """Return the web search of the vendor of a model's first target; None if it has none."""
        target = self.find_targets(model)[0]
        return find_tool_for("search", traits_for(target.upstream.dialect, target.model, "", target.server))

    @property
    def names(self) -> tuple[str, ...]:
        """The configured model names without patterns, which may be listed to clients."""
        return tuple(self._exact)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """All upstreams; one that serves several dialects is listed once for each."""
        models = dict.fromkeys(map(default_model, KINDS))
        found = [select(model) for select in self._upstreams.by_name.values() for model in models]
        return tuple({id(upstream): upstream for upstream in found}.values())

    def find_named(self, name: str, model: str) -> Target | None:
        """Return the target for a model at a named upstream; None if there is no such upstream."""
        return self._upstreams.build_target(name, model) if name in self._upstreams.by_name else None

    def target_for(self, upstream: Upstream) -> Target:
        """Return the target for a request to an upstream that is not about a model."""
        return Target(upstream, "", self._upstreams.deadlines.get(upstream.name, Deadlines()))

    def find_targets(self, model: str) -> tuple[Target, ...]:
        """Return the targets for a model, in the order to try them; raises `Problem` if there is none."""
        targets = self._cache.get(model)
        if targets is None:
            targets = self._resolve(model)
            if len(self._cache) > _MAX_CACHED:
                self._cache.clear()
            self._cache[model] = targets
        return targets

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
        name, _, upstream_model = target.partition("/")
        if upstream_model == "*":
            return self._upstreams.build_target(name, model)
        return self._upstreams.build_target(name, upstream_model.replace("*", matched, 1))

    def _find_by_family(self, model: str) -> tuple[Target, ...]:
        """Return the first upstream whose model family matches, or the only upstream there is."""
        kinds = self._upstreams.kinds
        found = [name for kind in KINDS if _has_family(kind, model) for name in kinds if kinds[name] == kind]
        if found:
            return (self._upstreams.build_target(found[0], model),)
        if len(kinds) == 1 and not self._exact and not self._patterns:
            return (self._upstreams.build_target(next(iter(kinds)), model),)
        if model in self._agents:
            message = f"{model!r} is an agent and cannot be used here; use the name of a model"
            raise Problem("not_found", message, code="model_not_found")
        names = ", ".join(sorted((*self._exact, *(pattern for pattern, _ in self._patterns), *self._agents))[:20])
        hint = f"configured models: {names}" if names else "use `upstream/model` or add it to [models]"
        raise Problem("not_found", f"no upstream is configured for the model {model!r}; {hint}", code="model_not_found")


_MAX_CACHED = 1000


def default_model(kind: str) -> str:
    """Return the default model of an upstream kind."""
    return dialect_named(KINDS[kind].dialects[0]).api.default_model


def _has_family(kind: str, model: str) -> bool:
    """Return whether a model name belongs to a model family of an upstream kind."""
    patterns = (dialect_named(name).api.model_names for name in KINDS[kind].dialects)
    return any(pattern and re.match(pattern, model) for pattern in patterns)
