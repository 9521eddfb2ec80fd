"""Print intercepted exchanges: the request and the response, how the gateway changed them, and captured calls.

Bodies are compared line by line after JSON, also in the events of a stream, is indented. Only differences are shown,
with some context, in bounded time. Secrets are redacted and control characters replaced. `--log` follows the exchanges
of a running gateway, of another `dragoman intercept`, or of a command.
"""

import os
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from pathlib import Path
from threading import Event, Thread
from time import localtime, strftime
from typing import TextIO

import msgspec

from dragoman.cli.chat.terminal import Screen, replace_controls
from dragoman.gateway.redact import redact
from dragoman.intercept.exchange import (
    ObserverFolder,
    SavedExchange,
    SavedExchangeError,
    decode_body,
    decode_exchange,
    observe_exchanges,
)

_CONTEXT_LINES = 3
_MAX_COMPARED = 3000
"""Maximum lines that are diffed, without the common lines at the start and the end."""
_DATA = "data:"
_STYLES = {"-": ("red",), "+": ("green",), "@": ("dim",), " ": ()}
_MAX_CHANGED = 400
_MAX_UNCHANGED = 120
"""Maximum lines shown of an unchanged body."""
_MAX_LINE = 400
_INDENT = "  "
_SIGNATURE = re.compile(r"(\"thought_?[sS]ignature\": \"[^\"]{8})[^\"]{12,}")
"""A signature is long and unreadable; only its first characters are shown, to identify it."""
_POLL_SECONDS = 0.1
"""Seconds between two polls for new exchanges."""


def lines_of(body: bytes) -> list[str]:
    """Split a body into lines, with JSON indented."""
    if (formatted := _format_json(body)) is not None:
        return formatted
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return [f"({len(body)} bytes of binary data)"]
    lines: list[str] = []
    for line in text.splitlines():
        event = _format_json(line[len(_DATA) :].encode()) if line.startswith(_DATA) else None
        if event is None:
            lines.append(line)
        else:
            lines += [f"{_DATA} {event[0]}", *event[1:]]
    return lines


def _format_json(body: bytes) -> list[str] | None:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
        return msgspec.json.format(body, indent=2).decode().splitlines()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def diff_bodies(before: bytes, after: bytes) -> Iterator[tuple[str, str]]:
    """Yield the lines of a diff with their signs: `-` removed, `+` added, space unchanged, `@` a comment."""
    old, new = lines_of(before), lines_of(after)
    begin, end = _count_shared(old, new)
    changed_old, changed_new = old[begin : len(old) - end], new[begin : len(new) - end]
    yield from _show_context(old[:begin], tail=True)
    if max(len(changed_old), len(changed_new)) > _MAX_COMPARED:
        yield "@", f"{len(changed_old)} lines became {len(changed_new)}"
    else:
        yield from _compare_lines(changed_old, changed_new)
    yield from _show_context(old[len(old) - end :], tail=False)


