"""Where a client wants its answer in a format, it is told the model's last words alone.

What a model says before it calls tools of ours is no JSON, or another one, and no client could read the two together.
Whether a text is the last is known when its turn is over, so it is told then.
"""

from collections.abc import AsyncIterator, Iterable, Iterator

from dragoman.agent import RunEnded, Step, TurnEnded
from dragoman.agent.history import calls_of
from dragoman.core.events import PartCited, PartDelta, PartEnded, PartNative, PartSigned, PartStarted
from dragoman.core.parts import Text, ToolResult


async def last_words(steps: AsyncIterator[Step]) -> AsyncIterator[Step]:
    """Iterate steps of a run without the texts that stand before calls of ours."""
    held: list[Step] = []
    async for step in steps:
        match step:
            case PartStarted(part=Text()):
                held.append(step)
                continue
            case TurnEnded() if _goes_on(step):
                told = _without_texts(held)
            case TurnEnded() | RunEnded():
                told = iter(held)
            case _ if held:
                held.append(step)  # behind a text, so that the order stays
                continue
            case _:
                told = iter(())
        for each in told:
            yield each
        held.clear()
        yield step


def _goes_on(turn: TurnEnded) -> bool:
    """Tell whether the model is asked again after a turn: all of its calls were ours, or one could not be read."""
    results = [part for message in turn.messages for part in message.parts if isinstance(part, ToolResult)]
    calls = calls_of(turn.response.parts)
    return turn.response.finish.reason == "malformed_call" or bool(calls and len(results) >= len(calls))


def _without_texts(steps: Iterable[Step]) -> Iterator[Step]:
    texts: set[int] = set()
    for step in steps:
        match step:
            case PartStarted(index, Text()):
                texts.add(index)
            case PartDelta() | PartSigned() | PartCited() | PartNative() | PartEnded() if step.index in texts:
                pass
            case _:
                yield step
