"""Write a text that a regular expression matches, for the expressions people write in schemas.

Alternatives, groups, classes, repeats and anchors are understood; what looks around or back is passed over, so the
text must be checked. Whatever may be left out is, unless `Chance` says otherwise.
"""

from random import Random

_CLASSES = {
    "d": "0123456789",
    "w": "abcdefghijklmnopqrstuvwxyz0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "s": " ",
    "D": "abcxyzABC-",
    "W": "-.: ",
    "S": "abcxyz019",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_PRINTED = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_.,:;/@ !#$%&'()*+<=>?[]^`{|}~\"\\"
_BEYOND = "éßΩжあ漢"
_PROPERTIES = {"L": "abcxyz", "Lu": "ABCXYZ", "Ll": "abcxyz", "N": "0123456789", "Nd": "0123456789", "P": "-.,:"}
_LONGEST = 10_000
_DEEPEST = 40


def written(pattern: str, least: int = 0, chance: Random | None = None) -> str:
    """Return a text the pattern should match, of at least so many characters where repeats allow it."""
    try:
        return _Writer(pattern, least, chance).write()
    except (IndexError, ValueError, OverflowError, RecursionError):
        return ""


class _Writer:
    """Reads a pattern and writes at the same time; what an alternative that is not taken writes is thrown away."""

    def __init__(self, pattern: str, least: int, chance: Random | None) -> None:
        self._pattern = pattern
        self._at = 0
        self._least = least
        self._chance = chance
        self._groups: list[str] = []

    def write(self) -> str:
        text = self._alternatives(0)
        while self._at < len(self._pattern):  # a stray bracket
            self._at += 1
            text += self._alternatives(0)
        return text

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1]

    def _alternatives(self, depth: int) -> str:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence(depth))
        return options[0] if self._chance is None else self._chance.choice(options)

    def _sequence(self, depth: int) -> str:
        pieces: list[str] = []
        while self._peek() not in {"", "|", ")"}:
            start = self._at
            piece = self._atom(depth)
            low, high = self._repeat()
            times = low
            if high > low:
                short = self._least - sum(map(len, pieces))
                times = min(high, max(low, -(-short // max(1, len(piece)))))
                if self._chance is not None:
                    times = self._chance.randint(times, min(high, times + 3))
            pieces.append(self._repeated(piece, start, times, depth))
        return "".join(pieces)

    def _repeated(self, piece: str, start: int, times: int, depth: int) -> str:
        times = min(times, _LONGEST)
        if self._chance is None or times < 2 or len(piece) > 64:
            return piece * times
        end, texts = self._at, [piece]
        for _ in range(min(times, 64) - 1):
            self._at = start
            texts.append(self._atom(depth))
        self._at = end
        return "".join(texts) + piece * (times - len(texts))

    def _repeat(self) -> tuple[int, int]:
        sign = self._peek()
        low, high = 1, 1
        if sign in {"*", "+", "?"} and sign:
            self._at += 1
            low, high = {"*": (0, _LONGEST), "+": (1, _LONGEST), "?": (0, 1)}[sign]
        elif sign == "{":
            end = self._pattern.find("}", self._at)
            bounds = self._pattern[self._at + 1 : end].split(",") if end > 0 else []
            if not bounds or not all(
                part.strip().isdecimal() or (part == "" and place) for place, part in enumerate(bounds)
            ):
                return 1, 1  # a bracket that stands for itself is read as an atom
            self._at = end + 1
            low = int(bounds[0])
            high = low if len(bounds) == 1 else int(bounds[1]) if bounds[1] else _LONGEST
        if self._peek() in {"?", "+"} and (low, high) != (1, 1):
            self._at += 1
        return min(low, _LONGEST), min(high, _LONGEST)

    def _atom(self, depth: int) -> str:
        sign = self._next()
        match sign:
            case "^" | "$":
                return ""
            case ".":
                return self._any("abcdefghijklmnopqrstuvwxyz0123456789")
            case "(":
                return self._group(depth)
            case "[":
                return self._any(self._set())
            case "\\":
                return self._escape()
            case _:
                return sign

    def _any(self, letters: str) -> str:
        if not letters:
            raise ValueError("nothing to choose from")
        return letters[0] if self._chance is None else self._chance.choice(letters)

    def _group(self, depth: int) -> str:
        silent, captures = False, True
        if self._peek() == "?":
            self._at += 1
            sign = self._next()
            captures = sign in "<P"
            silent = sign in "=!"
            if sign in "<P" and self._peek() in {"=", "!"} and sign == "<":
                self._at += 1
                silent, captures = True, False
            elif sign in "<P":
                self._at = self._pattern.index(">", self._at) + 1
            else:
                while sign not in "=!:>" and self._peek() not in {":", ")", ""}:  # flags
                    self._at += 1
                if sign not in "=!:>" and self._peek() == ":":
                    self._at += 1
        text = self._alternatives(depth + 1)
        self._at += 1
        if captures:
            self._groups.append(text)
        return "" if silent else text

    def _escape(self) -> str:
        sign = self._next()
        if sign in "bBAZzG":
            return ""
        if sign.isdecimal() and sign != "0":
            place = int(sign) - 1
            return self._groups[place] if place < len(self._groups) else ""
        letters = self._class(sign)
        return self._any(letters)

    def _class(self, sign: str) -> str:
        """Letters an escape stands for."""
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in "pP" and self._peek() == "{":
            end = self._pattern.index("}", self._at)
            name = self._pattern[self._at + 1 : end].rpartition("=")[2]
            self._at = end + 1
            inside = _PROPERTIES.get(name, _PROPERTIES.get(name[:1], "abc"))
            return inside if sign == "p" else "".join(letter for letter in _PRINTED if letter not in inside)
        if sign in "xu":
            braced = self._peek() == "{"
            length = self._pattern.index("}", self._at) - self._at + 1 if braced else 2 if sign == "x" else 4
            digits = self._pattern[self._at : self._at + length].strip("{}")
            self._at += length
            if digits[:1] in "dD" and len(digits) == 4 and digits[1] in "89abcdefABCDEF":
                raise ValueError("half a character")
            return chr(int(digits, 16))
        if sign == "c":
            return chr(ord(self._next()) % 32)
        return _CONTROLS.get(sign, sign)

    def _set(self) -> str:
        denied = self._peek() == "^"
        if denied:
            self._at += 1
        letters: list[str] = []
        first = True
        while self._peek() != "]" or first:
            first = False
            low = self._member()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in {"]", ""} and len(low) == 1:
                self._at += 1
                high = self._member()
                letters.extend(chr(code) for code in range(ord(low), min(ord(high[0]), ord(low) + 256) + 1))
            else:
                letters.extend(low)
        self._at += 1
        if not denied:
            # A letter reads better than a sign, and a sign at an edge often is not allowed by the rest.
            return "".join(sorted(dict.fromkeys(letters), key=lambda letter: not letter.isalnum()))
        return "".join(letter for letter in _PRINTED + _BEYOND if letter not in set(letters))

    def _member(self) -> str:
        sign = self._next()
        if sign != "\\":
            return sign
        sign = self._next()
        return "\b" if sign == "b" else self._class(sign)
