"""Parse calls from a model's text while it is streamed.

Text is returned as soon as it cannot be the start of a call; a call is returned when it is complete, and until then
nothing of it is returned. A call that cannot be parsed stays text, every character of it; with a parsed call only the
white space and the fences around it are removed. The result does not depend on how the text is split into pieces.

After a call that cannot be parsed nothing is parsed as a call any more, except after its end tag: the text may be
content of that call. Nor is anything parsed in a result that the model repeats or invents, or in a thought that a
server leaves in the text.
"""

import re
from typing import assert_never

from dragoman.interpreter.text_calls.forms import (
    BLANK,
    CALL,
    END_TAG,
    FENCE,
    RESULT_TAG,
    TAG,
    WHITESPACE,
    Attempt,
    BrokenCall,
    CallParser,
    NeedsMoreText,
    NoCall,
    ParsedCalls,
    UnreadableText,
    WrittenCall,
)

_MAX_WHITESPACE = 512
"""The maximum white space that is buffered because a call may follow."""


_THOUGHT = "<think"
_IGNORED_BLOCKS = ((RESULT_TAG, "</tool_result"), (_THOUGHT, "</think"))
"""Start and end of blocks in which nothing is parsed as a call."""


def _build_prefix_pattern(keyword: str) -> str:
    """Return a pattern for a keyword, or for a prefix of it at the end of the text."""
    pattern = ""
    for character in reversed(keyword):
        pattern = re.escape(character) + (rf"(?:{pattern}|\Z)" if pattern else "")
    return pattern


def _compile_finder(line_start: str) -> re.Pattern[str]:
    fence, thought, call = map(_build_prefix_pattern, (FENCE, _THOUGHT, CALL))
    keywords = rf"{fence}|{thought}|[*`]{{0,2}}(?:{call}|\Z)"
    lined = rf"{line_start}(?:[ \t]{{0,16}}(?:{keywords}))"
    return re.compile(
        f"{_build_prefix_pattern(TAG)}|{_build_prefix_pattern(RESULT_TAG)}|{lined}", re.IGNORECASE | re.ASCII
    )


_AT_LINE_START = _compile_finder(r"(?:\A|(?<=\n))")
_WITHIN_LINE = _compile_finder(r"(?<=\n)")
_FENCED = re.compile(rf"[ \t]*{FENCE}")
_LINED = re.compile(rf"[ \t]*[*`]{{0,2}}{CALL}", re.IGNORECASE | re.ASCII)


