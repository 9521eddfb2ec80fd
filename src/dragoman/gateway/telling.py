"""What every answer says about itself in its headers."""

from collections.abc import Mapping, Sequence

from dragoman.core.losses import Loss
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record
from dragoman.wire.json import Malformed, encode
from dragoman.wire.memory import Memory
from dragoman.wire.splice import spliced

_LONGEST = 1024
"""Clients and proxies bear headers of some kilobytes in all."""
_LISTED: Memory[str] = Memory()


def headers_of(record: Record, kind: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer; `kind` says what its body is."""
    headers = {**kind, "x-dragoman-exchange": record.id}
    named = dialect_named(record.dialect).id_header
    if named:
        headers[named] = record.id
    if record.upstream:
        headers["x-dragoman-upstream"] = record.upstream
    if record.losses or record.reply_losses:
        asked, replied = record.losses, record.reply_losses
        # What is lost of one frame, and of one shape of reply, is the same object every time.
        known = _LISTED.get(asked, replied)
        headers["x-dragoman-losses"] = known or _LISTED.keep(listed((*asked, *replied)), asked, replied)
    return headers


def signed(error: bytes, record: Record) -> bytes:
    """Return an error that says which request it is about, where its dialect has a place for that."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return error
    try:
        return spliced(error, member, encode(record.id))
    except Malformed:
        return error


def signed_event(events: bytes, record: Record) -> bytes:
    """Return the last events of a stream, so that the error among them says which request it is about."""
    member = dialect_named(record.dialect).id_member
    if not member:
        return events
    before, unsigned, after = events.rpartition(encode(member) + b":null")
    return before + encode(member) + b":" + encode(record.id) + after if unsigned else events


def listed(losses: Sequence[Loss]) -> str:
    """Return how many losses there are, then as many of them as fit on the line."""
    line = str(len(losses))
    for loss in losses:
        item = _item(loss)
        if len(line) + len(item) > _LONGEST:
            return line
        line += item
    return line


def _item(loss: Loss) -> str:
    """Say a loss in letters that a header may hold."""
    item = f"; {loss.kind} {loss.where}: {loss.what}"
    return item if item.isascii() and item.isprintable() else "".join(map(_in_header, item))


def _in_header(letter: str) -> str:
    return letter if " " <= letter <= "~" else "?"
