"""The languages we speak. A fifth is one folder and one line here."""

from dragoman.core.problems import Problem
from dragoman.dialects.chat import DIALECT as CHAT
from dragoman.dialects.gemini import DIALECT as GEMINI
from dragoman.dialects.messages import DIALECT as MESSAGES
from dragoman.dialects.record import Dialect
from dragoman.dialects.responses import DIALECT as RESPONSES

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (CHAT, RESPONSES, MESSAGES, GEMINI)}


def dialect_named(name: str) -> Dialect:
    """Return the dialect called `name`."""
    try:
        return DIALECTS[name]
    except KeyError:
        raise Problem("invalid_request", f"unknown dialect {name!r}: one of {', '.join(DIALECTS)}") from None
