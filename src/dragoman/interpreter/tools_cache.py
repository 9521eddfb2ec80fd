"""The tools cache: parsed, adapted and rendered arrays of tools, looked up by their bytes.

A client sends the same tools with every request, and adapting and rendering them costs more than the rest of the
translation. An entry depends only on the bytes, the dialect they were parsed in and the traits they were adapted to:
tool choice, history and settings are applied afterwards. The cache is bounded by bytes and evicts the least recently
used entries. There is no lock: a race can lose an entry, and nothing else.
"""

from collections.abc import Mapping

from msgspec import Struct

from dragoman.core.request import Tool
from dragoman.core.traits import Traits
from dragoman.dialects.record import Dialect, Tools
from dragoman.interpreter.ledger import Entries
from dragoman.interpreter.schema.plain import PlainProof, prove_plain
from dragoman.interpreter.undo import Arguments

NO_PROOFS: Mapping[str, PlainProof] = {}
_TOOL_COST = 2 << 10
"""Estimated bytes of a tool in addition to its JSON: the parsed and adapted values."""
_MAX_TARGETS = 8
"""For how many traits the adapted tools of one array are cached."""


class AdaptedTools(Struct, frozen=True, eq=False):
    """Tools adapted to one target's traits, and all other results of adapting them."""

    traits: Traits
    tools: Tools
    names: dict[str, tuple[str, str]]
    arguments: Arguments
    history_changes: Arguments
    """The argument changes that also apply to calls in the history."""
    custom: frozenset[str]
    natives: dict[str, str]
    validated: bool
    """Some tool is strict, and the target's calling mode enforces the schemas of all tools."""
    losses: Entries
    missing: dict[str, str] = {}
    """As in `Adaptation`."""
    written: bytes = b""
    """The array rendered in the target's dialect."""


class ToolSet(Struct, eq=False):
    """A parsed array of tools, and what has been derived from it."""

    tools: Tools
    size: int
    is_valid: bool = False
    """The tools were validated and have no errors."""
    is_distinct: bool = False
    """The bytes were searched for duplicate keys and have none."""
    is_kept: bool = False
    """It is in the cache, and its size counts towards the cache's limit."""
    adapted: list[AdaptedTools] = []
    has_deferred: bool | None = None
    """Some tool is deferred, or is a search for such tools; None until a request was adapted."""
    _proofs: Mapping[str, PlainProof] | None = None

    @property
    def proofs(self) -> Mapping[str, PlainProof]:
        """The results of `prove_plain` for the schemas, by the tools' pointers; adapting and validating use them."""
        if self._proofs is None:
            functions = [tool for tool in self.tools if isinstance(tool, Tool) and tool.parameters is not None]
            self._proofs = {tool.where: prove_plain(tool.parameters or b"") for tool in functions}
        return self._proofs


_Key = tuple[str, str, bytes]
"""The dialect's name, the pointer of the array in the document, and its bytes."""


class ToolsCache:
    """A least-recently-used cache of arrays of tools, of about `max_bytes` bytes with the derived values."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._sets: dict[_Key, ToolSet] = {}
        """The least recently used first."""
        self._last: tuple[_Key, ToolSet] | None = None
        """The entry found last. A request looks its tools up twice; to compare them is cheaper than to hash them."""

    def find(self, dialect: Dialect, raw: bytes, where: str) -> ToolSet | None:
        """Return the cached array, or None."""
        key = (dialect.name, where, raw)
        if self._last is not None and self._last[0] == key and self._last[1].is_kept:
            return self._last[1]
        found = self._sets.pop(key, None)
        if found is not None:
            self._sets[key] = found
            self._last = (key, found)
        return found

    def read(self, dialect: Dialect, raw: bytes, where: str) -> ToolSet:
        """Return the array of tools at `where`, from the cache or parsed; raise `Malformed` if it cannot be parsed."""
        found = self.find(dialect, raw, where)
        if found is None:
            tools = dialect.read_tools(raw, where)
            found = ToolSet(tools, 2 * len(raw) + _TOOL_COST * (1 + len(tools)))
            if found.size <= self._max_bytes // 8:
                key = (dialect.name, where, raw)
                self._sets[key] = found
                self._last = (key, found)
                found.is_kept = True
                self._resize(found, found.size)
        return found

    def store(self, tool_set: ToolSet, adapted: AdaptedTools) -> None:
        """Store the tools as adapted to one more target's traits."""
        if len(tool_set.adapted) >= _MAX_TARGETS:
            oldest = tool_set.adapted.pop(0)
            tool_set.size -= 2 * len(oldest.written)
            self._resize(tool_set, -2 * len(oldest.written))
        tool_set.adapted.append(adapted)
        tool_set.size += 2 * len(adapted.written)
        self._resize(tool_set, 2 * len(adapted.written))

    def _resize(self, tool_set: ToolSet, by: int) -> None:
        """Add an array's growth to the size of the cache, and evict the least recently used arrays beyond the limit."""
        if not tool_set.is_kept:
            return
        self._size += by
        while self._size > self._max_bytes and self._sets:
            evicted = self._sets.pop(next(iter(self._sets)))
            evicted.is_kept = False
            self._size -= evicted.size
