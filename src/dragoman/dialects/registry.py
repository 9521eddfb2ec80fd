"""The languages we speak. A fifth is one folder and one line here."""

from collections.abc import Callable

from dragoman.core.problems import Problem
from dragoman.dialects.chat import DIALECT as CHAT
from dragoman.dialects.gemini import DIALECT as GEMINI
from dragoman.dialects.messages import DIALECT as MESSAGES
from dragoman.dialects.record import Dialect
from dragoman.dialects.responses import DIALECT as RESPONSES


class _Dialects(dict[str, Dialect]):
    """Dialects by name, which says what there is to who asks for another."""

    def __missing__(self, name: str) -> Dialect:
        raise Problem("invalid_request", f"unknown dialect {name!r}: one of {', '.join(self)}")


DIALECTS: dict[str, Dialect] = _Dialects({dialect.name: dialect for dialect in (CHAT, RESPONSES, MESSAGES, GEMINI)})
dialect_named: Callable[[str], Dialect] = DIALECTS.__getitem__
"""Return the dialect of a name. It is asked for so often that a function of ours around it could be measured."""
