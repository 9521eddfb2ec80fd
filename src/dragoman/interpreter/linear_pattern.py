"""Matches a regular expression in time linear in the text, whatever the expression is.

A model writes the expression, and Python's `re` can take exponential time. This is the common subset of its syntax:
characters and escapes, `.`, classes, groups, alternatives, `*`, `+`, `?`, `{m,n}`, `^` and `$`. Case is ignored, and a
word boundary matches everywhere. What has no such automaton (references to groups, lookaround) is a `ValueError`.
The positions of an expression are the states of its automaton (Glushkov's construction); a set of states is an integer.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

MAX_POSITIONS = 1_000
MAX_DEPTH = 50
"""The most groups in each other."""
MAX_STEPS = 200_000
"""The most transitions that one expression may compute; those computed before are free."""
_START, _END = "\x02", "\x03"
"""The characters for the start and the end of the text."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_CLASS_ESCAPES = frozenset("wWdDsS")
_BOUNDARIES = frozenset("bBAZ")
_REPEAT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_FLAGS = re.compile(r"\(\?[aiLmsux]+\)")
_GROUP = re.compile(r"\((?:\?(?:[aiLmsux]*(?:-[imsx]+)?:|P<\w+>))?")


class _Part(Struct, frozen=True):
    """A part of the expression: the sets of positions that can be first and last, and whether it matches nothing."""

    empty: bool
    first: int
    last: int


_NOTHING = _Part(empty=True, first=0, last=0)


