"""The MCP server as a whole: what it offers, over HTTP and on a pipe."""

from collections.abc import Callable

from dragoman.http.exchange import Exchange
from dragoman.mcp.server import query
from dragoman.mcp.server.building import beneath, build
from dragoman.mcp.server.caller import Caller
from dragoman.mcp.server.endpoint import Endpoint
from dragoman.mcp.server.looking import Looking
from dragoman.mcp.server.pipe import serve_pipe
from dragoman.mcp.server.service import Service
from dragoman.mcp.server.tasks import TTL


class Serving:
    """Serves the tools."""

    def __init__(self, service: Service, *, version: str, largest: int, fixtures: bool, kept: float) -> None:
        self._query = query.Query(service)
        mounts = (self._query.mount, Looking(service).mount)
        ttl = min(TTL, kept) if kept else TTL
        server = build(
            mounts, service.carrier, {query.NAME: self._query.task}, version=version, fixtures=fixtures, ttl=ttl
        )
        self._lower = beneath(server, largest=largest, fixtures=fixtures)
        self._endpoint = Endpoint(server)
        self._in_sessions = fixtures

    async def answer(self, exchange: Exchange, owner: str, allows: Callable[[str], bool]) -> None:
        """Answer one request for a caller that was let in."""
        if exchange.request.method != "POST" and not self._in_sessions:
            # Without sessions nothing is ever said on a stream of its own, and there is nothing to end.
            await exchange.send(405, {"allow": "POST"})
            return
        await self._endpoint.answer(exchange, Caller(owner=owner, allows=allows))

    async def pipe(self) -> None:
        """Serve standard input and output until the input ends."""
        await serve_pipe(self._lower)

    async def close(self) -> None:
        """Let nobody in any more; tasks are carried by somebody else."""
        await self._endpoint.close()
        await self._query.close()
