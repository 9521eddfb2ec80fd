"""Models as a function that is watched: every question to one is an exchange of its own, in metrics and log."""

import asyncio
from collections.abc import AsyncGenerator

from dragoman.agent.model import Model, closing
from dragoman.core.events import Event, Failed, Finished, Started, UsageSeen
from dragoman.core.request import Request
from dragoman.gateway.generate import Gateway
from dragoman.gateway.model import Asker
from dragoman.gateway.observe import Observers
from dragoman.gateway.record import Record


def observed_model(gateway: Gateway, observers: Observers, owner: str, dialect: str) -> Model:
    """Return every model there is as one function for an owner; `dialect` says in the log who asked."""

    async def ask(request: Request) -> AsyncGenerator[Event]:
        record = Record(owner=owner, dialect=dialect, operation="generate", model=request.model, stream=request.stream)
        observers.begin(record)
        try:
            async with closing(gateway.model(Asker(owner=owner), record)(request)) as events:
                async for event in events:
                    _note(event, record)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            record.outcome = "left" if record.outcome == "open" else record.outcome
            raise
        finally:
            record.close()
            observers.end(record)

    return ask


def _note(event: Event, record: Record) -> None:
    match event:
        case UsageSeen(usage):
            record.usage = usage
        case Finished(finish):
            record.finish, record.status, record.outcome = finish.reason, 200, "answered"
        case Failed(problem):
            record.problem, record.status = problem, problem.status
            record.outcome = "failed" if record.upstream else "refused"
        case Started():
            pass
        case _:
            record.note_first()
