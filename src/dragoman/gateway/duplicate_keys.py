"""Finds duplicate keys in large bodies, except in what the translation caches have already checked.

Those are tools that were checked before, and the start of a long conversation, which is sent again with every turn.
"""

from typing import Any

from msgspec import Raw

from dragoman.core.problems import Problem
from dragoman.dialects.record import Dialect
from dragoman.gateway.client_request import SMALL_BODY, has_other_tools, require_distinct_keys
from dragoman.gateway.errors import build_body_error, build_duplicate_key_error
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix
from dragoman.interpreter.tools_cache import ToolSet
from dragoman.interpreter.translate import Caches
from dragoman.wire import array, json
from dragoman.wire.duplicates import decode_and_search
from dragoman.wire.pointer import join, split

_PLACEHOLDER = Raw(b"0")
_TOOLS = "tools"
_MUTABLE_TAIL = 4
"""Messages at the end of a history that may change in the next request: clients move their cache markers."""


class DuplicateKeyChecker:
    """Checks bodies for duplicate keys."""

    def __init__(self, caches: Caches) -> None:
        self._tools = caches.tools
        self._prefixes = caches.prefixes

    def require_distinct(self, body: bytes, dialect: Dialect) -> Any:
        """Raise a `Problem` with the pointer of a duplicate key; return the decoded body, without what was skipped."""
        if len(body) < SMALL_BODY:
            return require_distinct_keys(body)
        try:
            prefix = self._find_prefix(body, dialect)
            shorter, skipped = _drop_prefix(body, dialect.history, prefix)
            value, where = self._decode_distinct(shorter, dialect)
            if where is not None:
                raise build_duplicate_key_error(_shift_pointer(where, dialect.history, skipped))
            if prefix is not None:
                self._cache_prefix(body, shorter, dialect, prefix)
        except json.Malformed as error:
            raise build_body_error(error) from None
        return value

    def _decode_distinct(self, body: bytes, dialect: Dialect) -> tuple[Any, str | None]:
        """Return the decoded body and the pointer of a duplicate key; tools that were checked before are skipped."""
        tools = None
        try:
            members = json.decode_object(Raw(body))  # UTF-8 is checked when the request is parsed
            # The lengths differ for a duplicate key or white space at the top level: those bodies are searched whole.
            if _TOOLS in members and len(json.encode(members)) == len(body):
                tools = self._read_tools(bytes(members[_TOOLS]), dialect)
        except json.Malformed:
            return decode_and_search(body)
        if tools is None or not tools.is_distinct:
            value, where = decode_and_search(body)
            # Tools in another format are converted, so they must be in the returned body.
            if tools is not None and where is None and not has_other_tools(json.as_object(value), dialect):
                tools.is_distinct = True
            return value, where
        return decode_and_search(json.encode({**members, _TOOLS: _PLACEHOLDER}))

    def _read_tools(self, raw: bytes, dialect: Dialect) -> ToolSet | None:
        try:
            return self._tools.read(dialect, raw, f"/{_TOOLS}")
        except (json.Malformed, Problem):
            return None  # reported when the request is parsed

    def _find_prefix(self, body: bytes, dialect: Dialect) -> Prefix | None:
        """Return the checked prefix of a long history, or `NO_PREFIX`; None if the body has no long history."""
        if len(body) < 2 * self._prefixes.min_bytes:
            return None
        start = array.find_top_array(body, dialect.history)
        return None if start is None else self._prefixes.find(_cache_scope(dialect), body, start)

    def _cache_prefix(self, body: bytes, shorter: bytes, dialect: Dialect, prefix: Prefix) -> None:
        """Cache the checked history, without its last messages."""
        start = array.find_top_array(body, dialect.history)
        new_items, tail = (array.read_items(shorter, dialect.history, start) if start is not None else None) or ([], 0)
        if start is None or len(new_items) <= _MUTABLE_TAIL:
            return
        end = array.find_end_before(body, len(body) - tail, new_items[-_MUTABLE_TAIL:])
        checked = Prefix(items=body[start:end], length=prefix.length + len(new_items) - _MUTABLE_TAIL)
        self._prefixes.store(_cache_scope(dialect), checked, prefix)


def _cache_scope(dialect: Dialect) -> tuple[str, ...]:
    return ("distinct keys", dialect.name)


def _drop_prefix(body: bytes, history: str, prefix: Prefix | None) -> tuple[bytes, int]:
    """Return a body without the messages that were checked before, and the number of those messages."""
    if prefix is None or prefix is NO_PREFIX:
        return body, 0
    start = array.find_top_array(body, history)
    following = array.find_next_item(body, start + len(prefix.items)) if start is not None else None
    if start is None or following is None:
        return body, 0
    return body[:start] + body[following:], prefix.length


def _shift_pointer(where: str, history: str, items: int) -> str:
    """Convert a pointer into the shortened body to a pointer into the whole body."""
    name, *rest = split(where)
    if name != history or not rest or not items:
        return where
    tokens = [name, str(int(rest[0]) + items), *rest[1:]]
    return join(tokens)
