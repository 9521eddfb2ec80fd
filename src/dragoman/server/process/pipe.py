"""Serve MCP on standard input and output: what `dragoman mcp` does."""

import asyncio
import os

from dragoman.config import Config
from dragoman.server.bench import open_bench
from dragoman.server.endpoints.mcp import Door
from dragoman.server.process.run import told_to_stop
from dragoman.server.watching import log
from dragoman.server.watching.watch import Watch


async def serve_mcp(config: Config) -> None:
    """Serve until the input ends and all is answered, or a signal comes."""
    with log.opened(config, None) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.loop_failed)
        async with open_bench(config, Watch(config, [lines.ended]).observers) as bench:
            door = Door(bench)
            serving = asyncio.create_task((await door.opened()).pipe())
            stopped = asyncio.create_task(told_to_stop().wait())
            try:
                await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await door.close()
        if not serving.done():
            # A thread of the SDK waits for a line that may never come, and nothing can wake it.
            os._exit(0)
        stopped.cancel()
        await serving
