"""Open what keeps conversations, and forget in it what is old."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import time

from dragoman.config import Config, ConfigError
from dragoman.gateway.sessions.desk import Desk
from dragoman.sessions.store import Store
from dragoman.sessions.urls import open_store, usual_url
from dragoman.sessions.values import Unavailable

_DAY = 86400.0
_HOUR = 3600.0


@asynccontextmanager
async def open_desk(config: Config) -> AsyncGenerator[Desk]:
    """Open the store a configuration names, as long as the block runs."""
    table = config.sessions
    try:
        store = await asyncio.to_thread(open_store, table.url or usual_url())
    except ValueError as error:
        raise ConfigError(config.source, "sessions.url", str(error)) from None
    except Unavailable as error:
        raise ConfigError(config.source, "sessions.url", f"cannot be opened: {error}; name another place") from None
    cleaning = asyncio.create_task(_forget_old(store, table.keep_days)) if table.keep_days else None
    try:
        yield Desk(store, keeps_responses=table.state == "gateway")
    finally:
        if cleaning is not None:
            cleaning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cleaning
        await store.close()


async def _forget_old(store: Store, days: float) -> None:
    while True:
        await asyncio.sleep(_HOUR)
        with contextlib.suppress(Unavailable):
            await store.purge(time() - days * _DAY)
