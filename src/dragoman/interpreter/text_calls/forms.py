"""The forms in which a model writes a call: how each begins, and what has to follow.

    <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>

    TOOL_CALL: get_weather
    ARGUMENTS: {"city": "Paris"}

The words are taken in any letter case. The first form may stand anywhere, hold several calls, and lack its end; the
second begins a line, and its second line may be missing. Either may stand in a code fence, and so may the JSON in it; a
fence whose language is `tool_call` is as good as the tags. JSON without any of these words is never a call: it may be
what the user asked to see.
"""

from msgspec import Struct

from dragoman.interpreter.text_calls.values import NO_ARGUMENTS, Scan, Unreadable, Written, arguments_in, calls_in

WHITE = " \t\r\n\f\v"
BLANK = " \t"
ORNAMENTS = "*`"
"""What Markdown puts around words."""
FENCE = "```"
CALL = "tool_call"
TAG = "<" + CALL
END_TAG = "</" + CALL
RESULT_TAG = "<tool_result"
_QUOTES = ORNAMENTS + "\"'"
_NO_NAME = WHITE + _QUOTES + "(){}[]<>,;"
_LONGEST_NAME = 256
_LONGEST_LANGUAGE = 32
_LONGEST_GAP = 256
"""How much white space may stand between two words of a call."""


class More(Exception):  # noqa: N818  it says what is needed
    """What follows must be seen first."""


class NoCall(Struct, frozen=True):
    """Words that could have begun a call and did not; up to `end` nothing else begins there."""

    end: int


class Broken(Struct, frozen=True):
    """A call that cannot be read; one in tags ends with them, of any other nobody knows where it ends."""

    is_tagged: bool
    is_fenced: bool = False
    """A code fence stands around it."""


class Calls(Struct, frozen=True):
    """Calls up to `end`, and what may still close them, the innermost last."""

    calls: tuple[Written, ...]
    end: int
    closers: tuple[str, ...] = ()
    is_open: bool = False
    """Nothing but what follows tells that it is whole."""


Attempt = NoCall | Broken | Calls