class TextCallReader:
    """Splits streamed text into text and calls."""

    def __init__(self) -> None:
        self._form = CallParser()
        self._at_line_start = True
        """The buffered text starts a line, or follows a call."""
        self._pending: list[str] = []
        """Text that arrived while a JSON value was incomplete."""
        self._is_after_call = False
        """The last output was a call."""
        self._closers: tuple[str, ...] = ()
        self._until: str | None = None
        """The text up to which nothing is parsed as a call; "" for the rest of the text, None to parse calls."""
        self._broken: BrokenCall | None = None
        """The call that cannot be parsed, while its text is output."""
        self._output: list[str | WrittenCall] = []
        self.unread_count = 0
        """How many calls could not be parsed."""

    def feed(self, text: str) -> list[str | WrittenCall]:
        """Add text; return the text and calls that are certain now."""
        form = self._form
        if form.scan is not None:
            self._pending.append(text)
            if not form.scan.feed(text):
                return []
            text = "".join(self._pending)
            self._pending.clear()
        form.text += text
        return self._read()

    def close(self) -> list[str | WrittenCall]:
        """Return the rest at the end of the text."""
        form = self._form
        form.text += "".join(self._pending)
        self._pending.clear()
        form.is_complete = True
        return self._read()

    def _read(self) -> list[str | WrittenCall]:
        try:
            while self._read_next():
                pass
        except NeedsMoreText:
            pass
        output, self._output = self._output, []
        return output

    def _read_next(self) -> bool:
        """Process the next piece of text; return False if nothing is left to process now."""
        if self._until is not None:
            return self._skip_until()
        if self._is_after_call:
            return self._read_closers()
        form = self._form
        found = (_AT_LINE_START if self._at_line_start else _WITHIN_LINE).search(form.text)
        self._emit_text(self._find_text_end(found.start() if found is not None else len(form.text)))
        if found is None:
            if form.is_complete:
                self._emit_text(len(form.text))
            return False
        return self._read_candidate(len(form.text) - len(found.string) + found.start())

    def _find_text_end(self, end: int) -> int:
        """Return the end of the text before `end` without the white space that is removed if a call follows."""
        text = self._form.text
        return max(len(text[:end].rstrip(WHITESPACE)), end - _MAX_WHITESPACE)

    def _read_candidate(self, at: int) -> bool:
        """Parse the text at an offset that looks like the start of a call."""
        form = self._form
        found: Attempt
        for begin, end in _IGNORED_BLOCKS:
            found_at = form.skip(at, BLANK)
            if form.starts_with(found_at, begin):
                self._emit_text(found_at + len(begin))
                self._until = end
                return True
        if form.starts_with(at, TAG):
            found = form.read_tagged(at)
        elif (fence := _FENCED.match(form.text, at)) is not None:
            found = form.read_fenced(fence.end() - len(FENCE))
        elif _LINED.match(form.text, at) is not None:
            found = form.read_line(at)
        elif not form.is_complete:
            raise NeedsMoreText
        else:
            self._emit_text(len(form.text))
            return False
        self._apply(found)
        return True

    def _apply(self, found: Attempt) -> None:
        match found:
            case NoCall(end):
                self._emit_text(end)
            case BrokenCall():
                self.unread_count += 1
                self._is_after_call = False
                self._until = END_TAG if found.is_tagged else ""
                self._broken = found
            case ParsedCalls(calls, end, closers, is_open):
                form = self._form
                if is_open and form.is_complete and not form.text[end:].strip(WHITESPACE):
                    calls, end = (WrittenCall(calls[0].name, calls[0].arguments, form.text),), len(form.text)
                self._output.extend(calls)
                form.text = form.text[end:]
                self._closers = (*self._closers, *closers)
                self._is_after_call = True
            case _:
                assert_never(found)

    def _read_closers(self) -> bool:
        """Skip the closing marks of a call; parse another call in the same tags."""
        form = self._form
        form.text = form.text.lstrip(WHITESPACE)
        for depth in range(len(self._closers) - 1, -1, -1):
            closer = self._closers[depth]
            if form.starts_with(0, closer):
                form.text = form.text[self._end_of(closer) :]
                self._closers = self._closers[:depth]
                return True
        is_inside = END_TAG in self._closers
        if is_inside and form.get_character(0) in ("{", "["):
            found = form.read_json(0, self._closers)
            self._closers = ()
            self._apply(found)
            return True
        form.get_character(0)
        self._closers = tuple(closer for closer in self._closers if closer == FENCE)
        self._is_after_call = False
        self._at_line_start = True
        return bool(form.text)

    def _end_of(self, closer: str) -> int:
        form, end = self._form, len(closer)
        if closer != END_TAG:
            return end
        end += form.get_character(end) in ("s", "S")
        return end + (form.get_character(end) == ">")

    def _end_of_broken(self, broken: BrokenCall) -> int:
        form, end = self._form, self._end_of(END_TAG)
        fence = form.skip(end, WHITESPACE) if broken.is_fenced else end
        return fence + len(FENCE) if broken.is_fenced and form.starts_with(fence, FENCE) else end

    def _skip_until(self) -> bool:
        """Output text in which nothing is parsed as a call."""
        form, closer = self._form, self._until
        if not closer:
            self._emit_text(len(form.text))
            return False
        found = re.search(_build_prefix_pattern(closer), form.text, re.IGNORECASE | re.ASCII)
        at = found.start() if found is not None else len(form.text)
        self._emit_text(at)
        if found is None:
            return False
        if form.starts_with(0, closer):
            self._emit_text(len(closer) if self._broken is None else self._end_of_broken(self._broken))
            self._until = self._broken = None
            return True
        self._emit_text(len(form.text))
        return False

    def _emit_text(self, end: int) -> None:
        """Output the buffered text up to an offset."""
        if not end:
            return
        text = self._form.text
        piece, self._form.text = text[:end], text[end:]
        self._at_line_start = piece.endswith("\n")
        self._output.append(piece if self._broken is None else UnreadableText(piece))
