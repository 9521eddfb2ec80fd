"""Fit a whole reply that is nothing but texts and calls which the client holds as they are.

Beside them vendors say much the same with every reply: ratings, counts by kind. What of that has no place at the client
is worked out once, by `reply_whole`, and remembered by the shape of what is said: a count is lost whatever it counts.
"""

import re

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Signature, Text, ToolCall
from dragoman.core.response import Finish, Response
from dragoman.core.value import Extras
from dragoman.dialects.record import Dialect
from dragoman.interpreter.aliases import minted_call_id
from dragoman.interpreter.fitting import Undo
from dragoman.interpreter.schemas.arguments import restore
from dragoman.wire import json

_COUNTED = re.compile(rb'":\s*[1-9][0-9]*')
_DIGITS = b"0123456789"
_MOST = 1024
Shape = tuple[str, str, Finish, bool, tuple[object, ...], tuple[object, ...]]
"""The dialects of vendor and client, and what a reply says beside its texts and calls, without the counts."""


class PlainReplies:
    """What is lost of plain replies, by their shapes."""

    def __init__(self) -> None:
        self._losses: dict[Shape, tuple[Loss, ...]] = {}

    def losses_of(self, shape: Shape) -> tuple[Loss, ...] | None:
        """Return what is lost of a reply; None if that is not known yet."""
        return self._losses.get(shape)

    def keep(self, shape: Shape, losses: tuple[Loss, ...]) -> None:
        """Remember what is lost of a reply."""
        if len(self._losses) >= _MOST:
            self._losses.clear()
        self._losses[shape] = losses


def shape_of(response: Response, here: Dialect, there: Dialect) -> Shape:
    """Return all of a reply that decides what is lost of it, if its parts are told as they are."""
    usage = response.usage
    counts = usage.extras if usage is not None else None
    written = usage is not None and bool(usage.cache_written)
    return here.name, there.name, response.finish, written, _fields(response.extras), _fields(counts)


def told_parts(response: Response, there: Dialect, undo: Undo, salt: str) -> tuple[AnyPart, ...] | None:
    """Return the parts of a plain reply as the client is told them; None if one of them needs a closer look."""
    holds = there.holds
    if (
        undo.single
        or undo.custom
        or undo.spoken is not None
        or not response.id
        or response.finish.reason not in holds.finishes
    ):
        return None
    told: list[AnyPart] = []
    ids: list[str] = []
    for part in response.parts:
        signature = part.signature
        if type(part) is ToolCall:
            name, call_id, arguments = part.name, part.id, part.arguments
            if name in undo.names or (signature is not None and not _holds_of(signature, there)):
                return None
            steps = undo.arguments.get(name)
            if steps:
                for step in reversed(steps):
                    arguments = restore(arguments, step)
            if holds.object_arguments and not json.is_object(arguments):
                return None
            if not call_id:
                call_id = minted_call_id(there.call_prefix, response.id, salt, len(ids) + 1)
            elif holds.plain_ids or call_id in ids:
                return None
            ids.append(call_id)
            told.append(ToolCall(id=call_id, name=name, arguments=arguments, signature=signature, where=part.where))
        elif type(part) is Text and signature is None and (holds.order or not ids):
            told.append(part)
        else:
            return None
    return tuple(told)


def _holds_of(signature: Signature, there: Dialect) -> bool:
    """Tell whether the client holds a call's signature as its own vendor wrote it."""
    holds = there.holds
    native = signature.issuer == there.issuer or signature.issuer in holds.call_issuers
    return native and "call" in holds.signatures


def _fields(extras: Extras | None) -> tuple[object, ...]:
    if extras is None:
        return ()
    return tuple([(field, _shape(raw)) for field, raw in extras.fields.items()])


def _shape(raw: bytes) -> bytes:
    """Return a value without what says nothing of how it is told: words and counts that are not empty."""
    first = raw[:1]
    if first == b'"':
        return raw[:2] if raw == b'""' else first
    if first in b"[{":
        is_counted = len(raw.translate(None, _DIGITS)) < len(raw)
        return _COUNTED.sub(b'":1', raw) if is_counted and b"\\" not in raw else raw
    return b"1" if first in b"-123456789" else raw