def _count_shared(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return the number of common lines at the start and at the end."""
    most = min(len(old), len(new))
    begin = next((at for at in range(most) if old[at] != new[at]), most)
    end = next((at for at in range(most - begin) if old[-1 - at] != new[-1 - at]), most - begin)
    return begin, end


def _show_context(lines: list[str], *, tail: bool) -> Iterator[tuple[str, str]]:
    shown = lines[-_CONTEXT_LINES:] if tail else lines[:_CONTEXT_LINES]
    left_out = len(lines) - len(shown)
    if left_out and tail:
        yield "@", f"{left_out} unchanged lines"
    for line in shown:
        yield " ", line
    if left_out and not tail:
        yield "@", f"{left_out} unchanged lines"


def _compare_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            alike = old[old_from:old_to]
            if len(alike) > 2 * _CONTEXT_LINES:
                yield from ((" ", line) for line in alike[:_CONTEXT_LINES])
                yield "@", f"{len(alike) - 2 * _CONTEXT_LINES} unchanged lines"
                yield from ((" ", line) for line in alike[-_CONTEXT_LINES:])
            else:
                yield from ((" ", line) for line in alike)
        else:
            yield from (("-", line) for line in old[old_from:old_to])
            yield from (("+", line) for line in new[new_from:new_to])


def format_exchange(exchange: SavedExchange, screen: Screen) -> str:
    """Format an exchange for the terminal."""
    return "".join(f"{line}\n" for line in _format_lines(exchange, screen))


def _format_lines(exchange: SavedExchange, screen: Screen) -> Iterator[str]:
    yield screen.style(_sanitize(_format_title(exchange)), "bold")
    if exchange.rules:
        yield _sanitize(f"{_INDENT}rules: {', '.join(exchange.rules)}")
    if exchange.problem:
        yield screen.style(_sanitize(f"{_INDENT}forwarded unchanged: {exchange.problem}"), "yellow")
    if exchange.target_left not in ("", exchange.target):
        yield _sanitize(f"{_INDENT}forwarded to: {exchange.target_left}")
    yield from _format_body(
        screen, "request", decode_body(exchange.came), None if exchange.left is None else decode_body(exchange.left)
    )
    if exchange.blocked:
        yield screen.style(f"{_INDENT}answered by the gateway: calls wait for their results", "yellow")
    came = decode_body(exchange.reply_came)
    yield from _format_body(
        screen, "reply", came, None if exchange.reply_left is None else decode_body(exchange.reply_left)
    )
    if exchange.is_cut:
        yield f"{_INDENT}(the reply is cut: it was longer than the recorded part)"
    for call in exchange.captured:
        yield screen.style(f"{_INDENT}captured {_sanitize(call.name)} as {_sanitize(call.id)}", "cyan")
        yield f"{_INDENT * 2}{_sanitize(_format_one_line(decode_body(call.part)))}"


def _format_title(exchange: SavedExchange) -> str:
    taken = "" if exchange.seconds is None else f" in {exchange.seconds:.2f} s"
    session = f" ({exchange.session})" if exchange.session else ""
    at = strftime("%H:%M:%S", localtime(exchange.began))
    return f"{at} {exchange.name}{session} {exchange.method} {exchange.target} {exchange.status}{taken} {exchange.id}"


def _format_body(screen: Screen, label: str, came: bytes, left: bytes | None) -> Iterator[str]:
    """Yield the lines of a body, or of its diff; `left` is None if the body was not changed."""
    if not came and not left:
        return
    if left is None:
        yield f"{_INDENT}{label}: {len(came)} bytes, unchanged"
        lines, most = ((" ", line) for line in lines_of(came)), _MAX_UNCHANGED
    else:
        yield f"{_INDENT}{label}: {len(came)} bytes received, {len(left)} sent"
        lines, most = diff_bodies(came, left), _MAX_CHANGED
    for at, (sign, line) in enumerate(lines):
        if at == most:
            yield screen.style(f"{_INDENT}@ the rest is not shown", "dim")
            return
        yield screen.style(f"{_INDENT}{sign} {_sanitize(line)}", *_STYLES[sign])


def _format_one_line(part: bytes) -> str:
    try:
        return msgspec.json.format(part, indent=0).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return part.decode("utf-8", "replace")


def _sanitize(text: str) -> str:
    line = replace_controls(redact(_SIGNATURE.sub(r"\1…", text))).replace("\n", "\\n")
    return line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}… ({len(line) - _MAX_LINE} more)"


class Follower:
    """Prints new exchanges, of all entries or of one, and saves them to a folder if one is given."""

    def __init__(self, observer: ObserverFolder, out: TextIO, name: str = "", folder: Path | None = None) -> None:
        self._observer = observer
        self._out = out
        self._name = name
        self._folder = folder
        self._screen = Screen(out, out, pretty=out.isatty())

    def show_new(self) -> None:
        """Print the exchanges since the last call."""
        for file in self._observer.take():
            try:
                exchange = decode_exchange(file)
            except SavedExchangeError as error:
                self._out.write(f"cannot show an exchange: {error}\n")
                continue
            if self._name not in ("", exchange.name):
                continue
            self._out.write(format_exchange(exchange, self._screen))
            if self._folder is not None:
                kept = self._folder / f"{exchange.id}.json"
                with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
                    opened.write(file)
                self._out.write(f"  saved as {kept}\n")
            self._out.flush()

    def follow(self, over: Event) -> None:
        """Print new exchanges until the event is set."""
        while not over.wait(_POLL_SECONDS):
            self.show_new()
        self.show_new()


def follow_exchanges(name: str = "", folder: Path | None = None) -> int:
    """Print exchanges until interrupted; return exit code 0."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with observe_exchanges() as observer:
        sys.stderr.write("dragoman: waiting for exchanges; press Ctrl-C to stop\n")
        with suppress(KeyboardInterrupt):
            Follower(observer, sys.stdout, name, folder).follow(Event())
    return 0


@contextmanager
def follow_in_thread(out: TextIO, name: str = "", folder: Path | None = None) -> Generator[None]:
    """Print exchanges from a thread while the block runs."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    over = Event()
    with observe_exchanges() as observer:
        thread = Thread(target=Follower(observer, out, name, folder).follow, args=(over,), name="log", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
