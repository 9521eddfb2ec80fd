"""JSON pointers (RFC 6901) as strings."""

import re
from collections.abc import Iterable

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def escape(token: str) -> str:
    """Escape one reference token."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def unescape(token: str) -> str:
    """Unescape one reference token."""
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def split(pointer: str) -> list[str]:
    """Return the unescaped tokens of `pointer`."""
    tokens = pointer.split("/")[1:]
    return [unescape(token) for token in tokens] if "~" in pointer else tokens


def join(tokens: Iterable[str | int]) -> str:
    """Return the pointer of unescaped tokens."""
    return "".join([f"/{escape(str(token))}" for token in tokens])


def from_path(path: str) -> str:
    """Convert a msgspec path such as `$.messages[0].content` to a pointer."""
    return "".join("/" + (name or index) for name, index in _STEP.findall(path))


def to_path(where: str) -> str:
    """Convert a pointer to a path such as `messages[0].content`, the form in which vendors name parameters."""
    steps = (f"[{token}]" if token.isdigit() else f".{token}" for token in split(where))
    return "".join(steps).removeprefix(".")


def fold_case(pointer: str) -> str:
    """Return a pointer in one form for camelCase and snake_case names."""
    return pointer.replace("_", "").lower()
