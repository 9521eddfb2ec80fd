"""Names of external tools: `server__tool`, in the letters that every vendor takes, and no longer than any allows.

Rules: a name depends on the server's configured name and the tool's own, on nothing else, so that it is the same
tomorrow. What had to be changed carries a hash of what it was, so that two tools do not become one.
"""

import hashlib
import re

from dragoman.tools.handler import joined

LONGEST = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HASH = 8


def tool_name(server: str, tool: str) -> str:
    """Return the name by which models call a tool."""
    whole = joined(server, tool)
    plain = _FOREIGN.sub("_", whole)
    if plain == whole and len(whole) <= LONGEST:
        return whole
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: LONGEST - _HASH - 1]}_{mark}"
