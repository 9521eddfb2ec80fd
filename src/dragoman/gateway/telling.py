"""What every answer says about itself in its headers."""

from collections.abc import Mapping, Sequence

from dragoman.core.losses import Loss
from dragoman.gateway.record import Record

_LONGEST = 1024
"""Clients and proxies bear headers of some kilobytes in all."""


def headers_of(record: Record, kind: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer; `kind` says what its body is."""
    headers = {**kind, "x-dragoman-exchange": record.id}
    if record.upstream:
        headers["x-dragoman-upstream"] = record.upstream
    if record.losses:
        headers["x-dragoman-losses"] = listed(record.losses)
    return headers


def listed(losses: Sequence[Loss]) -> str:
    """Return how many losses there are, then as many of them as fit on the line."""
    line = str(len(losses))
    for loss in losses:
        item = f"; {loss.kind} {loss.where}: {loss.what}"
        if len(line) + len(item) > _LONGEST:
            return line
        line += "".join(letter if " " <= letter <= "~" else "?" for letter in item)
    return line