class Form:
    """Text that has come so far, read from a place on; asks for `More` where the text ends too early."""

    def __init__(self) -> None:
        self.text = ""
        self.is_all = False
        """Nothing follows the text."""
        self.scan: Scan | None = None
        """Where a value was looked into that has not ended."""

    def character(self, at: int) -> str:
        """Return a character; none behind the end of it all."""
        if at < len(self.text):
            return self.text[at]
        if self.is_all:
            return ""
        raise More

    def skip(self, at: int, characters: str, most: int = _LONGEST_GAP) -> int:
        """Return the place behind some characters."""
        end = at + most
        while at < end and (found := self.character(at)) and found in characters:
            at += 1
        return at

    def has(self, at: int, word: str) -> bool:
        """Tell whether a word stands at a place, in any letter case."""
        found = self.text[at : at + len(word)]
        if len(found) < len(word) and word.startswith(found.lower()) and not self.is_all:
            raise More
        return found.lower() == word

    def tagged(self, at: int) -> Attempt:
        """Read what stands at the tag of a call."""
        end = at + len(TAG)
        at = end + 1 if self.character(end) in ("s", "S") else end
        at = self.skip(at, BLANK)
        if self.character(at) != ">":
            return NoCall(end)
        begin, is_fenced = self._fence(self.skip(at + 1, WHITE))
        if self.character(begin) not in ("{", "["):
            return NoCall(at + 1)
        return self.values(begin, (END_TAG, FENCE) if is_fenced else (END_TAG,))

    def fenced(self, at: int) -> Attempt:
        """Read what stands at a code fence: a call in it, or code."""
        begin = at + len(FENCE)
        language_end = self._language_end(begin)
        line_end = self.skip(language_end, BLANK)
        if self.character(line_end) not in ("\n", "\r"):
            return NoCall(line_end)
        inside = self.skip(line_end, WHITE)
        if self.text[begin:language_end].lower() in (CALL, CALL + "s") and self.character(inside) in ("{", "["):
            return self.values(inside, (END_TAG, FENCE))
        if self.has(inside, TAG):
            found = self.tagged(inside)
        elif self.has(self.skip(inside, ORNAMENTS, 2), CALL):
            found = self.lined(inside)
        else:
            return NoCall(line_end)
        match found:
            case Calls(calls, end, closers, is_open):
                return Calls(calls, end, (FENCE, *closers), is_open)
            case Broken(is_tagged):
                return Broken(is_tagged, is_fenced=True)
            case _:
                return found

    def lined(self, at: int) -> Attempt:
        """Read what stands at a line that may name a tool to be called."""
        word_end = self.skip(self.skip(at, BLANK), ORNAMENTS, 2) + len(CALL)
        colon = self.skip(self.skip(word_end, ORNAMENTS, 2), BLANK)
        if self.character(colon) != ":":
            return NoCall(word_end)
        begin = name_end = self.skip(colon + 1, BLANK + _QUOTES)
        while (found := self.character(name_end)) and found not in _NO_NAME and name_end - begin < _LONGEST_NAME:
            name_end += 1
        end = self.skip(name_end, BLANK + _QUOTES)
        if name_end == begin:
            return NoCall(colon + 1)
        name = self.text[begin:name_end].strip()
        if not name:
            return NoCall(name_end)
        given = self._arguments(end)
        if given:
            return self._given(name, self.skip(given, "*", 2))
        if self.character(end) in ("", "\n", "\r"):
            return Calls((Written(name, NO_ARGUMENTS),), end, is_open=True)
        # Arguments in parentheses, or a name of several words that has arguments: a call, but none that can be read.
        is_meant = self.character(name_end) == "(" or self._arguments(self._line_end(end))
        return Broken(is_tagged=False) if is_meant else NoCall(name_end)

    def _arguments(self, at: int) -> int:
        """Return the place behind the word for arguments; 0 if it does not follow."""
        following = self.skip(self.skip(at, WHITE), ORNAMENTS, 2)
        if not self.has(following, "arguments"):
            return 0
        colon = self.skip(self.skip(following + len("arguments"), ORNAMENTS, 2), BLANK)
        return colon + 1 if self.character(colon) == ":" else 0

    def _line_end(self, at: int) -> int:
        end = at + _LONGEST_NAME
        while at < end and self.character(at) not in ("", "\n", "\r"):
            at += 1
        return at

    def values(self, at: int, closers: tuple[str, ...]) -> Attempt:
        """Read the JSON form's object or array."""
        try:
            end = self._value_end(at)
            return Calls(calls_in(self.text[at:end]), end, closers)
        except Unreadable:
            return Broken(END_TAG in closers)

    def _given(self, name: str, at: int) -> Attempt:
        """Read the arguments of a call, or that it has none."""
        begin, is_fenced = self._fence(self.skip(at, WHITE))
        ticked = self.skip(begin, "`", 1)
        found = self.character(ticked)
        if found == "{":
            closers = (FENCE,) if is_fenced else ("`",) if ticked > begin else ()
            try:
                end = self._value_end(ticked)
                return Calls((Written(name, arguments_in(self.text[ticked:end])),), end, closers)
            except Unreadable:
                return Broken(is_tagged=False)
        nothing = (Written(name, NO_ARGUMENTS),)
        if self.has(begin, "null"):
            return Calls(nothing, begin + len("null"))
        if not found or self.has(self.skip(begin, ORNAMENTS, 2), CALL):
            return Calls(nothing, at, is_open=True)
        return Broken(is_tagged=False)

    def _fence(self, at: int) -> tuple[int, bool]:
        """Return the place behind the line of a code fence, if one stands here."""
        if not self.has(at, FENCE):
            return at, False
        return self.skip(self._language_end(at + len(FENCE)), WHITE), True

    def _language_end(self, at: int) -> int:
        end = at
        while end - at < _LONGEST_LANGUAGE and (found := self.character(end)) and (found.isalnum() or found in "_-+."):
            end += 1
        return end

    def _value_end(self, at: int) -> int:
        """Return where a value ends."""
        if self.scan is None:
            self.scan = Scan()
            self.scan.feed(self.text[at:])
        scan = self.scan
        if not scan.is_over and not self.is_all:
            raise More
        self.scan = None
        if not scan.end:
            raise Unreadable
        return at + scan.end
