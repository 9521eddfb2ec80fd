"""Keeps outputs that are too large for a model, and lets the model read them in chunks.

Rules: ids cannot be guessed, and an artifact is readable only by the owner it was stored for. The total size is
limited; the oldest artifact of the owner with the largest total is evicted first. An artifact is always untrusted
content, whichever tool produced it.
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from uuid import uuid4

from dragoman.core.parts import Content, Data, Text, ToolCall
from dragoman.tools import FunctionTool, ToolFailure, invocation, tool

MAX_SIZE = 64 << 20
CHUNK_SIZE = 64 << 10


class Artifacts:
    """An in-memory artifact store: `Executor(registry, spill=artifacts.spill)` writes, `artifacts.tool` reads."""

    def __init__(self, max_size: int = MAX_SIZE) -> None:
        self._max_size = max_size
        self._entries: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Owner and text, by artifact id."""
        self._sizes: Counter[str] = Counter()

    def spill(self, _call: ToolCall, content: Sequence[Content]) -> str:
        """Store the text and the JSON of an output; return the hint for the model how to read it."""
        text = "\n".join(_text_of(part) for part in content if isinstance(part, Text | Data))
        if not text or len(text) > self._max_size:
            return ""
        name, owner = f"artifact_{uuid4().hex}", _current_owner()
        self._entries[name] = (owner, text)
        self._sizes[owner] += len(text)
        while self._sizes.total() > self._max_size:
            self._evict_one()
        return f"{len(text):,} characters, read_artifact(id={name!r}, start=0) reads them"

    def _evict_one(self) -> None:
        """Evict the oldest artifact of the owner with the largest total."""
        ((greatest, _),) = self._sizes.most_common(1)
        name = next(name for name, (owner, _) in self._entries.items() if owner == greatest)
        self._sizes[greatest] -= len(self._entries.pop(name)[1])
        if self._sizes[greatest] == 0:
            del self._sizes[greatest]

    def read(self, id: str, start: int = 0, length: int = CHUNK_SIZE) -> str:  # noqa: A002  the parameter name in the tool
        """Read a piece of an output that was too large to be shown.

        Args:
            id: the name of the artifact
            start: the first character, counted from 0
            length: how many characters
        """
        owner, text = self._entries.get(id, ("", ""))
        if not text or owner != _current_owner():
            raise ToolFailure(f"there is no artifact {id[:100]!r}; it may be too old. Run the tool again.")
        piece = text[max(start, 0) : max(start, 0) + max(min(length, CHUNK_SIZE), 0)]
        return f"[characters {start:,} to {start + len(piece):,} of {len(text):,}]\n{piece}"

    @property
    def tool(self) -> "FunctionTool[..., str]":
        """The tool that reads artifacts."""
        return tool(name="read_artifact", untrusted=True, max_output=5 * CHUNK_SIZE)(self.read)


def _current_owner() -> str:
    current = invocation()
    return current.owner if current is not None else ""


def _text_of(part: Text | Data) -> str:
    return part.text if isinstance(part, Text) else part.json.decode("utf-8", "replace")
