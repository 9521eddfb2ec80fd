"""The tools cache: what was made of arrays of tools, by their bytes.

A conversation sends the same tools with every request, and adapting and writing them costs more than all else in it.
What is kept depends on nothing but the bytes, the dialect they were read in and the row of traits they were adapted to:
the choice among tools, the history and the settings are applied afterwards. The cache is bounded by bytes, and what was
not used for longest goes first. There is no lock: a race can lose an entry, and nothing else.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from dragoman.core.request import Tool
from dragoman.core.traits import Traits
from dragoman.dialects.record import Dialect, Tools
from dragoman.interpreter.ledger import Entries
from dragoman.interpreter.schema.plain import PlainProof, prove_plain
from dragoman.interpreter.undo import Arguments

NO_PROOFS: Mapping[str, PlainProof] = {}
_TOOL_COST = 2 << 10
"""Bytes that a tool takes beside its JSON: the values that were read and adapted."""
_MAX_TARGETS = 8
"""Rows of traits for which one array is kept adapted."""


class AdaptedTools(Struct, frozen=True, eq=False):
    """Tools as one row of traits takes them, and everything that adapting them had a say in."""

    traits: Traits
    tools: Tools
    names: dict[str, tuple[str, str]]
    arguments: Arguments
    history_changes: Arguments
    """Those of the arguments that have to be changed in calls of the history as well."""
    custom: frozenset[str]
    validated: bool
    """Some tool wants its calls held to its schema, and the target says so for all."""
    losses: Entries
    written: bytes = b""
    """The array as the target's dialect writes it."""


class ToolSet(Struct, eq=False):
    """An array of tools that was read, and what is known of it."""

    tools: Tools
    size: int
    is_valid: bool = False
    """The tools were validated, and nothing is wrong with them."""
    is_distinct: bool = False
    """The bytes were searched for duplicate keys, and have none."""
    is_kept: bool = False
    """It is in the cache, and its size counts there."""
    adapted: list[AdaptedTools] = field(default_factory=list[AdaptedTools])
    _proofs: Mapping[str, PlainProof] | None = None

    @property
    def proofs(self) -> Mapping[str, PlainProof]:
        """What one read of each schema proves, by where its tool stands: adapting and validating rest on it."""
        if self._proofs is None:
            functions = [tool for tool in self.tools if isinstance(tool, Tool) and tool.parameters is not None]
            self._proofs = {tool.where: prove_plain(tool.parameters or b"") for tool in functions}
        return self._proofs


_Key = tuple[str, str, bytes]
"""The dialect's name, where the array stands in the document, and its bytes."""


class ToolsCache:
    """Arrays of tools, about `most` bytes of them with all that was made of them."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._sets: dict[_Key, ToolSet] = {}
        """What was not used for longest first."""

    def find(self, dialect: Dialect, raw: bytes, where: str) -> ToolSet | None:
        """Return an array that was read before."""
        key = (dialect.name, where, raw)
        found = self._sets.pop(key, None)
        if found is not None:
            self._sets[key] = found
        return found

    def read(self, dialect: Dialect, raw: bytes, where: str) -> ToolSet:
        """Read the array of tools that stands at `where`; raise `Malformed` if that cannot be done."""
        found = self.find(dialect, raw, where)
        if found is None:
            tools = dialect.read_tools(raw, where)
            found = ToolSet(tools, 2 * len(raw) + _TOOL_COST * (1 + len(tools)))
            if found.size <= self._max_bytes // 8:
                self._sets[dialect.name, where, raw] = found
                found.is_kept = True
                self._resize(found, found.size)
        return found

    def store(self, tool_set: ToolSet, adapted: AdaptedTools) -> None:
        """Keep tools adapted to one more row of traits."""
        if len(tool_set.adapted) >= _MAX_TARGETS:
            gone = tool_set.adapted.pop(0)
            tool_set.size -= 2 * len(gone.written)
            self._resize(tool_set, -2 * len(gone.written))
        tool_set.adapted.append(adapted)
        tool_set.size += 2 * len(adapted.written)
        self._resize(tool_set, 2 * len(adapted.written))

    def _resize(self, tool_set: ToolSet, by: int) -> None:
        """Count what an array grew by, and evict others while that is too much."""
        if not tool_set.is_kept:
            return
        self._size += by
        while self._size > self._max_bytes and self._sets:
            evicted = self._sets.pop(next(iter(self._sets)))
            evicted.is_kept = False
            self._size -= evicted.size
