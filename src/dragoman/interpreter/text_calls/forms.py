"""Parse the forms in which a model writes a call as text.

    <tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>

    TOOL_CALL: get_weather
    ARGUMENTS: {"city": "Paris"}

The keywords are matched in any letter case. The first form may be anywhere, contain several calls, and lack its end
tag; the second starts a line, and its second line may be missing. Either may be in a code fence, and so may the JSON in
it; a fence with the language `tool_call` has the same meaning as the tags. JSON without any of these keywords is never
a call: it may be what the user asked for.

A JSON decoder decides whether something is JSON; the scanner only finds where it ends. Nothing is repaired: text that
cannot be parsed, or can be parsed in two ways, is not a call. The one exception is a raw line break in a string, which
has only one meaning.
"""

import json as decoding
import re
from typing import Any, NoReturn, assert_never

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


class UnreadableCall(ValueError):  # noqa: N818  the name describes the text
    """Text that starts like a call cannot be parsed as one."""


class UnreadableText(str):
    """Text of a call that cannot be parsed."""

    __slots__ = ()


class WrittenCall(Struct, frozen=True):
    """A call as the model wrote it."""

    name: str
    arguments: str
    """A JSON object, exactly as the model wrote it."""
    pending_text: str = ""
    """The source text of a call at the end of the text, which is complete only if the model was not cut off there."""


class JsonScanner:
    """Finds the end of an object or array that arrives in pieces."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._in_string = False
        self._escaped = False
        self._size = 0
        self.end = 0
        """The length of the value, once that is known."""
        self.is_over = False
        """The end was found, or the text cannot be JSON."""

    def feed(self, text: str) -> bool:
        """Add text; return whether the scan is over."""
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
    """Parse an object as a call, or an array as several calls."""
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
    """Parse an object as the arguments of a call."""
    if not text.startswith("{"):
        raise UnreadableCall
    return _require_json(text)


def _require_json(text: str) -> str:
    """Return the text if it is strict JSON, else its value as strict JSON; raise `UnreadableCall` if it is not JSON."""
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
    """Encode a value that was decoded leniently as strict JSON."""
    try:
        text = decoding.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()  # fails for a lone surrogate from an escape
    except ValueError:
        raise UnreadableCall from None
    return text


def _require_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise UnreadableCall
    return members


def _reject_number(_constant: str) -> NoReturn:
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
    """Return the arguments as JSON text; a string may contain them as JSON text, the form that OpenAI uses."""
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
"""Markdown marks for bold text and code."""
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
"""The maximum white space between two tokens of a call."""


class NeedsMoreText(Exception):  # noqa: N818  the name describes what is needed
    """The parser cannot decide before more text arrives."""


class NoCall(Struct, frozen=True):
    """The text looked like the start of a call but is not one; no call starts before `end`."""

    end: int


class BrokenCall(Struct, frozen=True):
    """A call that cannot be parsed; one in tags ends at its end tag, for any other the end is unknown."""

    is_tagged: bool
    is_fenced: bool = False
    """It is in a code fence."""


class ParsedCalls(Struct, frozen=True):
    """Parsed calls up to `end`, and the closing marks that may follow, the innermost last."""

    calls: tuple[WrittenCall, ...]
    end: int
    closers: tuple[str, ...] = ()
    is_open: bool = False
    """Only the text that follows shows whether the call is complete."""


Attempt = NoCall | BrokenCall | ParsedCalls


class CallParser:
    """Parses calls in the text received so far; raises `NeedsMoreText` if the text ends too early."""

    def __init__(self) -> None:
        self.text = ""
        self.is_complete = False
        """No more text follows."""
        self.scan: JsonScanner | None = None
        """The scanner of a JSON value that has not ended."""

    def get_character(self, at: int) -> str:
        """Return the character at an offset; "" after the end of the complete text."""
        if at < len(self.text):
            return self.text[at]
        if self.is_complete:
            return ""
        raise NeedsMoreText

    def skip(self, at: int, characters: str, limit: int = _MAX_GAP) -> int:
        """Return the offset after any of these characters, at most `limit` further."""
        end = at + limit
        while at < end and (found := self.get_character(at)) and found in characters:
            at += 1
        return at

    def starts_with(self, at: int, keyword: str) -> bool:
        """Return whether the text at an offset starts with a keyword, in any letter case."""
        found = self.text[at : at + len(keyword)]
        if len(found) < len(keyword) and keyword.startswith(found.lower()) and not self.is_complete:
            raise NeedsMoreText
        return found.lower() == keyword

    def read_tagged(self, at: int) -> Attempt:
        """Parse the text from the start tag of a call."""
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
        """Parse the text from a code fence, which contains a call or code."""
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
            case NoCall():
                return found
            case _:
                assert_never(found)

    def read_line(self, at: int) -> Attempt:
        """Parse the text from a line that starts with the keyword `TOOL_CALL`."""
        keyword_end = self.skip(self.skip(at, BLANK), MARKDOWN_MARKS, 2) + len(CALL)
        colon = self.skip(self.skip(keyword_end, MARKDOWN_MARKS, 2), BLANK)
        if self.get_character(colon) != ":":
            return NoCall(keyword_end)
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
        # Arguments in parentheses, or a name of several words with arguments: a call, but one that cannot be parsed.
        is_call = self.get_character(name_end) == "(" or self._find_arguments(self._find_line_end(end))
        return BrokenCall(is_tagged=False) if is_call else NoCall(name_end)

    def _find_arguments(self, at: int) -> int:
        """Return the offset after the keyword `ARGUMENTS:`; 0 if it does not follow."""
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
        """Parse the object or array of the JSON form."""
        try:
            end = self._find_value_end(at)
            return ParsedCalls(parse_calls(self.text[at:end]), end, closers)
        except UnreadableCall:
            return BrokenCall(END_TAG in closers)

    def _read_arguments(self, name: str, at: int) -> Attempt:
        """Parse the arguments of a call, which may be missing."""
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
        calls = (WrittenCall(name, NO_ARGUMENTS),)
        if self.starts_with(begin, "null"):
            return ParsedCalls(calls, begin + len("null"))
        if not found or self.starts_with(self.skip(begin, MARKDOWN_MARKS, 2), CALL):
            return ParsedCalls(calls, at, is_open=True)
        return BrokenCall(is_tagged=False)

    def _skip_fence(self, at: int) -> tuple[int, bool]:
        """Return the offset after the first line of a code fence, and whether there is one at `at`."""
        if not self.starts_with(at, FENCE):
            return at, False
        return self.skip(self._find_language_end(at + len(FENCE)), WHITESPACE), True

    def _find_language_end(self, at: int) -> int:
        end = at
        while end - at < _MAX_LANGUAGE and (found := self.get_character(end)) and (found.isalnum() or found in "_-+."):
            end += 1
        return end

    def _find_value_end(self, at: int) -> int:
        """Return the end offset of the JSON value at `at`."""
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
