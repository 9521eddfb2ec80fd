"""A function of the caller's that raises what is no `Problem`: the run fails of it, and leaves the history it has.

The words of such an error are for whoever wrote the function: they are in the log, and it is the cause of the problem.
What carries the run is not looked at: an engine may raise what it needs to stop one.
"""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager

from dragoman.core.problems import Problem

_LOG = logging.getLogger("dragoman.agent")


@contextmanager
def mistakes_of(whose: str) -> Generator[None]:
    """Let an error of what is inside be a problem of the run's."""
    try:
        yield
    except Problem:
        raise
    except (Exception, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise  # the run is being stopped; else the function has cancelled something of its own
        _LOG.exception("%s failed", whose)
        raise Problem("internal", f"{whose} failed ({type(error).__name__})") from error
