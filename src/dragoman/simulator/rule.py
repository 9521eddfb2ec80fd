"""A rule: one thing a vendor refuses, with its source and a check."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

Json = dict[str, Any]
Body = TypeVar("Body")


class Violation(Struct, frozen=True):
    """What is wrong, in the vendor's words, and where (a JSON pointer, or "" for the whole)."""

    message: str
    where: str = ""
    status: int = 400
    rule: str = ""
    """Filled in by the rule that found it."""


class Situation(Struct, frozen=True, kw_only=True):
    """What a check knows beside the body."""

    model: str
    recorded: bool = False
    """Well-formed signatures of the real vendor are let through: the request is a recording."""
    vertex: bool = False
    """The request came on a Vertex path (rawPredict, aiplatform)."""
    counting: bool = False
    """Tokens shall only be counted; nothing is generated."""
    compacting: bool = False
    """The conversation shall only be made short; nothing is answered."""
    version: str = ""
    """The API version that a header or the path names; "" when none was told."""
    betas: tuple[str, ...] | None = None
    """The beta features that a header names; None when nobody told."""


class Rule(Struct, Generic[Body], frozen=True):
    """`check` yields what is wrong with a body; `source` says where the rule is documented or recorded."""

    name: str
    says: str
    source: str
    check: Callable[[Body, Situation], Iterator[Violation]]


def first_violation(rules: Iterable[Rule[Body]], body: Body, situation: Situation) -> Violation | None:
    """Return the first thing that is wrong; vendors tell one."""
    for rule in rules:
        for violation in rule.check(body, situation):
            return Violation(violation.message, violation.where, violation.status, rule.name)
    return None
