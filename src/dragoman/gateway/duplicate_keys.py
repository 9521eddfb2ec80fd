"""Search large bodies for duplicate keys, but for what the caches of request translation know.

These are tools that were searched before, and the beginning of a long conversation, which comes whole with every turn.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects.record import Dialect
from dragoman.gateway.client_request import SMALL_BODY, require_distinct
from dragoman.gateway.errors import duplicate_key, malformed_body
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.tools_cache import ToolSet
from dragoman.interpreter.translate import Caches
from dragoman.wire import array, json
from dragoman.wire.json import duplicate
from dragoman.wire.pointer import escape, split

_NOTHING = Raw(b"0")
_TOOLS = "tools"
_UNSETTLED = 4
"""Messages at the end of a history that may be written otherwise the next time: clients move their cache marks."""


class DistinctKeys:
    """Searches bodies for duplicate keys."""

    def __init__(self, caches: Caches) -> None:
        self._tools = caches.tools
        self._prefixes = caches.prefixes

    def require(self, body: bytes, dialect: Dialect) -> Any:
        """Raise a `Problem` for a duplicate key, with its pointer; return the decoded body if it was decoded whole."""
        if len(body) < SMALL_BODY:
            return require_distinct(body)
        try:
            known = self._known_prefix(body, dialect)
            shorter, skipped = _without(body, dialect.history, known)
            where = self._search(shorter, dialect)
            if where is not None:
                raise duplicate_key(_moved(where, dialect.history, skipped))
            if known is not None:
                self._keep_prefix(body, shorter, dialect, known)
        except json.Malformed as error:
            raise malformed_body(error) from None
        return None

    def _search(self, body: bytes, dialect: Dialect) -> str | None:
        """Return the pointer of a duplicate key; tools that were searched before are skipped."""
        tools = None
        try:
            members = json.decode_object(Raw(body))  # the parser of the request checks that it is UTF-8
            # The lengths differ for a duplicate key or white space at the top level: those bodies are searched whole.
            if _TOOLS in members and len(json.encode(members)) == len(body):
                tools = self._read_tools(bytes(members[_TOOLS]), dialect)
        except json.Malformed:
            return duplicate(body)
        if tools is None or not tools.is_distinct:
            where = duplicate(body)
            if tools is not None and where is None:
                tools.is_distinct = True
            return where
        return duplicate(json.encode({**members, _TOOLS: _NOTHING}))

    def _read_tools(self, raw: bytes, dialect: Dialect) -> ToolSet | None:
        try:
            return self._tools.read(dialect, raw, f"/{_TOOLS}")
        except (json.Malformed, Problem):
            return None  # the parser of the request reports the error

    def _known_prefix(self, body: bytes, dialect: Dialect) -> Prefix | None:
        """Return the searched prefix of a long history; `NO_PREFIX` if only its key is known, None for any other."""
        if len(body) < 2 * self._prefixes.least:
            return None
        start = array.opening(body, dialect.history)
        return None if start is None else self._prefixes.find(_scope(dialect), body, start)

    def _keep_prefix(self, body: bytes, shorter: bytes, dialect: Dialect, known: Prefix) -> None:
        """Cache the searched history, without its last messages."""
        start = array.opening(body, dialect.history)
        new, tail = (array.items(shorter, dialect.history, start) if start is not None else None) or ([], 0)
        if start is None or len(new) <= _UNSETTLED:
            return
        end = array.end_before(body, len(body) - tail, new[-_UNSETTLED:])
        searched = Prefix(items=body[start:end], length=known.length + len(new) - _UNSETTLED)
        self._prefixes.keep(_scope(dialect), searched, known)


def _scope(dialect: Dialect) -> tuple[str, ...]:
    return ("distinct keys", dialect.name)


def _without(body: bytes, history: str, known: Prefix | None) -> tuple[bytes, int]:
    """Return a body without the messages that were searched before, and how many these are."""
    if known is None or known is NO_PREFIX:
        return body, 0
    start = array.opening(body, history)
    following = array.after(body, start + len(known.items)) if start is not None else None
    if start is None or following is None:
        return body, 0
    return body[:start] + body[following:], known.length


def _moved(where: str, history: str, items: int) -> str:
    """Return a place in what is new of a body as one in all of it."""
    name, *rest = split(where)
    if name != history or not rest or not items:
        return where
    tokens = [name, str(int(rest[0]) + items), *rest[1:]]
    return "".join(f"/{escape(token)}" for token in tokens)
