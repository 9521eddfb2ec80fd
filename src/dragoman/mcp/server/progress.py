"""How far a run is, in words for whoever waits for it."""

from dragoman.agent import CallEnded, CallProgressed, CallStarted, Step, TurnEnded
from dragoman.mcp.server.asking import compact
from dragoman.tools import Progress as ToolProgress


def progress_of(step: Step, turns: int) -> str:
    """Return what is told of a step; "" for one that is not told of."""
    match step:
        case CallStarted(call):
            return f"{call.name}({compact(call.arguments)})"
        case CallProgressed(progress):
            return f"{progress.call.name}: {_share(progress)} {progress.message}".rstrip()
        case CallEnded(call, execution):
            return f"{call.name}: {execution.outcome}"
        case TurnEnded(number):
            return f"turn {number} of at most {turns + 1}"
        case _:
            return ""


def _share(progress: ToolProgress) -> str:
    return f"{progress.done:g}" if progress.total is None else f"{progress.done:g} of {progress.total:g}"
