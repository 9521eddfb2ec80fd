"""Read what a docstring says of a function and of its parameters, in the styles of Google, NumPy and reST.

Rules: the description is the prose before the first section. A section that is not about parameters (what is returned,
raised, shown) is for readers of the code and left out. Nothing here fails: a docstring in no known style is all prose.
"""

import inspect
import re
from collections.abc import Iterator

from msgspec import Struct

_PARAMETERS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters")
_OTHERS = ("returns", "return", "yields", "yield", "raises", "raise", "warns", "example", "examples", "note", "notes")
_MORE = ("see also", "references", "attributes", "warnings", "todo")
_SECTIONS = frozenset((*_PARAMETERS, *_OTHERS, *_MORE))
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_FIELD = re.compile(r"\s*[:@](\w+)(?:\s+([^:]*?))?\s*:\s*(.*)")
_FIELD_WORDS = ("param", "parameter", "arg", "argument", "key", "keyword")


class Described(Struct, frozen=True):
    """What a docstring says."""

    description: str
    parameters: dict[str, str]


def described(docstring: str | None) -> Described:
    """Read a docstring."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    prose: list[str] = []
    parameters: dict[str, str] = {}
    at = 0
    while at < len(lines):
        title, body = _section(lines, at)
        if title:
            end = _end(lines, body, underlined=body - at == 2)
            if title in _PARAMETERS:
                items = _numpy_items if body - at == 2 else _google_items
                parameters.update(items(lines[body:end]))
            at = end
        elif field := _FIELD.fullmatch(lines[at]):
            end = _end_of_field(lines, at + 1)
            if field[1] in _FIELD_WORDS and field[2]:
                parameters[field[2].split()[-1].lstrip("*")] = _joined([field[3], *lines[at + 1 : end]])
            at = end
        else:
            prose.append(lines[at])
            at += 1
    return Described("\n".join(prose).strip(), {name: text for name, text in parameters.items() if text})


def _section(lines: list[str], at: int) -> tuple[str, int]:
    """Return the title of a section that begins here and where its body does; "" where none begins."""
    title = lines[at].strip().lower()
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if title in _SECTIONS and re.fullmatch(r"\s*-{3,}\s*", after):
        return title, at + 2
    known = title.endswith(":") and title[:-1].strip() in _SECTIONS and lines[at][:1].strip() != ""
    return (title[:-1].strip(), at + 1) if known and (not after.strip() or after[:1].isspace()) else ("", at)


def _end(lines: list[str], body: int, *, underlined: bool) -> int:
    """Return where a section ends: at the next title or, where bodies are indented, at what is not."""
    for at in range(body, len(lines)):
        if _section(lines, at)[0] or (not underlined and lines[at][:1].strip()):
            return at
    return len(lines)


def _end_of_field(lines: list[str], start: int) -> int:
    return next((at for at in range(start, len(lines)) if not lines[at][:1].isspace()), len(lines))


def _google_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    yield from _items(lines, min(indents, default=0), _GOOGLE_ITEM)


def _numpy_items(lines: list[str]) -> Iterator[tuple[str, str]]:
    for names, text in _items(lines, 0, _NUMPY_ITEM):
        for name in names.split(","):
            yield name.strip().lstrip("*"), text


def _items(lines: list[str], indent: int, form: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Iterate the items that begin at `indent`; what is indented more goes on with the one before."""
    name, text = "", list[str]()
    for line in lines:
        begins = line.strip() and len(line) - len(line.lstrip()) == indent
        found = form.fullmatch(line.strip()) if begins else None
        if found:
            yield name, _joined(text)
            name, text = found[1], list(found.groups()[1:])
        else:
            text.append(line)
    yield name, _joined(text)


def _joined(lines: list[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))
