"""Serve MCP on standard input and output, without the HTTP server: `dragoman mcp` starts once for each host."""

import asyncio
import gc
import os

from dragoman.config import Config
from dragoman.server import log
from dragoman.server.agent_services import open_agent_services
from dragoman.server.exchanges import Observability
from dragoman.server.mcp import McpEndpoint
from dragoman.server.stop_signals import watch_stop_signals
from dragoman.tasks import start_task


async def serve_mcp(config: Config) -> None:
    """Serve MCP on standard input until it ends and all requests are answered, or until a stop signal."""
    with log.open_log(config, None) as lines:
        asyncio.get_running_loop().set_exception_handler(lines.on_loop_error)
        async with open_agent_services(config, Observability(config, [lines.on_end]).observers) as services:
            mcp_endpoint = McpEndpoint(services)
            server = await mcp_endpoint.open_server()
            # What is loaded now lives as long as the process; the command turned collection off while it loaded.
            gc.freeze()
            gc.enable()
            serving = start_task(server.serve_stdio(), "mcp on standard input")
            stopped = start_task(watch_stop_signals().wait(), "wait for a signal")
            try:
                await asyncio.wait((serving, stopped), return_when=asyncio.FIRST_COMPLETED)
            finally:
                await mcp_endpoint.close()
        if not serving.done():
            # A thread of the SDK is blocked reading standard input and cannot be interrupted.
            os._exit(0)
        stopped.cancel()
        await serving
