"""Adds cache marks to the rendered bytes of a request whose client's dialect has none.

Claude caches only what is marked. The marks are at the ends of what the next request repeats: the last tool, the last
block of the instructions, the last turn that is not the model's, and the one before the model's last answer. That is
where the previous request ended and the cache was written: a mark finds a write at most 20 blocks before it, and a turn
may have more. Each is put into bytes that are rendered already, since the caches of the translation hold bytes without
marks.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from dragoman.wire.json import encode

_MARK = b',"cache_control":{"type":"ephemeral"}'
_TEXT = b'[{"type":"text","text":'
_DEFERRED = b'"defer_loading":true'
_CONTENT = b'"content":'


def mark_content(content: bytes) -> bytes:
    """Return a rendered content, a string or an array, with a mark on its last block."""
    if content.startswith(b'"'):
        return _TEXT + content + _MARK + b"}]"
    return content[:-2] + _MARK + content[-2:] if content.endswith(b"}]") else content


def mark_tools(tools: bytes) -> bytes:
    """Return a rendered array of tools with a mark on the last; unchanged if some are deferred: those take no mark."""
    return tools if _DEFERRED in tools else mark_content(tools)


def _mark_last_item(items: bytes) -> bytes:
    """Return rendered messages with a mark on the last one."""
    if items.endswith(b"}]}"):
        return mark_content(items[:-1]) + items[-1:]
    # A string has no quote that is not escaped, so this is the name of the last message's own member.
    start = items.rfind(_CONTENT) + len(_CONTENT)
    return items[:start] + mark_content(items[start:-1]) + items[-1:]


def mark_turns(written: bytes, roles: Sequence[str], messages: list[Any], *, has_tools: bool) -> bytes:
    """Mark the last turn and the one before the last answer, in `messages` or else at the end of `written`.

    `messages` with their `roles` follow the rendered bytes `written`, which are returned. A question without tools and
    without an earlier answer gets no mark: nothing shows that it will be sent again, and to write it costs extra.
    """
    answers = [at for at, role in enumerate(roles) if role == "assistant"]
    if not (written or answers or has_tools):
        return written
    others = [at for at, role in enumerate(roles) if role != "assistant"]
    before = [at for at in others if answers and at < answers[-1]]
    for at in {*before[-1:], *others[-1:]}:
        message = messages[at]
        message["content"] = Raw(mark_content(encode(message["content"])))
    return written if before or not written else _mark_last_item(written)
