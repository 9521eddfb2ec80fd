"""What every answer says about itself in its headers."""

from collections.abc import Mapping, Sequence

from dragoman.core.losses import Loss
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.record import Record
from dragoman.wire.json import Malformed, encode
from dragoman.wire.splice import spliced

_LONGEST = 1024
"""Clients and proxies bear headers of some kilobytes in all."""


def headers_of(record: Record, kind: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer; `kind` says what its body is."""
    headers = {**kind, "x-dragoman-exchange": record.id}
    named = dialect_named(record.dialect).id_header
    if named:
        headers[named] = record.id
    if record.upstream:
        headers["x-dragoman-upstream"] = record.upstream
    if record.losses or record.reply_losses:
        headers["x-dragoman-losses"] = listed(record.all_losses)
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
    """Return how many losses there are, then as many of them as fit on the line, in letters that a header may hold."""
    items = [f"; {loss.kind} {loss.where}: {loss.what}" for loss in losses]
    line = f"{len(losses)}{''.join(items)}"
    while len(line) > _LONGEST:
        line = line[: -len(items.pop())]
    if line.isascii() and line.isprintable():
        return line
    return "".join([letter if " " <= letter <= "~" else "?" for letter in line])
