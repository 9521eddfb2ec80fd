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

from dragoman.core.request import NativeTool, Tool
from dragoman.wire.json import encode

_MARKED_END = b',"cache_control":{"type":"ephemeral"}}]'
_TEXT = b'[{"type":"text","text":'
_DEFERRED = b'"defer_loading":true'
_MESSAGE = b'{"role":"'
_CONTENT = b'"content":'


def mark_content(content: bytes) -> bytes:
    """Return a rendered content, a string or an array, with a mark on its last block."""
    if content.startswith(b'"'):
        return _TEXT + content + _MARKED_END
    # A view, because tools can be large: one copy instead of three.
    return b"".join((memoryview(content)[:-2], _MARKED_END)) if content.endswith(b"}]") else content


def mark_tools(written: bytes, last: Tool | NativeTool) -> bytes:
    """Return a rendered array of tools with a mark on the last; unchanged if that is deferred: it takes no mark."""
    if isinstance(last, NativeTool):
        is_deferred = _DEFERRED in last.raw
    else:
        is_deferred = last.extras is not None and last.extras.fields.get("/defer_loading") == b"true"
    return written if is_deferred else mark_content(written)


def mark_turns(written: bytes, roles: Sequence[str], messages: list[Any], *, has_tools: bool) -> list[Any]:
    """Return all items of the history: those in `written`, and `messages` with their `roles`.

    The last turn and the one before the last answer are marked. A question without tools and without an earlier answer
    gets no mark: nothing shows that it will be sent again, and to write it costs extra.
    """
    answers = [at for at, role in enumerate(roles) if role == "assistant"]
    if written or answers or has_tools:
        others = [at for at, role in enumerate(roles) if role != "assistant"]
        before = [at for at in others if answers and at < answers[-1]]
        for at in {*before[-1:], *others[-1:]}:
            message = messages[at]
            message["content"] = Raw(mark_content(encode(message["content"])))
        if written and not before:
            return [*_mark_last_item(written), *messages]
    return [Raw(written), *messages] if written else messages


def _mark_last_item(items: bytes) -> list[Raw]:
    """Return rendered messages with a mark on the last one; those before it can be long, and are not copied."""
    # These bytes occur in no string, since its quotes are escaped, and the client's turns have no JSON of their own.
    start = items.rindex(_MESSAGE)
    content = items.index(_CONTENT, start) + len(_CONTENT)
    last = Raw(items[start:content] + mark_content(items[content:-1]) + b"}")
    return [Raw(memoryview(items)[: start - 1]), last] if start else [last]