class LinearPattern:
    """A compiled expression."""

    def __init__(self, pattern: str) -> None:
        self._source = pattern
        self._at = self._depth = self._parsed = 0
        self._tests: list[re.Pattern[str] | str] = []
        """What the character of each position must be: itself, or in a class."""
        self._follow: list[int] = []
        self._whole = self._parse_alternatives()
        if self._at < len(pattern):
            raise ValueError(f"unbalanced parenthesis at {self._at}")
        self._cache: dict[tuple[int, str], int] = {}
        self._steps = 0

    def search(self, text: str) -> bool:
        """Return whether the expression matches somewhere; raise `ValueError` if that takes too many steps."""
        if self._whole.empty:
            return True
        states, last = 0, self._whole.last
        for character in (_START, *text.lower(), _END):
            states = self._step(states, character)
            if states & last:
                return True
        return False

    def _step(self, states: int, character: str) -> int:
        key = (states, character)
        known = self._cache.get(key)
        if known is not None:
            return known
        # A match may begin at every character.
        reached = self._whole.first
        for position in _list_bits(states):
            reached |= self._follow[position]
        self._steps += 1 + reached.bit_count()
        if self._steps > MAX_STEPS:
            raise ValueError("the pattern takes too many steps")
        found = 0
        for position in _list_bits(reached):
            test = self._tests[position]
            if test == character if isinstance(test, str) else _is_in(test, character):
                found |= 1 << position
        self._cache[key] = found
        return found

    # Parsing

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _parse_alternatives(self) -> _Part:
        part = self._parse_sequence()
        while self._peek() == "|":
            self._at += 1
            other = self._parse_sequence()
            part = _Part(part.empty or other.empty, part.first | other.first, part.last | other.last)
        return part

    def _parse_sequence(self) -> _Part:
        part = _NOTHING
        while (following := self._peek()) and following not in "|)":
            part = self._join(part, self._parse_repeated())
        return part

    def _join(self, left: _Part, right: _Part) -> _Part:
        self._connect(left.last, right.first)
        first = left.first | right.first if left.empty else left.first
        last = left.last | right.last if right.empty else right.last
        return _Part(left.empty and right.empty, first, last)

    def _connect(self, last: int, first: int) -> None:
        for position in _list_bits(last):
            self._follow[position] |= first

    def _parse_repeated(self) -> _Part:
        start = self._at
        part = self._parse_atom()
        repeat = self._parse_repeat()
        if repeat is None:
            return part
        if self._peek() in ("?", "+"):
            self._at += 1  # lazy or possessive: the same texts match
        if self._peek() in ("*", "+", "?"):
            raise ValueError(f"multiple repeat at {self._at}")
        return self._repeat(part, start, *repeat)

    def _parse_repeat(self) -> tuple[int, int | None] | None:
        following = self._peek()
        found = _REPEAT.match(self._source, self._at)
        if found is not None and (found[1] or found[3]):
            self._at = found.end()
            least = int(found[1] or 0)
            return (least, int(found[3]) if found[3] else None) if found[2] else (least, least)
        if following not in ("*", "+", "?"):
            return None
        self._at += 1
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[following]

    def _repeat(self, part: _Part, start: int, least: int, most: int | None) -> _Part:
        """Return a repeated part; each copy is parsed again from `start`, because it needs positions of its own."""
        if max(least, most or 0) > MAX_POSITIONS or (most is not None and most < least):
            raise ValueError("a repeat is too large, or its bounds are in the wrong order")
        end, whole = self._at, _NOTHING
        copies = max(least if most is None else most, 1)
        for number in range(copies):
            if number:
                self._at = start
                part = self._parse_atom()
            if most is None and number == copies - 1:
                self._connect(part.last, part.first)
            optional = number >= least
            whole = self._join(whole, _Part(part.empty or optional, part.first, part.last))
        self._at = end
        return _NOTHING if most == 0 else whole

    def _parse_atom(self) -> _Part:
        self._parsed += 1
        if self._parsed > 10 * MAX_POSITIONS:
            raise ValueError("the pattern is too large")
        following = self._peek()
        if following == "(":
            return self._parse_group()
        if following in ("*", "+", "?"):
            raise ValueError(f"nothing to repeat at {self._at}")
        if following == "[":
            return self._parse_class()
        self._at += 1
        if following == "\\":
            return self._parse_escape()
        if following == ".":
            return self._add(re.compile(r"[^\x02\x03\n]"))
        return self._add({"^": _START, "$": _END}.get(following, following.lower()))

    def _parse_group(self) -> _Part:
        if flags := _FLAGS.match(self._source, self._at):
            self._at = flags.end()
            return _NOTHING
        opening = _GROUP.match(self._source, self._at)
        self._at = opening.end() if opening is not None else self._at + 1
        if self._peek() == "?":
            raise ValueError("lookaround and references to groups are not supported")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError("too many groups in each other")
        part = self._parse_alternatives()
        if self._peek() != ")":
            raise ValueError("missing closing parenthesis")
        self._at += 1
        self._depth -= 1
        return part

    def _parse_class(self) -> _Part:
        start, at = self._at, self._at + 1
        at += self._source[at : at + 1] == "^"
        at += self._source[at : at + 1] == "]"
        while self._source[at : at + 1] not in ("]", ""):
            at += 2 if self._source[at] == "\\" else 1
        if at >= len(self._source):
            raise ValueError("missing closing bracket")
        self._at = at + 1
        return self._add(_compile_one(self._source[start : at + 1]))

    def _parse_escape(self) -> _Part:
        escaped = self._peek()
        self._at += 1
        if not escaped or escaped in "123456789":
            raise ValueError("a reference to a group, or a backslash at the end")
        if escaped in _BOUNDARIES:
            return {"A": self._add_start, "Z": self._add_end}.get(escaped, lambda: _NOTHING)()
        if escaped in _CLASS_ESCAPES:
            return self._add(_compile_one("\\" + escaped))
        if escaped.isalpha() and escaped not in _ESCAPES:
            raise ValueError(f"bad escape \\{escaped}")
        return self._add(_ESCAPES.get(escaped, escaped))

    def _add_start(self) -> _Part:
        return self._add(_START)

    def _add_end(self) -> _Part:
        return self._add(_END)

    def _add(self, test: re.Pattern[str] | str) -> _Part:
        """Return a part of one new position."""
        position = len(self._tests)
        if position >= MAX_POSITIONS:
            raise ValueError("the pattern is too large")
        self._tests.append(test)
        self._follow.append(0)
        return _Part(empty=False, first=1 << position, last=1 << position)


def _compile_one(source: str) -> re.Pattern[str]:
    """Compile an expression that matches one character."""
    try:
        return re.compile(source, re.IGNORECASE)
    except re.error as error:
        raise ValueError(str(error)) from None


def _is_in(test: re.Pattern[str], character: str) -> bool:
    return character not in (_START, _END) and test.match(character) is not None


def _list_bits(states: int) -> Iterable[int]:
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest
