"""The simulator: all APIs on one address."""

from msgspec import structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import Request
from dragoman.simulator import endpoints
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.api import ApiRejection, HttpReply
from dragoman.simulator.apis.routes import Route, api_of, route_of
from dragoman.simulator.apis.rule import Violation
from dragoman.simulator.generation import AnswerHandler, RequestRejected, build_rejection, is_array_stream
from dragoman.simulator.state import State


class Simulator(State):
    """All simulated APIs on one address."""

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        request = exchange.request
        route = route_of(request.method, request.path) or self._find_recorded_route(request)
        api = endpoints.find_api(request, route) if route is not None else api_of(request.path)
        try:
            reply = await self._dispatch(exchange, route, api)
        except RequestRejected as refused:
            reply = APIS[api].render_error(refused.rejection)
            if route is not None and is_array_stream(request, route):
                reply = structs.replace(reply, body=b"[" + reply.body.rstrip() + b"\n]\n")
            self.record_request(request, api, reply.status, refused.rejection.rule)
            await exchange.send(reply.status, reply.headers, reply.body)
            return
        if reply is not None:
            self.record_request(request, api, reply.status)
            await exchange.send(reply.status, reply.headers, reply.body)

    def _find_recorded_route(self, request: Request) -> Route | None:
        """Return a route for a path that no vendor has but a recording has."""
        recordings = self.settings.recordings
        if recordings is None or not recordings.has(request.target, request.body):
            return None
        return Route(api=api_of(request.path), operation="generate")

    async def _dispatch(self, exchange: Exchange, route: Route | None, api: str) -> HttpReply | None:
        """Return the reply to send, or None if it was sent already."""
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
                reply = memory.handle_request(request, route) if memory is not None else None
                if isinstance(reply, ApiRejection):
                    raise RequestRejected(reply)
                return reply
            case _:
                reply = endpoints.answer_endpoint(request, route)
                if isinstance(reply, Violation):
                    raise build_rejection(reply)
                return reply


def _build_not_found(request: Request) -> ApiRejection:
    """Return the 404 for an unknown path, or 426 for a WebSocket, upon which clients repeat the request over HTTP."""
    # The HTTP server drops the `upgrade` header, but keeps the key of the handshake.
    if request.path == "/v1/responses" and request.header("sec-websocket-key"):
        message = "WebSocket connections are not supported: send the request over HTTP."
        return ApiRejection(status=426, message=message, rule="path")
    return ApiRejection(status=404, message=f"Not found: {request.method} {request.path}", rule="path")
