"""Ids the simulator gives to items, and what it knows of an id it gave.

The vendor remembers which item came with which: a call that followed a thought must come back with that thought, and
an item of a reply that was not stored is unknown later. Here the id itself remembers: it holds the reply it belongs to,
its place, whether the reply was stored, and whether a thought went before.
"""

import hashlib

from msgspec import Struct

_REPLY = 24
_CHECK = 20
_STORED = 1
_AFTER_THOUGHT = 2


class Issued(Struct, frozen=True, kw_only=True):
    """What an id of ours says. `reply` are the 24 digits of the reply's own id."""

    prefix: str
    reply: str
    index: int
    stored: bool
    after_thought: bool


def issue(issued: Issued) -> str:
    """Make an id; the same twice for the same place of the same reply."""
    marks = _STORED * issued.stored | _AFTER_THOUGHT * issued.after_thought
    told = f"{issued.reply:0>{_REPLY}}{issued.index:02x}{marks:02x}"
    return f"{issued.prefix}_{told}{_check(told)}"


def issued_by_us(item_id: str) -> Issued | None:
    """Read an id; None for one the simulator did not give."""
    prefix, _, told = item_id.rpartition("_")
    known, check = told[:-_CHECK], told[-_CHECK:]
    if len(known) != _REPLY + 4 or check != _check(known):
        return None
    marks = int(known[-2:], 16)
    return Issued(
        prefix=prefix,
        reply=known[:_REPLY],
        index=int(known[_REPLY : _REPLY + 2], 16),
        stored=bool(marks & _STORED),
        after_thought=bool(marks & _AFTER_THOUGHT),
    )


def thought_before(issued: Issued) -> str:
    """Return the id of the thought that came right before an item."""
    return issue(
        Issued(prefix="rs", reply=issued.reply, index=issued.index - 1, stored=issued.stored, after_thought=False)
    )


def response_id(reply: str) -> str:
    """Return the id of a whole reply."""
    return _whole_id("resp", reply)


def conversation_id(digits: str) -> str:
    """Return the id of a conversation."""
    return _whole_id("conv", digits)


def reply_of(given: str) -> str:
    """Return the reply an id of a whole reply stands for; "" for an id the simulator did not give."""
    return _digits_of("resp", given)


def is_our_conversation(given: str) -> bool:
    """Whether the simulator gave this id of a conversation."""
    return bool(_digits_of("conv", given))


def _whole_id(prefix: str, digits: str) -> str:
    told = f"{digits:0>{_REPLY}}ffff"
    return f"{prefix}_{told}{_check(told)}"


def _digits_of(prefix: str, given: str) -> str:
    digits = given.removeprefix(f"{prefix}_")[:_REPLY]
    return digits if len(digits) == _REPLY and _whole_id(prefix, digits) == given else ""


def _check(told: str) -> str:
    return hashlib.sha256(f"dragoman-sim {told}".encode()).hexdigest()[:_CHECK]
