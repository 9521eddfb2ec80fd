"""JSON pointers (RFC 6901) as strings."""

import re

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def escape(token: str) -> str:
    """Write one reference token."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def unescape(token: str) -> str:
    """Read one reference token."""
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def split(pointer: str) -> list[str]:
    """Return the unescaped tokens of `pointer`."""
    return [unescape(token) for token in pointer.split("/")[1:]]


def from_path(path: str) -> str:
    """Turn a msgspec path such as `$.messages[0].content` into a pointer."""
    return "".join("/" + (name or index) for name, index in _STEP.findall(path))
