"""The forms in which a model writes a call: how each begins, and what must follow.

    <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>

    TOOL_CALL: get_weather
    ARGUMENTS: {"city": "Paris"}

The words are matched in any letter case. The first form may be anywhere, hold several calls, and lack its end; the
second begins a line, and its second line may be missing. Either may be in a code fence, and so may the JSON in it; a
fence whose language is `tool_call` is as good as the tags. JSON without any of these words is never a call: it may be
what the user asked to see.

A real decoder decides whether something is JSON; the scan only finds where it ends. Nothing is repaired: what cannot be
parsed, or can be parsed in two ways, is no call. The one exception is a raw line break in a string, which has only one
meaning.
"""

import json as decoding
import re
from typing import Any, NoReturn

from msgspec import Raw, Struct

from dragoman.wire import json

_IN_STRING = re.compile(r'["\\]')
_OUTSIDE = re.compile(r'["{}\[\]]')
_CLOSING = {"{": "}", "[": "]"}
_DEEPEST = 200
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_BESIDE = frozenset({"id", "type"})
NO_ARGUMENTS = "{}"


class Unreadable(ValueError):  # noqa: N818  it says what the text is
    """What stands where a call should be is none."""


class UnreadableText(str):
    """Text in which a call stands that cannot be read."""

    __slots__ = ()


class Written(Struct, frozen=True):
    """A call as the model wrote it."""

    name: str
    arguments: str
    """A JSON object, in the model's own characters."""
    doubt: str = ""
    """What it was read from, if only the end of the text tells that it is whole."""


class Scan:
    """Finds the end of an object or array, whatever pieces it comes in."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False
        self._size = 0
        self.end = 0
        """How long the value is, once that is known."""
        self.is_over = False
        """The end is known, or that there is none."""

    def feed(self, text: str) -> bool:
        """Take more text; tell whether that was enough."""
        at = 0
        while at < len(text) and not self.is_over:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_IN_STRING if self._in_string else _OUTSIDE).search(text, at)
            if found is None:
                break
            at = found.end()
            self._take(found[0], self._size + at)
        self._size += len(text)
        return self.is_over

    def _take(self, character: str, end: int) -> None:
        if character == '"':
            self._in_string = not self._in_string
        elif character == "\\":
            self._escaped = True
        elif character in _CLOSING:
            self._open.append(_CLOSING[character])
            self.is_over = len(self._open) > _DEEPEST
        elif self._open.pop() != character:
            self.is_over = True
        elif not self._open:
            self.end = end
            self.is_over = True


def calls_in(text: str) -> tuple[Written, ...]:
    """Read an object as a call, or an array as several."""
    text = _checked(text)
    try:
        entries = json.decode_array(text) if text.startswith("[") else [Raw(text.encode())]
        calls = tuple(_call(json.decode_object(entry)) for entry in entries)
    except json.Malformed:
        raise Unreadable from None
    if not calls:
        raise Unreadable
    return calls


def arguments_in(text: str) -> str:
    """Read an object as the arguments of a call."""
    if not text.startswith("{"):
        raise Unreadable
    return _checked(text)


def _checked(text: str) -> str:
    """Return a value that a decoder has read, in the same characters if they are strict JSON."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise Unreadable from None
    if end != len(text):
        raise Unreadable
    try:
        json.require_json(text)
    except json.Malformed:
        return _again(value)
    except UnicodeEncodeError:
        raise Unreadable from None
    return text


def _again(value: Any) -> str:
    """Write a value that was read leniently as strict JSON."""
    try:
        told = decoding.dumps(value, ensure_ascii=False, allow_nan=False)
        told.encode()  # half a character, in an escape, is no text
    except ValueError:
        raise Unreadable from None
    return told


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Unreadable
    return members


def _no_number(_word: str) -> NoReturn:
    raise Unreadable


_DECODER = decoding.JSONDecoder(strict=False, object_pairs_hook=_once, parse_constant=_no_number)


def _call(members: dict[str, Raw]) -> Written:
    inner = members.get("function")
    if inner is not None and json.first_byte(inner) == b"{" and members.keys() <= {"function", *_BESIDE}:
        members = json.decode_object(inner)
    names = [name for name in _NAMES if name in members]
    given = [name for name in _ARGUMENTS if name in members]
    if len(names) != 1 or len(given) > 1 or members.keys() - {*names, *given, *_BESIDE}:
        raise Unreadable
    name = json.decode(members[names[0]])
    if not isinstance(name, str) or not name:
        raise Unreadable
    return Written(name, _arguments(members[given[0]]) if given else NO_ARGUMENTS)


def _arguments(raw: Raw) -> str:
    """Return what stands for arguments; text that is an object is one, as OpenAI writes them."""
    if json.first_byte(raw) == b"{":
        return bytes(raw).decode()
    match json.decode(raw):
        case None | "":
            return NO_ARGUMENTS
        case str(text) if json.is_object(text):
            return text
        case _:
            raise Unreadable


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


class BrokenCall(Struct, frozen=True):
    """A call that cannot be read; one in tags ends with them, of any other nobody knows where it ends."""

    is_tagged: bool
    is_fenced: bool = False
    """A code fence stands around it."""


class ParsedCalls(Struct, frozen=True):
    """Calls up to `end`, and what may still close them, the innermost last."""

    calls: tuple[Written, ...]
    end: int
    closers: tuple[str, ...] = ()
    is_open: bool = False
    """Nothing but what follows tells that it is whole."""


Attempt = NoCall | BrokenCall | ParsedCalls


class CallForm:
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
            case ParsedCalls(calls, end, closers, is_open):
                return ParsedCalls(calls, end, (FENCE, *closers), is_open)
            case BrokenCall(is_tagged):
                return BrokenCall(is_tagged, is_fenced=True)
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
            return ParsedCalls((Written(name, NO_ARGUMENTS),), end, is_open=True)
        # Arguments in parentheses, or a name of several words that has arguments: a call, but none that can be read.
        is_meant = self.character(name_end) == "(" or self._arguments(self._line_end(end))
        return BrokenCall(is_tagged=False) if is_meant else NoCall(name_end)

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
            return ParsedCalls(calls_in(self.text[at:end]), end, closers)
        except Unreadable:
            return BrokenCall(END_TAG in closers)

    def _given(self, name: str, at: int) -> Attempt:
        """Read the arguments of a call, or that it has none."""
        begin, is_fenced = self._fence(self.skip(at, WHITE))
        ticked = self.skip(begin, "`", 1)
        found = self.character(ticked)
        if found == "{":
            closers = (FENCE,) if is_fenced else ("`",) if ticked > begin else ()
            try:
                end = self._value_end(ticked)
                return ParsedCalls((Written(name, arguments_in(self.text[ticked:end])),), end, closers)
            except Unreadable:
                return BrokenCall(is_tagged=False)
        nothing = (Written(name, NO_ARGUMENTS),)
        if self.has(begin, "null"):
            return ParsedCalls(nothing, begin + len("null"))
        if not found or self.has(self.skip(begin, ORNAMENTS, 2), CALL):
            return ParsedCalls(nothing, at, is_open=True)
        return BrokenCall(is_tagged=False)

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
