"""Parses and renders `reasoning_details`, the list with which OpenRouter extends a message.

Servers that send the list require it back unchanged, so the whole list of a reply is one signature of the issuer
`OPENROUTER`. To a client that talks to another vendor, the gateway sends an item of its own format for each signed
reasoning part; if the client returns the items, the reasoning is returned to its vendor.
"""

from collections.abc import Iterable
from typing import Any, cast

from dragoman.core.parts import Reasoning, Signature
from dragoman.core.problems import Problem
from dragoman.dialects.chat.fields import Spelling
from dragoman.dialects.chat.parts import ISSUER
from dragoman.wire.json import Malformed, decode, decode_array, encode, first_byte

OPENROUTER = "openrouter"
_OWN_FORMAT = "dragoman-v1"
_TEXTS = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The member with the text, by type of item."""
_PIECES = frozenset({"text", "summary", "data"})
"""Members that a stream sends in pieces."""


def read_list(raw: bytes | None) -> list[dict[str, Any]]:
    """Return the items of a list of objects; none for any other value."""
    try:
        items = decode(raw) if raw else None
    except Malformed:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in cast("list[Any]", items)):
        return []
    return cast("list[dict[str, Any]]", items)


def join_text(items: Iterable[dict[str, Any]]) -> str:
    """Return the text in the items."""
    texts = (item.get(_TEXTS.get(cast("str", item.get("type")), "")) for item in items)
    return "".join(text for text in texts if isinstance(text, str))


def read_details(raw: bytes, where: str, reasoning: Reasoning | None) -> Reasoning | None:
    """Return the reasoning of a whole reply with its list as the signature; None if `raw` is no list of objects.

    The list repeats the text of `reasoning`, which comes from another member, or has the only text.
    """
    items = read_list(raw)
    if not items:
        return None
    signature = Signature(OPENROUTER, encode(decode_array(raw)).decode())
    if reasoning is not None:
        return Reasoning(texts=reasoning.texts, where=reasoning.where, spelling=reasoning.spelling, signature=signature)
    text = join_text(items)
    if not text:
        return Reasoning(redacted=True, where=where, signature=signature)
    return Reasoning(texts=(text,), where=where, spelling=Spelling.DETAILS, signature=signature)


class DetailPieces:
    """The lists in the chunks of a stream since the last reasoning ended."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.is_repetition = False
        """The text of reasoning comes in another member too."""

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, raw: bytes) -> str | None:
        """Add the list of a chunk; return its text, "" if that comes in another member too, None if it is no list."""
        items = read_list(raw)
        if not items:
            return None
        self._pieces.append(raw)
        return "" if self.is_repetition else join_text(items)

    def take(self) -> Signature:
        """Return the lists so far as a signature, and forget them."""
        return Signature(OPENROUTER, self.merge().decode())

    def merge(self) -> bytes:
        """Return the lists so far as one, and forget them; consecutive items of one type and index become one."""
        pieces, self._pieces = self._pieces, []
        if len(pieces) == 1:
            return encode(decode_array(pieces[0]))
        groups: list[list[dict[str, Any]]] = []
        for raw in pieces:
            for item in read_list(raw):
                if groups and _continues(groups[-1][-1], item):
                    groups[-1].append(item)
                else:
                    groups.append([item])
        return encode([_merge(group) for group in groups])


def _continues(before: dict[str, Any], item: dict[str, Any]) -> bool:
    return "index" in item and all(item.get(name) == before.get(name) for name in ("type", "index"))


def _merge(group: list[dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for item in group:
        merged.update({name: value for name, value in item.items() if value is not None or name not in merged})
    for name in _PIECES & merged.keys():
        texts = [item[name] for item in group if isinstance(item.get(name), str)]
        merged[name] = "".join(texts) if texts else merged[name]
    return merged


def is_in_details(part: Reasoning) -> bool:
    """Return whether the signature of a reasoning part in a history is sent in the list."""
    return part.signature is not None and (Spelling.DETAILS in part.spelling or part.signature.issuer == OPENROUTER)


def write_own_item(texts: tuple[str, ...], signature: Signature, index: int) -> dict[str, Any]:
    """Render a signed reasoning part of another vendor as an item of the gateway's own format."""
    text = "\n\n".join(texts)
    content = {"text": text, "signature": signature.value} if text else {"data": signature.value}
    item = {"id": signature.item} if signature.item else {}
    kind = "reasoning.text" if text else "reasoning.encrypted"
    return {"type": kind, **content, **item, "format": _OWN_FORMAT, "index": index}


def read_own_items(raw: bytes, where: str) -> list[Reasoning]:
    """Parse a list that the gateway itself sent; return an empty list for any other list of objects."""
    if raw != b"null" and (first_byte(raw) != b"[" or any(first_byte(item) != b"{" for item in decode_array(raw))):
        raise Problem("invalid_request", "reasoning_details must be a list of objects", where=where)
    parts = [_read_own_item(item, f"{where}/{index}", index) for index, item in enumerate(read_list(raw))]
    return [part for part in parts if part is not None] if None not in parts else []


def _read_own_item(item: dict[str, Any], where: str, index: int) -> Reasoning | None:
    text, value, item_id = item.get("text", ""), item.get("signature", item.get("data")), item.get("id", "")
    if not isinstance(text, str) or not isinstance(value, str) or not isinstance(item_id, str):
        return None
    texts, signature = (text,) if text else (), Signature(ISSUER, value, item_id)
    if item != write_own_item(texts, signature, index):
        return None
    return Reasoning(texts=texts, where=where, spelling=Spelling.DETAILS, signature=signature)


def write_details(parts: Iterable[Reasoning], first: int = 0) -> list[Any]:
    """Render the list for signed reasoning parts; `first` is the index of the first item."""
    items: list[Any] = []
    for part in parts:
        if part.signature is None:
            continue
        if part.signature.issuer == OPENROUTER:
            items += decode_array(part.signature.value)
        else:
            items.append(write_own_item(part.texts, part.signature, first + len(items)))
    return items
