"""The difference between two bodies, as lines that a person can read.

JSON is laid out, member by member, and so is that in the events of a stream; what is neither stands as text. Only what
differs is shown, with a little around it. How long it takes is bounded: bodies are as large as clients make them.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher

import msgspec

_AROUND = 3
_MOST_COMPARED = 3000
"""Lines that are compared with each other, beside what both have at their beginning and end."""
_DATA = "data:"


def lines_of(body: bytes) -> list[str]:
    """Return a body as lines."""
    if (laid_out := _laid_out(body)) is not None:
        return laid_out
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return [f"({len(body)} bytes that are no text)"]
    lines: list[str] = []
    for line in text.splitlines():
        event = _laid_out(line[len(_DATA) :].encode()) if line.startswith(_DATA) else None
        if event is None:
            lines.append(line)
        else:
            lines += [f"{_DATA} {event[0]}", *event[1:]]
    return lines


def _laid_out(body: bytes) -> list[str] | None:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        return msgspec.json.format(body, indent=2).decode().splitlines()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def difference(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield lines with their signs: `-` for what came, `+` for what left, a space for both, `@` for our own words."""
    old, new = lines_of(before), lines_of(after)
    begin, end = _shared(old, new)
    changed_old, changed_new = old[begin : len(old) - end], new[begin : len(new) - end]
    yield from _context(old[:begin], tail=True)
    if max(len(changed_old), len(changed_new)) > _MOST_COMPARED:
        yield "@", f"{len(changed_old)} lines became {len(changed_new)}"
    else:
        yield from _compared(changed_old, changed_new)
    yield from _context(old[len(old) - end :], tail=False)


def _shared(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return how many lines both begin with, and how many they end with."""
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - begin) if old[-1 - at] != new[-1 - at]), most - begin)
    return begin, end


def _context(lines: list[str], *, tail: bool) -> Iterator[tuple[str, str]]:
    shown = lines[-_AROUND:] if tail else lines[:_AROUND]
    left_out = len(lines) - len(shown)
    if left_out and tail:
        yield "@", f"{left_out} lines alike"
    for line in shown:
        yield " ", line
    if left_out and not tail:
        yield "@", f"{left_out} lines alike"


def _compared(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            alike = old[old_from:old_to]
            if len(alike) > 2 * _AROUND:
                yield from ((" ", line) for line in alike[:_AROUND])
                yield "@", f"{len(alike) - 2 * _AROUND} lines alike"
                yield from ((" ", line) for line in alike[-_AROUND:])
            else:
                yield from ((" ", line) for line in alike)
        else:
            yield from (("-", line) for line in old[old_from:old_to])
            yield from (("+", line) for line in new[new_from:new_to])
