"""How a check becomes a rule of this API."""

from collections.abc import Callable, Iterator

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.rule import Rule, Situation, Violation

Check = Callable[[Reading, Situation], Iterator[Violation]]


def rule(name: str, source: str) -> Callable[[Check], Rule[Reading]]:
    """Make a rule of the check that follows; its docstring is what the rule says."""

    def made(check: Check) -> Rule[Reading]:
        return Rule(f"messages.{name}", check.__doc__ or "", source, check)

    return made
