"""How far a run is, told to whoever waits for it: as progress of a call, or as the status of a task."""

from typing import Any

from mcp.server.mcpserver import Context

from dragoman.agent import CallEnded, CallProgressed, CallStarted, Step, TurnEnded
from dragoman.mcp.server.asking import compact
from dragoman.mcp.server.job import current_job
from dragoman.tools import Progress as ToolProgress


class Progress:
    """Tells of the steps of one run. Its number only grows, and is no share of a whole: nobody knows how far it is."""

    def __init__(self, ctx: Context[Any, Any], turns: int) -> None:
        self._ctx = ctx
        self._turns = turns
        self._told = 0

    async def tell(self, step: Step) -> None:
        """Tell of a step, if it is one to be told of."""
        match step:
            case CallStarted(call):
                words = f"{call.name}({compact(call.arguments)})"
            case CallProgressed(progress):
                words = f"{progress.call.name}: {_share(progress)} {progress.message}".rstrip()
            case CallEnded(call, execution):
                words = f"{call.name}: {execution.outcome}"
            case TurnEnded(number):
                words = f"turn {number} of at most {self._turns + 1}"
            case _:
                return
        self._told += 1
        job = current_job()
        if job is not None and job.begun.is_set():
            job.say(words)
        else:
            await self._ctx.report_progress(self._told, None, words)


def _share(progress: ToolProgress) -> str:
    return f"{progress.done:g}" if progress.total is None else f"{progress.done:g} of {progress.total:g}"
