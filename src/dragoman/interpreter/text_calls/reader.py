"""Read calls out of a model's text as it comes.

Text passes as soon as it cannot be the beginning of a call; a call is told when it can be read whole, and until then
nothing of it is told. What cannot be read stays text, every character of it: only white space and the fences around a
call go with it. Whatever the pieces are that a text comes in, the same is read.

Behind a call that cannot be read nothing is taken for one any more, but for what follows its closing tag: what stands
there may be what the call was about. Nor is anything in a result that the model repeats or makes up, or in a thought
that a server leaves in the text.
"""

import re

from dragoman.interpreter.text_calls.forms import (
    BLANK,
    CALL,
    END_TAG,
    FENCE,
    RESULT_TAG,
    TAG,
    WHITE,
    Attempt,
    BrokenCall,
    CallForm,
    More,
    NoCall,
    ParsedCalls,
    UnreadableText,
    Written,
)

_LONGEST_WHITE = 512
"""White space that is held because a call may follow."""


_THOUGHT = "<think"
_DEAF = ((RESULT_TAG, "</tool_result"), (_THOUGHT, "</think"))
"""What begins a stretch in which nothing is a call, and what ends it."""


def _begun(word: str) -> str:
    """Return a pattern for a word, or for as much of it as the text has at its end."""
    pattern = ""
    for character in reversed(word):
        pattern = re.escape(character) + (rf"(?:{pattern}|\Z)" if pattern else "")
    return pattern


def _finder(line_start: str) -> re.Pattern[str]:
    words = rf"{_begun(FENCE)}|{_begun(_THOUGHT)}|[*`]{{0,2}}(?:{_begun(CALL)}|\Z)"
    lined = rf"{line_start}(?:[ \t]{{0,16}}(?:{words}))"
    return re.compile(f"{_begun(TAG)}|{_begun(RESULT_TAG)}|{lined}", re.IGNORECASE | re.ASCII)


_AT_LINE_START = _finder(r"(?:\A|(?<=\n))")
_WITHIN_LINE = _finder(r"(?<=\n)")
_FENCED = re.compile(rf"[ \t]*{FENCE}")
_LINED = re.compile(rf"[ \t]*[*`]{{0,2}}{CALL}", re.IGNORECASE | re.ASCII)


class Reader:
    """Text in, text and calls out."""

    def __init__(self) -> None:
        self._form = CallForm()
        self._fresh = True
        """What is held begins a line, or follows a call."""
        self._later: list[str] = []
        """What came while a value was not whole."""
        self._after = False
        """The last that was told was a call."""
        self._closers: tuple[str, ...] = ()
        self._until: str | None = None
        """What must come before anything is a call again; empty for nothing that could."""
        self._broken: BrokenCall | None = None
        """The call that cannot be read, while its text is told."""
        self._told: list[str | Written] = []
        self.unread = 0
        """How many calls could not be read."""

    def feed(self, text: str) -> list[str | Written]:
        """Take more text; return what is certain now."""
        form = self._form
        if form.scan is not None:
            self._later.append(text)
            if not form.scan.feed(text):
                return []
            text = "".join(self._later)
            self._later.clear()
        form.text += text
        return self._read()

    def close(self) -> list[str | Written]:
        """Return what is left: the text is over."""
        form = self._form
        form.text += "".join(self._later)
        self._later.clear()
        form.is_all = True
        return self._read()

    def _read(self) -> list[str | Written]:
        try:
            while self._step():
                pass
        except More:
            pass
        told, self._told = self._told, []
        return told

    def _step(self) -> bool:
        """Tell one thing; False if there is nothing left to tell now."""
        if self._until is not None:
            return self._pass()
        if self._after:
            return self._follow()
        form = self._form
        found = (_AT_LINE_START if self._fresh else _WITHIN_LINE).search(form.text)
        self._tell(self._printed(found.start() if found is not None else len(form.text)))
        if found is None:
            if form.is_all:
                self._tell(len(form.text))
            return False
        return self._attempt(len(form.text) - len(found.string) + found.start())

    def _printed(self, end: int) -> int:
        """Return where the text ends before white space that a call may follow."""
        text = self._form.text
        return max(len(text[:end].rstrip(WHITE)), end - _LONGEST_WHITE)

    def _attempt(self, at: int) -> bool:
        """Read what stands at a place that looks like the beginning of a call."""
        form = self._form
        found: Attempt
        for begin, end in _DEAF:
            found_at = form.skip(at, BLANK)
            if form.has(found_at, begin):
                self._tell(found_at + len(begin))
                self._until = end
                return True
        if form.has(at, TAG):
            found = form.tagged(at)
        elif (fence := _FENCED.match(form.text, at)) is not None:
            found = form.fenced(fence.end() - len(FENCE))
        elif _LINED.match(form.text, at) is not None:
            found = form.lined(at)
        elif not form.is_all:
            raise More
        else:
            self._tell(len(form.text))
            return False
        self._take(found)
        return True

    def _take(self, found: Attempt) -> None:
        match found:
            case NoCall(end):
                self._tell(end)
            case BrokenCall():
                self.unread += 1
                self._after = False
                self._until = END_TAG if found.is_tagged else ""
                self._broken = found
            case ParsedCalls(calls, end, closers, is_open):
                form = self._form
                if is_open and form.is_all and not form.text[end:].strip(WHITE):
                    calls, end = (Written(calls[0].name, calls[0].arguments, form.text),), len(form.text)
                self._told.extend(calls)
                form.text = form.text[end:]
                self._closers = (*self._closers, *closers)
                self._after = True

    def _follow(self) -> bool:
        """Pass over what closes a call; read another one in the same tags."""
        form = self._form
        form.text = form.text.lstrip(WHITE)
        for depth in range(len(self._closers) - 1, -1, -1):
            closer = self._closers[depth]
            if form.has(0, closer):
                form.text = form.text[self._end_of(closer) :]
                self._closers = self._closers[:depth]
                return True
        is_inside = END_TAG in self._closers
        if is_inside and form.character(0) in ("{", "["):
            found = form.values(0, self._closers)
            self._closers = ()
            self._take(found)
            return True
        form.character(0)
        self._closers = tuple(closer for closer in self._closers if closer == FENCE)
        self._after = False
        self._fresh = True
        return bool(form.text)

    def _end_of(self, closer: str) -> int:
        form, end = self._form, len(closer)
        if closer != END_TAG:
            return end
        end += form.character(end) in ("s", "S")
        return end + (form.character(end) == ">")

    def _end_of_broken(self, broken: BrokenCall) -> int:
        form, end = self._form, self._end_of(END_TAG)
        fence = form.skip(end, WHITE) if broken.is_fenced else end
        return fence + len(FENCE) if broken.is_fenced and form.has(fence, FENCE) else end

    def _pass(self) -> bool:
        """Tell text in which nothing is a call."""
        form, closer = self._form, self._until
        if not closer:
            self._tell(len(form.text))
            return False
        found = re.search(_begun(closer), form.text, re.IGNORECASE | re.ASCII)
        at = found.start() if found is not None else len(form.text)
        self._tell(at)
        if found is None:
            return False
        if form.has(0, closer):
            self._tell(len(closer) if self._broken is None else self._end_of_broken(self._broken))
            self._until = self._broken = None
            return True
        self._tell(len(form.text))
        return False

    def _tell(self, end: int) -> None:
        """Tell text up to a place."""
        if not end:
            return
        text = self._form.text
        told, self._form.text = text[:end], text[end:]
        self._fresh = told.endswith("\n")
        self._told.append(told if self._broken is None else UnreadableText(told))
