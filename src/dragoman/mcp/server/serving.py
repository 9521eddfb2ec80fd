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
from dragoman.mcp.server.shelf import TTL, Shelf
from dragoman.sessions.store import Store


class Serving:
    """Serves the tools."""

    def __init__(  # noqa: PLR0913  each with its name
        self, service: Service, store: Store, *, version: str, largest: int, fixtures: bool, kept: float
    ) -> None:
        self._shelf = Shelf(store.runs, ttl=min(TTL, kept) if kept else TTL)
        mounts = (query.Query(service).mount, Looking(service).mount)
        server = build(mounts, self._shelf, {query.NAME: "optional"}, version=version, fixtures=fixtures)
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
        """Stop what still runs."""
        await self._shelf.close()
        await self._endpoint.close()
