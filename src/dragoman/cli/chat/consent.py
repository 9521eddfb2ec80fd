"""What is run only with the user's word, and what the user has said once and for all.

Rules: a tool that changes things is asked for. So is whatever could carry data out after something untrusted was read,
and to that only a yes to the same tool and the same place holds on: what stands on the command line does not.
"""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from dragoman.agent import Decision, Wish
from dragoman.agent.egress import host_of
from dragoman.core.parts import ToolCall


class Consent:
    """A policy of one conversation; `is_given` tells the tools that were named ahead."""

    def __init__(self, is_given: Callable[[str], bool]) -> None:
        self._is_given = is_given
        self._wishes: dict[str, Wish] = {}
        self._always: set[str] = set()
        self._places: set[tuple[str, str]] = set()

    def __call__(self, wish: Wish) -> Decision:
        """Decide about a call."""
        self._wishes[wish.call.id] = wish
        name = wish.handler.name
        if wish.egress:
            return "ask"
        return "ask" if wish.handler.side_effects and name not in self._always and not self._is_given(name) else "allow"

    def holds(self, call: ToolCall) -> bool:
        """Tell whether the user has said yes before to what is asked now."""
        wish = self._wishes[call.id]
        place = _place(wish)
        return bool(wish.egress) and place is not None and (wish.handler.name, place) in self._places

    def scope(self, call: ToolCall) -> str:
        """Say for what "always" would be an answer; "" if it would be for this call alone."""
        wish = self._wishes[call.id]
        name, place = wish.handler.name, _place(wish)
        if not wish.egress:
            return f"every call of {name} in this conversation"
        if place is None:
            return ""
        return f"every call of {name}{f' to {place}' if place else ''} in this conversation"

    def hold(self, call: ToolCall) -> None:
        """Take "always" for an answer."""
        wish = self._wishes[call.id]
        place = _place(wish)
        if not wish.egress:
            self._always.add(wish.handler.name)
        elif place is not None:
            self._places.add((wish.handler.name, place))


def _place(wish: Wish) -> str | None:
    """Return the host that a call would send to, "" where a tool does not say; None where it is not beyond doubt."""
    argument = wish.handler.destination
    if not argument:
        return ""
    try:
        arguments = cast("dict[str, Any]", msgspec.json.decode(wish.call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None
    value = arguments.get(argument)
    return (host_of(value) or None) if isinstance(value, str) else None
