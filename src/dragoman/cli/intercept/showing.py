"""An exchange as it is shown: what came, what left, what was captured.

What looks like a secret is taken out, and what others wrote does not steer the terminal. Colours are for terminals.
"""

import re
from collections.abc import Iterator
from time import localtime, strftime

import msgspec

from dragoman.cli.chat.screen import Screen, harmless
from dragoman.cli.intercept.differing import difference, lines_of
from dragoman.gateway.redact import redact
from dragoman.intercept.saved import Saved, content

_STYLES = {"-": ("red",), "+": ("green",), "@": ("dim",), " ": ()}
_MOST_CHANGED = 400
_MOST_UNTOUCHED = 120
"""Lines that are shown of a body."""
_LONGEST = 400
_INDENT = "  "
_SIGNATURE = re.compile(r"(\"thought_?[sS]ignature\": \"[^\"]{8})[^\"]{12,}")
"""Long, and for no one to read; its beginning tells one from another."""


def shown(exchange: Saved, screen: Screen) -> str:
    """Return what is shown of an exchange."""
    return "".join(f"{line}\n" for line in _lines(exchange, screen))


def _lines(exchange: Saved, screen: Screen) -> Iterator[str]:
    yield screen.styled(_clean(_title(exchange)), "bold")
    if exchange.rules:
        yield _clean(f"{_INDENT}rules: {', '.join(exchange.rules)}")
    if exchange.problem:
        yield screen.styled(_clean(f"{_INDENT}sent on as it came: {exchange.problem}"), "yellow")
    if exchange.target_left not in ("", exchange.target):
        yield _clean(f"{_INDENT}asked instead: {exchange.target_left}")
    yield from _body(
        screen, "request", content(exchange.came), None if exchange.left is None else content(exchange.left)
    )
    if exchange.blocked:
        yield screen.styled(f"{_INDENT}answered here: calls wait for their results", "yellow")
    came = content(exchange.reply_came)
    yield from _body(screen, "reply", came, None if exchange.reply_left is None else content(exchange.reply_left))
    if exchange.is_cut:
        yield f"{_INDENT}(more of the reply passed than was kept)"
    for call in exchange.captured:
        yield screen.styled(f"{_INDENT}captured {_clean(call.name)} as {_clean(call.id)}", "cyan")
        yield f"{_INDENT * 2}{_clean(_in_one_line(content(call.part)))}"


def _title(exchange: Saved) -> str:
    taken = "" if exchange.seconds is None else f" in {exchange.seconds:.2f} s"
    session = f" ({exchange.session})" if exchange.session else ""
    at = strftime("%H:%M:%S", localtime(exchange.began))
    return f"{at} {exchange.name}{session} {exchange.method} {exchange.target} {exchange.status}{taken} {exchange.id}"


def _body(screen: Screen, what: str, came: bytes, left: bytes | None) -> Iterator[str]:
    """Tell of a body; `left` is None if it left as it came."""
    if not came and not left:
        return
    if left is None:
        yield f"{_INDENT}{what}: {len(came)} bytes, untouched"
        lines, most = ((" ", line) for line in lines_of(came)), _MOST_UNTOUCHED
    else:
        yield f"{_INDENT}{what}: {len(came)} bytes came, {len(left)} left"
        lines, most = difference(came, left), _MOST_CHANGED
    for at, (sign, line) in enumerate(lines):
        if at == most:
            yield screen.styled(f"{_INDENT}@ the rest is not shown", "dim")
            return
        yield screen.styled(f"{_INDENT}{sign} {_clean(line)}", *_STYLES[sign])


def _in_one_line(part: bytes) -> str:
    try:
        return msgspec.json.format(part, indent=0).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return part.decode("utf-8", "replace")


def _clean(text: str) -> str:
    told = harmless(redact(_SIGNATURE.sub(r"\1…", text))).replace("\n", "\\n")
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}… ({len(told) - _LONGEST} more)"
