"""An error is a value: it can be raised, streamed, stored and encoded."""

from typing import Literal, get_args

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
"""Codes for what is wrong with a request that mean the same in every dialect: a client is told them whatever it speaks.
"""
EMPTY_REPLY_CODE = "nothing_said"
"""The code of a whole and well-formed reply in which nothing stands: its own vendor's clients know what to do."""

MAX_RETRY_AFTER = 7 * 24 * 3600.0


def _clamp_wait(seconds: float | None) -> float | None:
    """Return a wait that can be written: whole milliseconds, a week at most. Headers hold "nan" and "-1" too."""
    if seconds is None or not seconds >= 0:
        return None
    return round(min(seconds, MAX_RETRY_AFTER), 3)


class Problem(Exception):  # noqa: N818  # it is told, stored and sent as often as raised
    """What went wrong: a kind from a closed list, words for a person, and the vendor's own words in `detail`.

    `where` is a JSON pointer into the document at fault. `code` is the vendor's machine word, if it had one.
    `violations` are places and words of each thing that is wrong, where there may be several.
    """

    violations: tuple[tuple[str, str], ...] = ()

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
        """Two problems are equal when all they say is equal."""
        return isinstance(other, Problem) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Hash by what it says."""
        return hash((self.kind, self.message, self.status))

    def __repr__(self) -> str:
        """Show the kind first: it is what code decides on."""
        return f"Problem({self.kind!r}, {self.message!r}, status={self.status}, where={self.where!r})"
