"""The simulator: all APIs behind one address."""

from msgspec import structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.simulator import endpoints
from dragoman.simulator.answering import AnswerHandler, RequestRejected, build_rejection, is_array_stream
from dragoman.simulator.api import ApiRejection, HttpReply
from dragoman.simulator.apis import APIS
from dragoman.simulator.routes import Route, api_of, route_of
from dragoman.simulator.rule import Violation
from dragoman.simulator.state import State


class Simulator(State):
    """All APIs behind one address."""

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        route = route_of(request.method, request.path) or self._find_recorded_route(request)
        api = endpoints.find_api(request, route) if route is not None else api_of(request.path)
        try:
            told = await self._dispatch(exchange, route, api)
        except RequestRejected as refused:
            told = APIS[api].render_error(refused.rejection)
            if route is not None and is_array_stream(request, route):
                told = structs.replace(told, body=b"[" + told.body.rstrip() + b"\n]\n")
            self.record_request(request, api, told.status, refused.rejection.rule)
            await exchange.send(told.status, told.headers, told.body)
            return
        if told is not None:
            self.record_request(request, api, told.status)
            await exchange.send(told.status, told.headers, told.body)

    def _find_recorded_route(self, request: Request) -> Route | None:
        """Return a route for a path that no vendor has, but a recording."""
        recordings = self.settings.recordings
        if recordings is None or not recordings.has(request.target, request.body):
            return None
        return Route(api=api_of(request.path), operation="generate")

    async def _dispatch(self, exchange: Exchange, route: Route | None, api: str) -> HttpReply | None:
        """Return what is to be sent; None if that has been done."""
        request = exchange.request
        if route is None:
            raise RequestRejected(_build_not_found(request))
        unaccepted = endpoints.check_key(request, route, APIS[api], self.settings.key)
        if unaccepted is not None:
            raise RequestRejected(unaccepted)
        match route.operation:
            case "generate" | "count" | "compact":
                return await AnswerHandler(self, exchange, route).handle()
            case "requests":
                return endpoints.list_requests([structs.replace(seen, headers=()) for seen in self.requests])
            case "stored" | "conversations":
                memory = self.state_of(route.api)
                told = memory.handle_request(request, route) if memory is not None else None
                if isinstance(told, ApiRejection):
                    raise RequestRejected(told)
                return told
            case _:
                told = endpoints.answer_endpoint(request, route)
                if isinstance(told, Violation):
                    raise build_rejection(told)
                return told


def _build_not_found(request: Request) -> ApiRejection:
    """Say that nobody has such a path; of a socket, that it is not spoken, upon which clients ask again over HTTP."""
    # That it wishes for another protocol is not passed on by the server; the key of its handshake is.
    if request.path == "/v1/responses" and request.header("sec-websocket-key"):
        message = "WebSocket connections are not supported: send the request over HTTP."
        return ApiRejection(status=426, message=message, rule="path")
    return ApiRejection(status=404, message=f"Not found: {request.method} {request.path}", rule="path")
