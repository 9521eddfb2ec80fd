"""Definitions of tools, held to what they were: a tool that was looked at must not become another.

Rules: the first definition of a tool that is seen is accepted, unless the configuration pins another; from then on a
different one is blocked, also from a server that was started anew, until somebody accepts it. What is accepted is held
as long as the process runs; the configuration is what holds longer.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from dragoman.mcp.sdk import types

_HASH = 32
_MOST = 10_000
"""Names that are remembered of one server: more is no set of tools, but an attack on memory."""
_SAID = {"name", "title", "description", "input_schema", "output_schema", "annotations"}


def fingerprint(tool: types.Tool) -> str:
    """Return a hash of all that a definition tells of what a tool is and how it is called."""
    said = tool.model_dump(by_alias=True, mode="json", exclude_none=True, include=_SAID)
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()[:_HASH]


class Pins:
    """The definitions of one server's tools that are accepted."""

    def __init__(self, pinned: Mapping[str, str]) -> None:
        self._accepted = dict(pinned)

    def accepted(self, tool: str) -> str:
        """Return the hash that is accepted; "" if there is none."""
        return self._accepted.get(tool, "")

    def admit(self, tool: str, found: str) -> bool:
        """Tell whether a definition may be used; the first one of a tool may."""
        if tool not in self._accepted and len(self._accepted) < _MOST:
            self._accepted[tool] = found
        return self._accepted.get(tool) == found

    def accept(self, tool: str, found: str) -> None:
        """Let a definition be used from now on, and no other."""
        self._accepted[tool] = found
