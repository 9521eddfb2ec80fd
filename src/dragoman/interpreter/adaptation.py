"""The state of one request while it is adapted to a target, and the traits of the target's model."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct, structs

from dragoman.core.parts import ToolCall, ToolSearch
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message
from dragoman.core.traits import TextCalls, Traits
from dragoman.core.value import Value
from dragoman.dialects.record import Dialect, ServerRow
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.pairing import pair_calls
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.tools_cache import ToolsCache, ToolSet
from dragoman.interpreter.translation import Links
from dragoman.interpreter.undo import Arguments, Undo, alias_name, qualify_name

NO_LIMIT = 1 << 30
STORED_ELSEWHERE = "this refers to something that only its own vendor's server stores: send the content itself"
"""The error message for a request that is incomplete without the stored object it refers to."""
EMPTY_TEXT_REJECTED = "the target rejects text that is empty or only white space"


class Adaptation(Struct):
    """The state of adapting one request to one target."""

    traits: Traits
    ledger: Ledger
    source_issuer: str
    model: str = ""
    """The model at the target; empty for the model name in the caller's request."""
    max_tokens: int = NO_LIMIT
    """The maximum number of tokens of the answer: the caller's limit, else the model's."""
    validated: bool = False
    """Some tool is strict, and the target's calling mode enforces the schemas of all tools."""
    can_force: bool = True
    """The model can be forced to call a tool."""
    names: dict[str, tuple[str, str]] = {}
    custom: frozenset[str] = frozenset()
    natives: dict[str, str] = {}
    """As in `Undo`."""
    arguments: Arguments = {}
    history_changes: Arguments = {}
    """The argument changes that also apply to calls in the history."""
    single_call: bool = False
    """The caller allows one call at a time, and the target has no setting for that."""
    has_cache_marks: bool = False
    """Some part of the history has a cache mark."""
    adds_cache_marks: bool = False
    """A request without a cache mark gets some, where the target caches only what is marked."""
    links: Links | None = None
    """The media fetched for links; None if the caller of the translation fetches none."""
    instructions: list[str] = []
    """Sentences to add to the prompt for options that the target has no field for."""
    tool_set: ToolSet | None = None
    """The cache entry of the request's tools; None for tools that did not come as one array."""
    tools_cache: ToolsCache | None = None
    written_tools: bytes = b""
    """The adapted tools rendered in the target's dialect, if the cache has them."""
    declared: tuple[AnyTool, ...] = ()
    """The client's tools, deferred ones too, if there are any of those."""
    implied_settings: frozenset[str] = frozenset()
    """The settings of a web search that are sent as fields of the request."""
    sent: tuple[AnyTool, ...] = ()
    """The tools as the target gets them."""
    has_tool_search: bool = False
    """The target runs the search for deferred tools."""
    last_search: ToolSearch | None = None
    """A search in the history whose result has not come yet."""
    runs: int = 0
    unnamed: int = 0
    """How many runs of assistant messages, and calls without an id, are in the cached prefix before these messages."""
    calls: int = 0
    """How many calls are in it."""
    turn_functions: frozenset[str] = frozenset()
    """What the caller of the translation can run itself if the target lacks it, such as "search"."""
    missing: dict[str, str] = {}
    """The pointers of declared tools that the target lacks and a caller may run itself, by purpose."""

    def alias_tool(self, name: str, namespace: str = "") -> str:
        """Return the tool's name at the target, and record the alias so that the reply can be restored."""
        traits = self.traits
        alias = alias_name(qualify_name(name, namespace) if namespace and not traits.namespaces else name, traits)
        if alias != name:
            self.names[alias] = (namespace, name)
        return alias

    def alias_call(self, call: ToolCall) -> str:
        """Return the name at the target of the tool of a call."""
        if call.native:
            # A vendor's own tool may have another name than its own, because a function has that.
            return next((name for name, kind in self.natives.items() if kind == call.native), call.name)
        return self.alias_tool(call.name, call.namespace)

    def rejects_text(self, text: str) -> bool:
        """Return whether the target rejects a text because it is empty or only white space."""
        return (not text or text.isspace()) and not self.traits.empty_text

    def pair(self, messages: list[Message]) -> list[Message]:
        """Pair calls and results, numbering runs and calls from those before these messages."""
        return pair_calls(messages, self.traits, self.ledger, runs=self.runs, unnamed=self.unnamed)

    def report_notes(self, notes: tuple[Note, ...], field: str, owner: Value | None = None) -> None:
        """Report the losses of converting the schema in `field`."""
        if not notes:
            return
        pointer = self.ledger.find_pointer(field, owner)
        for note in notes:
            report = self.ledger.report_dropped if note.kind == "dropped" else self.ledger.report_approximated
            report(pointer + note.where, note.what)

    def build_undo(self) -> Undo:
        """Return the record of reversible changes, to be undone in the reply."""
        return Undo(self.names, self.custom, self.arguments, self.natives, self.single_call)


_PLATFORM_PREFIX = re.compile(r"^(?:ft:)?(?:[a-z-]+\.)*(?=[a-z])")
"""What platforms put before a model name, other than a path: `us.anthropic.`, `openai.`, `ft:`."""
_PLATFORM_SUFFIX = re.compile(r"[:@].*$|-20\d{6}.*$")
"""What platforms put after a model name: `@20260901`, `:0`, `:free`, or a date, which is not a version."""


def strip_platform(model: str) -> str:
    """Return a model's name as the traits tables spell it, without the prefixes and suffixes of platforms."""
    name = _PLATFORM_SUFFIX.sub("", _PLATFORM_PREFIX.sub("", model.lower().rpartition("/")[2]), count=1)
    for dialect in DIALECTS.values():
        if dialect.respell_model is not None and re.match(dialect.api.model_names, name):
            name = dialect.respell_model(name)
    return name


@lru_cache(maxsize=1024)
def traits_for(dialect: str, model: str, text_calls: TextCalls = "", server: str = "") -> Traits:
    """Return the traits of `model` behind `dialect`, as the server with the name `server` takes them, if it is known.

    With `text_calls` the model's tools are described in the prompt.
    """
    if text_calls:
        return structs.replace(traits_for(dialect, model, "", server), text_calls=text_calls)
    traits, found, name = find_model_traits(dialect, model), DIALECTS[dialect], strip_platform(model)
    row = found.servers.get(server) if server else _find_server_of_model(found, name)
    if row is None:
        return traits
    variant = next((changes for pattern, changes in row.variants if fnmatchcase(name, pattern)), row.changes)
    return structs.replace(traits, **{**row.changes, **variant})


def find_model_traits(dialect: str, model: str) -> Traits:
    """Return the traits of `model` behind `dialect`, whatever server it is on."""
    found = DIALECTS.get(dialect)
    if found is None:
        raise Problem("invalid_request", f"unknown dialect {dialect!r}")
    name = strip_platform(model)
    return next(traits for pattern, traits in found.traits if fnmatchcase(name, pattern))


def _find_server_of_model(dialect: Dialect, name: str) -> ServerRow | None:
    rows = dialect.servers.values()
    return next((row for row in rows if any(fnmatchcase(name, pattern) for pattern in row.models)), None)
