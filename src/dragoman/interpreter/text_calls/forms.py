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
_MAX_DEPTH = 200
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_OTHER_MEMBERS = frozenset({"id", "type"})
NO_ARGUMENTS = "{}"


class UnreadableCall(ValueError):  # noqa: N818  it says what the text is
    """What stands where a call should be is none."""


class UnreadableText(str):
    """Text in which a call stands that cannot be read."""

    __slots__ = ()


class WrittenCall(Struct, frozen=True):
    """A call as the model wrote it."""

    name: str
    arguments: str
    """A JSON object, in the model's own characters."""
    pending_text: str = ""
    """What it was read from, if only the end of the text tells that it is whole."""


class JsonScanner:
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
            self._read_mark(found[0], self._size + at)
        self._size += len(text)
        return self.is_over

    def _read_mark(self, character: str, end: int) -> None:
        if character == '"':
            self._in_string = not self._in_string
        elif character == "\\":
            self._escaped = True
        elif character in _CLOSING:
            self._open.append(_CLOSING[character])
            self.is_over = len(self._open) > _MAX_DEPTH
        elif self._open.pop() != character:
            self.is_over = True
        elif not self._open:
            self.end = end
            self.is_over = True


def parse_calls(text: str) -> tuple[WrittenCall, ...]:
    """Read an object as a call, or an array as several."""
    text = _require_json(text)
    try:
        entries = json.decode_array(text) if text.startswith("[") else [Raw(text.encode())]
        calls = tuple(_read_call(json.decode_object(entry)) for entry in entries)
    except json.Malformed:
        raise UnreadableCall from None
    if not calls:
        raise UnreadableCall
    return calls


def parse_arguments(text: str) -> str:
    """Read an object as the arguments of a call."""
    if not text.startswith("{"):
        raise UnreadableCall
    return _require_json(text)


def _require_json(text: str) -> str:
    """Return a value that a decoder has read, in the same characters if they are strict JSON."""
    try:
        value, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        raise UnreadableCall from None
    if end != len(text):
        raise UnreadableCall
    try:
        json.require_json(text)
    except json.Malformed:
        return _to_strict_json(value)
    except UnicodeEncodeError:
        raise UnreadableCall from None
    return text


def _to_strict_json(value: Any) -> str:
    """Write a value that was read leniently as strict JSON."""
    try:
        told = decoding.dumps(value, ensure_ascii=False, allow_nan=False)
        told.encode()  # half a character, in an escape, is no text
    except ValueError:
        raise UnreadableCall from None
    return told


def _require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableCall
    return members


def _reject_number(_word: str) -> NoReturn:
    raise UnreadableCall


_DECODER = decoding.JSONDecoder(strict=False, object_pairs_hook=_require_distinct, parse_constant=_reject_number)


def _read_call(members: dict[str, Raw]) -> WrittenCall:
    inner = members.get("function")
    if inner is not None and json.first_byte(inner) == b"{" and members.keys() <= {"function", *_OTHER_MEMBERS}:
        members = json.decode_object(inner)
    names = [name for name in _NAMES if name in members]
    given = [name for name in _ARGUMENTS if name in members]
    if len(names) != 1 or len(given) > 1 or members.keys() - {*names, *given, *_OTHER_MEMBERS}:
        raise UnreadableCall
    name = json.decode(members[names[0]])
    if not isinstance(name, str) or not name:
        raise UnreadableCall
    return WrittenCall(name, _read_call_arguments(members[given[0]]) if given else NO_ARGUMENTS)


def _read_call_arguments(raw: Raw) -> str:
    """Return what stands for arguments; text that is an object is one, as OpenAI writes them."""
    if json.first_byte(raw) == b"{":
        return bytes(raw).decode()
    match json.decode(raw):
        case None | "":
            return NO_ARGUMENTS
        case str(text) if json.is_object(text):
            return text
        case _:
            raise UnreadableCall


