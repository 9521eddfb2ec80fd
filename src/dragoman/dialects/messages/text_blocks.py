"""Reads the texts and images of search results, of documents made of blocks and of a browser's state.

No other dialect has such blocks. The block itself is kept raw for this dialect; other dialects get its parts.
"""

from collections.abc import Callable
from typing import Any, cast

from msgspec import Raw, structs

from dragoman.core.parts import Media, Opaque, Text
from dragoman.core.value import Extras
from dragoman.dialects.messages.tool_search import KINDS, read_search
from dragoman.dialects.messages.wire import NAME, ResultBlock
from dragoman.wire import json
from dragoman.wire.pointer import escape
from dragoman.wire.shape import Shape
from dragoman.wire.unread import Unread

_BLOCKS: Shape[list[ResultBlock]] = Shape(list[ResultBlock])
_NO_OBJECTS = Raw(b"[]")
_HEADERS = {"search_result": ("title", "source"), "document": ("title", "context")}
"""Members whose text comes before the content, by the type of the block."""


def read_texts(block: Opaque, read_content: Callable[[Any, str, Unread | None], Any]) -> Opaque:
    """Return an opaque block with its texts and images as `content`, if it is of a type that has them."""
    members = json.decode_object(block.raw)
    kind = json.peek(members.get("type", Raw(b"null")))
    if kind == "browser_state":
        return _read_browser_state(block, members)
    if kind not in _HEADERS:
        return read_search(block) if kind in KINDS else block
    inside, base = members.get("content"), f"{block.where}/content"
    source = members.get("source", Raw(b"null"))
    if inside is None and json.first_byte(source) == b"{":
        inside, base = json.decode_object(source).get("content"), f"{block.where}/source/content"
    try:
        found = _read_inside(inside, base, read_content) if inside is not None else ()
    except json.Malformed:
        return block
    texts = {name: json.peek(members[name]) for name in _HEADERS[kind] if name in members}
    header = "\n".join(text for text in texts.values() if text and isinstance(text, str))
    if not found:
        return block
    read = {"type", "content", "source", *texts}
    fields = {f"/{escape(name)}": bytes(raw) for name, raw in members.items() if name not in read}
    content = (Text(text=header, where=block.where), *found) if header else found
    return structs.replace(block, content=content, extras=Extras(NAME, fields) if fields else None)


def _read_inside(
    raw: Raw, where: str, read_content: Callable[[Any, str, Unread | None], Any]
) -> tuple[Text | Media, ...]:
    if json.first_byte(raw) == b'"':
        return (Text(text=json.decode(raw), where=where),)
    blocks, unread = _BLOCKS.read(raw, where)
    parts = [read_content(block, f"{where}/{index}", unread) for index, block in enumerate(blocks)]
    return tuple(part for part in parts if isinstance(part, Text | Media))


def _read_browser_state(block: Opaque, members: dict[str, Raw]) -> Opaque:
    """Return the state with its tabs and changes as a text; unchanged if they are malformed."""
    tabs, changes = (_list_objects(members.get(name, _NO_OBJECTS)) for name in ("tabs", "state_changes"))
    if tabs is None or changes is None:
        return block
    lines = [_describe_tab(tab) for tab in tabs] or ["No tab is open."]
    for change in changes:
        values = [str(value) for name, value in change.items() if name != "type" and value is not None]
        lines.append(f"{str(change.get('type')).replace('_', ' ')}: {', '.join(values)}")
    read = {"type", "tabs", "state_changes"}
    fields = {f"/{escape(name)}": bytes(raw) for name, raw in members.items() if name not in read}
    content = (Text(text="\n".join(lines), where=block.where),)
    return structs.replace(block, content=content, extras=Extras(NAME, fields) if fields else None)


def _list_objects(raw: Raw) -> list[dict[str, Any]] | None:
    """Return an array of objects; None for anything else."""
    value: Any = json.peek(raw) or ()
    entries = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    return cast("list[dict[str, Any]]", entries) if all(isinstance(one, dict) for one in entries) else None


def _describe_tab(tab: dict[str, Any]) -> str:
    about = ", ".join(str(tab[name]) for name in ("title", "url") if tab.get(name)) or "blank"
    return f"tab {tab.get('tab_id')}{' (active)' if tab.get('active') is True else ''}: {about}"
