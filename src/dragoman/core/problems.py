"""Errors of requests and replies as values that can be raised, streamed, stored and encoded."""

from typing import Any, Literal, get_args

Kind = Literal[
    "invalid_request",
    "unsupported",
    "context_length",
    "too_large",
    "authentication",
    "billing",
    "permission",
    "not_found",
    "conflict",
    "rate_limit",
    "overloaded",
    "timeout",
    "cancelled",
    "internal",
    "malformed_reply",
    "unreachable",
    "policy",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

DEFAULT_STATUS: dict[Kind, int] = {
    "invalid_request": 400,
    "unsupported": 400,
    "context_length": 400,
    "too_large": 413,
    "authentication": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "rate_limit": 429,
    "overloaded": 503,
    "timeout": 504,
    "cancelled": 499,
    "internal": 500,
    "malformed_reply": 502,
    "unreachable": 502,
    "policy": 403,
}


OWN_ERROR_CODES = frozenset(
    {
        "invalid_tool",
        "invalid_tool_call",
        "duplicate_key",
        "media_not_fetched",
        "conversation_changed",
        "conversation_diverged",
        "conversation_locked",
    }
)
"""Error codes of the gateway itself: clients of every dialect get them unchanged."""
EMPTY_REPLY_CODE = "nothing_said"
"""The code of a complete and well-formed reply without content, which clients of its own vendor can handle."""

MAX_RETRY_AFTER = 7 * 24 * 3600.0


def _clamp_wait(seconds: float | None) -> float | None:
    """Return a retry delay in whole milliseconds, at most a week; None for "nan" and "-1", which headers may hold."""
    if seconds is None or not seconds >= 0:
        return None
    return round(min(seconds, MAX_RETRY_AFTER), 3)


class Problem(Exception):  # noqa: N818  # it is stored and sent as often as raised
    """An error: a kind from a closed list, a message for people, and the vendor's own error body in `detail`.

    `where` is a JSON pointer into the document at fault. `code` is the vendor's error code, if it sent one.
    `violations` are pairs of a pointer and a message, where several things are wrong.
    """

    violations: tuple[tuple[str, str], ...] = ()
    cause = ""
    """What went wrong at an upstream, in a word or two that name no address."""
    report = ""
    """The same for the operator's log, with the address."""

    def __init__(  # noqa: PLR0913  # an error has many facts, all but two by name
        self,
        kind: Kind,
        message: str,
        *,
        status: int | None = None,
        where: str = "",
        code: str | None = None,
        retry_after: float | None = None,
        detail: bytes | None = None,
        detail_dialect: str = "",
        violations: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.status = DEFAULT_STATUS[kind] if status is None else status
        self.where = where
        self.code = code
        self.retry_after = _clamp_wait(retry_after)
        self.detail = detail
        self.detail_dialect = detail_dialect
        if violations:
            self.violations = violations

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, Problem) and vars(self) == vars(other)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy all fields to another process."""
        return _create_problem, (type(self), self.message), vars(self)

    def __hash__(self) -> int:
        """Hash by kind, message and status."""
        return hash((self.kind, self.message, self.status))

    def __repr__(self) -> str:
        """Show the kind first, because code branches on it."""
        return f"Problem({self.kind!r}, {self.message!r}, status={self.status}, where={self.where!r})"


def _create_problem(kind: type[Problem], message: str) -> Problem:
    """Return a problem without fields, which are set afterwards."""
    return kind.__new__(kind, message)