WHITESPACE = " \t\r\n\f\v"
BLANK = " \t"
MARKDOWN_MARKS = "*`"
"""What Markdown puts around words."""
FENCE = "```"
CALL = "tool_call"
TAG = "<" + CALL
END_TAG = "</" + CALL
RESULT_TAG = "<tool_result"
_QUOTES = MARKDOWN_MARKS + "\"'"
_NAME_END = WHITESPACE + _QUOTES + "(){}[]<>,;"
_MAX_NAME = 256
_MAX_LANGUAGE = 32
_MAX_GAP = 256
"""How much white space may stand between two words of a call."""


class NeedsMoreText(Exception):  # noqa: N818  it says what is needed
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

    calls: tuple[WrittenCall, ...]
    end: int
    closers: tuple[str, ...] = ()
    is_open: bool = False
    """Nothing but what follows tells that it is whole."""


Attempt = NoCall | BrokenCall | ParsedCalls


class CallParser:
    """Text that has come so far, read from a place on; asks for `More` where the text ends too early."""

    def __init__(self) -> None:
        self.text = ""
        self.is_complete = False
        """Nothing follows the text."""
        self.scan: JsonScanner | None = None
        """Where a value was looked into that has not ended."""

    def get_character(self, at: int) -> str:
        """Return a character; none behind the end of it all."""
        if at < len(self.text):
            return self.text[at]
        if self.is_complete:
            return ""
        raise NeedsMoreText

    def skip(self, at: int, characters: str, limit: int = _MAX_GAP) -> int:
        """Return the place behind some characters."""
        end = at + limit
        while at < end and (found := self.get_character(at)) and found in characters:
            at += 1
        return at

    def starts_with(self, at: int, word: str) -> bool:
        """Tell whether a word stands at a place, in any letter case."""
        found = self.text[at : at + len(word)]
        if len(found) < len(word) and word.startswith(found.lower()) and not self.is_complete:
            raise NeedsMoreText
        return found.lower() == word

    def read_tagged(self, at: int) -> Attempt:
        """Read what stands at the tag of a call."""
        end = at + len(TAG)
        at = end + 1 if self.get_character(end) in ("s", "S") else end
        at = self.skip(at, BLANK)
        if self.get_character(at) != ">":
            return NoCall(end)
        begin, is_fenced = self._skip_fence(self.skip(at + 1, WHITESPACE))
        if self.get_character(begin) not in ("{", "["):
            return NoCall(at + 1)
        return self.read_json(begin, (END_TAG, FENCE) if is_fenced else (END_TAG,))

    def read_fenced(self, at: int) -> Attempt:
        """Read what stands at a code fence: a call in it, or code."""
        begin = at + len(FENCE)
        language_end = self._find_language_end(begin)
        line_end = self.skip(language_end, BLANK)
        if self.get_character(line_end) not in ("\n", "\r"):
            return NoCall(line_end)
        inside = self.skip(line_end, WHITESPACE)
        if self.text[begin:language_end].lower() in (CALL, CALL + "s") and self.get_character(inside) in ("{", "["):
            return self.read_json(inside, (END_TAG, FENCE))
        if self.starts_with(inside, TAG):
            found = self.read_tagged(inside)
        elif self.starts_with(self.skip(inside, MARKDOWN_MARKS, 2), CALL):
            found = self.read_line(inside)
        else:
            return NoCall(line_end)
        match found:
            case ParsedCalls(calls, end, closers, is_open):
                return ParsedCalls(calls, end, (FENCE, *closers), is_open)
            case BrokenCall(is_tagged):
                return BrokenCall(is_tagged, is_fenced=True)
            case _:
                return found

    def read_line(self, at: int) -> Attempt:
        """Read what stands at a line that may name a tool to be called."""
        word_end = self.skip(self.skip(at, BLANK), MARKDOWN_MARKS, 2) + len(CALL)
        colon = self.skip(self.skip(word_end, MARKDOWN_MARKS, 2), BLANK)
        if self.get_character(colon) != ":":
            return NoCall(word_end)
        begin = name_end = self.skip(colon + 1, BLANK + _QUOTES)
        while (found := self.get_character(name_end)) and found not in _NAME_END and name_end - begin < _MAX_NAME:
            name_end += 1
        end = self.skip(name_end, BLANK + _QUOTES)
        if name_end == begin:
            return NoCall(colon + 1)
        name = self.text[begin:name_end].strip()
        if not name:
            return NoCall(name_end)
        given = self._find_arguments(end)
        if given:
            return self._read_arguments(name, self.skip(given, "*", 2))
        if self.get_character(end) in ("", "\n", "\r"):
            return ParsedCalls((WrittenCall(name, NO_ARGUMENTS),), end, is_open=True)
        # Arguments in parentheses, or a name of several words that has arguments: a call, but none that can be read.
        is_meant = self.get_character(name_end) == "(" or self._find_arguments(self._find_line_end(end))
        return BrokenCall(is_tagged=False) if is_meant else NoCall(name_end)

    def _find_arguments(self, at: int) -> int:
        """Return the place behind the word for arguments; 0 if it does not follow."""
        following = self.skip(self.skip(at, WHITESPACE), MARKDOWN_MARKS, 2)
        if not self.starts_with(following, "arguments"):
            return 0
        colon = self.skip(self.skip(following + len("arguments"), MARKDOWN_MARKS, 2), BLANK)
        return colon + 1 if self.get_character(colon) == ":" else 0

    def _find_line_end(self, at: int) -> int:
        end = at + _MAX_NAME
        while at < end and self.get_character(at) not in ("", "\n", "\r"):
            at += 1
        return at

    def read_json(self, at: int, closers: tuple[str, ...]) -> Attempt:
        """Read the JSON form's object or array."""
        try:
            end = self._find_value_end(at)
            return ParsedCalls(parse_calls(self.text[at:end]), end, closers)
        except UnreadableCall:
            return BrokenCall(END_TAG in closers)

    def _read_arguments(self, name: str, at: int) -> Attempt:
        """Read the arguments of a call, or that it has none."""
        begin, is_fenced = self._skip_fence(self.skip(at, WHITESPACE))
        ticked = self.skip(begin, "`", 1)
        found = self.get_character(ticked)
        if found == "{":
            closers = (FENCE,) if is_fenced else ("`",) if ticked > begin else ()
            try:
                end = self._find_value_end(ticked)
                return ParsedCalls((WrittenCall(name, parse_arguments(self.text[ticked:end])),), end, closers)
            except UnreadableCall:
                return BrokenCall(is_tagged=False)
        nothing = (WrittenCall(name, NO_ARGUMENTS),)
        if self.starts_with(begin, "null"):
            return ParsedCalls(nothing, begin + len("null"))
        if not found or self.starts_with(self.skip(begin, MARKDOWN_MARKS, 2), CALL):
            return ParsedCalls(nothing, at, is_open=True)
        return BrokenCall(is_tagged=False)

    def _skip_fence(self, at: int) -> tuple[int, bool]:
        """Return the place behind the line of a code fence, if one stands here."""
        if not self.starts_with(at, FENCE):
            return at, False
        return self.skip(self._find_language_end(at + len(FENCE)), WHITESPACE), True

    def _find_language_end(self, at: int) -> int:
        end = at
        while end - at < _MAX_LANGUAGE and (found := self.get_character(end)) and (found.isalnum() or found in "_-+."):
            end += 1
        return end

    def _find_value_end(self, at: int) -> int:
        """Return where a value ends."""
        if self.scan is None:
            self.scan = JsonScanner()
            self.scan.feed(self.text[at:])
        scan = self.scan
        if not scan.is_over and not self.is_complete:
            raise NeedsMoreText
        self.scan = None
        if not scan.end:
            raise UnreadableCall
        return at + scan.end
