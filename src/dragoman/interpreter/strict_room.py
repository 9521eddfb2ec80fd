"""How many tools of a request can be strict: a target that compiles schemas takes only so much of them."""

from dragoman.core.request import Tool
from dragoman.core.traits import Traits
from dragoman.interpreter.fitting import NO_LIMIT
from dragoman.interpreter.schemas.complexity import complexity


class StrictRoom:
    """How much more a target can compile: tools, and in them parameters that may be absent or of several types."""

    def __init__(self, traits: Traits) -> None:
        self._bounded = traits.strict_optional_max is not None or traits.strict_unions_max is not None
        self._tools = traits.strict_max
        self._optional = traits.strict_optional_max or NO_LIMIT
        self._unions = traits.strict_unions_max or NO_LIMIT

    def takes(self, tool: Tool) -> bool:
        """Tell whether one more tool could be strict."""
        if self._tools <= 0:
            return False
        if not self._bounded or not tool.strict:
            return True
        cost = complexity(tool.parameters)
        return cost.optional <= self._optional and cost.unions <= self._unions

    def fill(self, tool: Tool) -> None:
        """Take the room that a strict tool needs."""
        self._tools -= 1
        if self._bounded:
            cost = complexity(tool.parameters)
            self._optional -= cost.optional
            self._unions -= cost.unions
