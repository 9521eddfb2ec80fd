"""The state of one request while it is adapted to a target, and the links that must be fetched for it.

The interpreter fetches nothing. It reports all links that the target does not fetch itself, and takes what was fetched.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from dragoman.core.parts import Link, Media, MediaKind
from dragoman.core.request import Message
from dragoman.core.traits import Traits
from dragoman.core.value import Value
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.pairing import pair_calls
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.tools_cache import ToolsCache, ToolSet
from dragoman.interpreter.undo import Arguments, Undo, full_name, name_alias

_WEB = ("http:", "https:")


class Fetched(Struct, frozen=True):
    """What stands behind a link."""

    media_type: str
    data: str
    """Base64 text."""


class NeededLink(Struct, frozen=True):
    """A link that must be fetched."""

    where: str
    """Where it stands first in the client's document."""
    kind: MediaKind


class Unfetched(Exception):  # noqa: N818  it says what is missing
    """A request cannot be translated before these links, by their addresses, are fetched."""

    def __init__(self, links: dict[str, NeededLink]) -> None:
        super().__init__(f"{len(links)} links are not fetched")
        self.links = links


class Links(Struct):
    """What was fetched for a request, and what must be."""

    known: Mapping[str, Fetched] = {}
    taken: bool = True
    """The upstream fetches links itself."""
    missing: dict[str, NeededLink] = field(default_factory=dict[str, NeededLink])

    def of(self, part: Media, traits: Traits) -> Fetched | None:
        """Return what was fetched for media that the target does not fetch; note it if that is missing."""
        source = part.source
        if not isinstance(source, Link) or not source.url.lower().startswith(_WEB) or part.kind not in traits.media:
            return None
        scheme = source.url.partition(":")[0].lower()
        if self.taken and part.kind in traits.link_kinds and scheme in traits.link_schemes:
            return None
        found = self.known.get(source.url)
        if found is None:
            self.missing.setdefault(source.url, NeededLink(part.where, part.kind))
        return found


NO_LIMIT = 1 << 30
ENVELOPES = frozenset({"code_assist"})
"""Forms of a dialect in which a client may speak through an envelope."""
KEPT_ELSEWHERE = "only the server of its own vendor keeps what this refers to: send that itself"
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
    forced: bool = True
    """The model can be forced to call a tool."""
    names: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    custom: frozenset[str] = frozenset()
    arguments: Arguments = field(default_factory=dict[str, tuple[ArgumentUndo, ...]])
    retold: Arguments = {}
    """Those of them that have to be done to the arguments of calls in the history as well."""
    single: bool = False
    """One call at a time is wanted, and the target has no switch for it."""
    marked: bool = False
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

    def name(self, name: str, namespace: str = "") -> str:
        """Return what the target calls the tool, and remember it for the way back."""
        traits = self.traits
        alias = name_alias(full_name(name, namespace) if namespace and not traits.namespaces else name, traits)
        if alias != name:
            self.names[alias] = (namespace, name)
        return alias

    def pair(self, messages: list[Message]) -> list[Message]:
        """Pair calls and results, and count on from the runs and calls that came before these messages."""
        return pair_calls(messages, self.traits, self.ledger, runs=self.runs, unnamed=self.unnamed)

    def book_notes(self, notes: tuple[Note, ...], field: str, owner: Value | None = None) -> None:
        """Report what converting the schema in `field` changed."""
        if not notes:
            return
        place = self.ledger.place(field, owner)
        for note in notes:
            book = self.ledger.dropped if note.kind == "dropped" else self.ledger.approximated
            book(place + note.where, note.what)

    def undo(self) -> Undo:
        """Return the way back."""
        return Undo(self.names, self.custom, self.arguments, self.single)
