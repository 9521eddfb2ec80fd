"""The state of one request while it is adapted to a target, and the traits of the target's model."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache

from msgspec import Struct, field, structs

from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.core.traits import TextCalls, Traits
from dragoman.core.value import Value
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.pairing import pair_calls
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.tools_cache import ToolsCache, ToolSet
from dragoman.interpreter.translation import Links
from dragoman.interpreter.undo import Arguments, Undo, alias_name, qualify_name

NO_LIMIT = 1 << 30
ENVELOPES = frozenset({"code_assist"})
"""Forms of a dialect in which a client may speak through an envelope."""
STORED_ELSEWHERE = "only the server of its own vendor keeps what this refers to: send that itself"
"""Why a request is refused that is not whole without what it refers to."""


class Adaptation(Struct):
    """One request on its way to one target."""

    traits: Traits
    ledger: Ledger
    source_issuer: str
    model: str = ""
    """The model at the target; empty for the one that the caller names."""
    max_tokens: int = NO_LIMIT
    """The most tokens the answer may have: the caller's limit, else the model's."""
    validated: bool = False
    """Some tool wants its calls held to its schema, and the mode says so for all."""
    can_force: bool = True
    """The model can be forced to call a tool."""
    names: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    custom: frozenset[str] = frozenset()
    arguments: Arguments = field(default_factory=dict[str, tuple[ArgumentUndo, ...]])
    history_changes: Arguments = {}
    """Those of them that have to be done to the arguments of calls in the history as well."""
    single_call: bool = False
    """One call at a time is wanted, and the target has no switch for it."""
    has_cache_marks: bool = False
    """Some part of the history has a cache mark."""
    links: Links | None = None
    """What was fetched for links; None where nobody fetches."""
    instructions: list[str] = field(default_factory=list[str])
    """What the target has no field for and is asked for in words."""
    tool_set: ToolSet | None = None
    """The request's tools as the cache has them; None for those that did not come as one array."""
    tools_cache: ToolsCache | None = None
    written_tools: bytes = b""
    """The adapted tools as the target's dialect writes them, if the cache knows that."""
    runs: int = 0
    unnamed: int = 0
    """How many runs of the model's messages, and calls without an id, came before these messages."""

    def alias_tool(self, name: str, namespace: str = "") -> str:
        """Return what the target calls the tool, and remember it for the way back."""
        traits = self.traits
        alias = alias_name(qualify_name(name, namespace) if namespace and not traits.namespaces else name, traits)
        if alias != name:
            self.names[alias] = (namespace, name)
        return alias

    def pair(self, messages: list[Message]) -> list[Message]:
        """Pair calls and results, and count on from the runs and calls that came before these messages."""
        return pair_calls(messages, self.traits, self.ledger, runs=self.runs, unnamed=self.unnamed)

    def report_notes(self, notes: tuple[Note, ...], field: str, owner: Value | None = None) -> None:
        """Report what converting the schema in `field` changed."""
        if not notes:
            return
        place = self.ledger.find_pointer(field, owner)
        for note in notes:
            book = self.ledger.report_dropped if note.kind == "dropped" else self.ledger.report_approximated
            book(place + note.where, note.what)

    def build_undo(self) -> Undo:
        """Return the way back."""
        return Undo(self.names, self.custom, self.arguments, self.single_call)


_PLATFORM_PREFIX = re.compile(r"^(?:ft:)?(?:[a-z-]+\.)*(?=[a-z])")
"""What platforms put before a name beside a path: `us.anthropic.`, `openai.`, `ft:`."""
_PLATFORM_SUFFIX = re.compile(r"[:@].*$|-20\d{6}.*$")
"""What they put behind it: `@20260901`, `:0`, `:free`; and a date, which is no version."""
_VERSION_FIRST = re.compile(r"^claude-([4-9](?:-\d{1,2})?)-([a-z]+)")


def strip_platform(model: str) -> str:
    """Return what a model is called in the rows, whatever a platform makes of its name."""
    name = _PLATFORM_SUFFIX.sub("", _PLATFORM_PREFIX.sub("", model.lower().rpartition("/")[2]), count=1)
    if name.startswith("claude-"):
        name = _VERSION_FIRST.sub(r"claude-\2-\1", name.replace(".", "-"))
    return name


@lru_cache(maxsize=1024)
def traits_for(dialect: str, model: str, text_calls: TextCalls = "") -> Traits:
    """Return the row for `model` behind `dialect`; with `text_calls` tools are told to it in words."""
    if text_calls:
        return structs.replace(traits_for(dialect, model), text_calls=text_calls)
    there = DIALECTS.get(dialect)
    if there is None:
        raise Problem("invalid_request", f"unknown dialect {dialect!r}")
    name = strip_platform(model)
    return next(traits for pattern, traits in there.traits if fnmatchcase(name, pattern))
