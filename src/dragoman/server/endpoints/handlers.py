"""Handlers of all operations but generate: each reads its request, calls its module, and sends the response.

The model decides which upstream a request is passed on to, where one is named: in the path, in a JSON body or in a
form. Else the path names the upstream, or there is only one of that vendor. A key with a list of models needs one that
fits: the model as it asks for it or, for a path that names an upstream, `upstream/model` and `upstream/v1/files`. An
error is sent in the client's dialect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct, structs

from dragoman.core.problems import Kind, Problem
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.client_request import ClientRequest, require_distinct
from dragoman.gateway.conversations.background import Background
from dragoman.gateway.conversations.options import ConversationOptions
from dragoman.gateway.errors import add_id
from dragoman.gateway.passthrough import ModelForm, Passage, form_of, renamed_within
from dragoman.gateway.record import Record, headers_of
from dragoman.gateway.retry import client_may_retry
from dragoman.gateway.router import Routes, Target
from dragoman.gateway.token_count import unwrapped
from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON, Headers, Request
from dragoman.server.auth import Access, Key, cancel_when_gone
from dragoman.server.endpoints import code_assist, mcp, models, stored
from dragoman.server.exchanges import Watch
from dragoman.server.interception import Interception
from dragoman.server.routes import OtherPath, Path, Paths
from dragoman.server.services import Connected
from dragoman.upstreams.upstream import Upstream

Handler = Callable[[Exchange, Path, Key, Record], Awaitable[None]]
ReadRequest = Callable[[Request, Path, Key], tuple[ClientRequest, ConversationOptions | None]]


class Services(Struct, frozen=True):
    """What the handlers of a server use."""

    upstreams: Connected
    access: Access
    watch: Watch
    door: mcp.Door
    interception: Interception
    strict: bool = False
    """Requests are strict unless they say otherwise."""


class Endpoints:
    """Answers requests for all operations but generate."""

    def __init__(self, services: Services, background: Background, read_request: ReadRequest) -> None:
        self._services = services
        self._gateway = services.upstreams.gateway
        self._quotas = services.watch.quotas
        self._background = background
        self._read_request = read_request
        self.handlers: Mapping[str, Handler] = {
            "health": self._show_health,
            "metrics": self._show_metrics,
            "count": self._count_tokens,
            "models": self._list_models,
            "model": self._list_models,
            "kept": self._answer_stored,
            "assist": self._answer_code_assist,
            "other": self._pass_on,
            "mcp": self._answer_mcp,
            "intercept": services.interception.answer,
            "exchange": self._show_exchange,
        }

    async def _show_health(self, exchange: Exchange, _path: Path, _key: Key, _record: Record) -> None:
        is_known = self._services.access.knows(exchange.request)
        await exchange.send(200, JSON, self._services.door.health(known=is_known))

    async def _show_metrics(self, exchange: Exchange, _path: Path, _key: Key, _record: Record) -> None:
        kind, text = await asyncio.to_thread(self._services.watch.metrics.text)
        await exchange.send(200, {"content-type": kind}, text)

    async def _show_exchange(self, exchange: Exchange, path: Path, key: Key, _record: Record) -> None:
        await exchange.send(200, JSON, await self._services.watch.exchanges.show(path.name, key.name))

    async def _list_models(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        query = exchange.request.query
        listed = await models.told(self._gateway.catalogue, path.model, key.allows, record.dialect, query)
        await exchange.send(200, headers_of(record, JSON), listed)

    async def _answer_stored(self, exchange: Exchange, path: Path, key: Key, _record: Record) -> None:
        require_distinct(exchange.request.body)
        await stored.answer(self._background, path, key.name, exchange)

    async def _answer_code_assist(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        body = exchange.request.body
        require_distinct(body)
        answer = await code_assist.told(path.name, body, self._gateway.catalogue, key.allows)
        await exchange.send(200, headers_of(record, JSON), answer)

    async def _answer_mcp(self, exchange: Exchange, _path: Path, key: Key, record: Record) -> None:
        with self._quotas.slot(key):
            await self._services.door.answer(exchange, key, record)

    async def _pass_on(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        if path.other is None:
            raise Problem("not_found", f"{exchange.request.path} is not served here")
        going = find_passage(exchange.request, path.other, record.dialect, self._gateway.routes, key)
        record.dialect, record.model = going.passage.target.upstream.dialect, going.model
        cancel_when_gone(exchange)
        with self._quotas.slot(key):
            await self._gateway.pass_on(going.passage, exchange, record)

    async def _count_tokens(self, exchange: Exchange, path: Path, key: Key, record: Record) -> None:
        request, _ = self._read_request(exchange.request, path, key)
        if path.google and not path.wrapped:
            request = structs.replace(request, call=unwrapped(request.call))
        desk = self._services.upstreams.desk
        options = desk.wanted(request, exchange.request.named)
        opened = await desk.open(request, options) if options is not None else None
        request = opened.ask if opened is not None else request
        record.model = request.call.model
        if not key.allows(request.call.model):
            raise Problem("permission", f"this key may not ask for the model {request.call.model!r}")
        cancel_when_gone(exchange)
        with self._quotas.slot(key):
            body, estimated = await self._gateway.count(request, record)
        record.status, record.outcome = 200, "answered"
        labelled = {**JSON, "x-dragoman-estimate": "true"} if estimated else JSON
        await exchange.send(200, headers_of(record, labelled), body)


_PREFIX = "models/"
"""Google's clients write it before a model's name, or do not."""


class FoundPassage(Struct, frozen=True):
    """A passage, and the model it is for."""

    passage: Passage
    model: str


def find_passage(request: Request, other: OtherPath, dialect: str, routes: Routes, key: Key) -> FoundPassage:
    """Return where a request is passed on to, or raise the `Problem` for which it is rejected."""
    form = ModelForm(request.body) if other.model else form_of(request.body, request.header("content-type"))
    model = (other.model or form.model).removeprefix(_PREFIX)
    target, asked = _find_target(other, model, dialect, routes)
    if not key.allows(asked):
        raise Problem("permission", f"this key may not ask for {asked!r}")
    there = model if other.upstream else target.model.removeprefix(_PREFIX)
    if not other.model:
        prefix = _PREFIX if form.model.startswith(_PREFIX) else ""
        return FoundPassage(Passage(target=target, path=other.path, body=form.renamed(prefix + there)), model)
    path = other.path.replace(f"/models/{model}:", f"/models/{there}:", 1)
    body = request.body if there == model else renamed_within(request.body, model, there)
    return FoundPassage(Passage(target=target, path=path, body=body), model)


def _find_target(other: OtherPath, model: str, dialect: str, routes: Routes) -> tuple[Target, str]:
    """Return the upstream, and the name by which a key is allowed to ask there."""
    if other.upstream:
        target = routes.named(other.upstream, model)
        if target is None:
            raise Problem("not_found", f"there is no upstream {other.upstream!r}", code="unknown_url")
        return target, f"{other.upstream}/{model}" if model else other.upstream + other.path
    vendor = dialect_named(dialect).issuer
    if model:
        fitting = [target for target in routes.of(model) if _serves(target.upstream, vendor)]
        if not fitting:
            raise Problem("not_found", f"the upstream of the model {model!r} has no {other.path}", code="unknown_url")
        return fitting[0], model
    those = [upstream for upstream in routes.upstreams if _serves(upstream, vendor)]
    if len(those) != 1:
        names = ", ".join(f"/upstreams/{upstream.name}{other.path}" for upstream in those)
        words = f"say which upstream is meant: {names}" if those else f"no upstream has {other.path}"
        raise Problem("not_found", words, code="unknown_url")
    return routes.at(those[0]), those[0].name + other.path


def _serves(upstream: Upstream, vendor: str) -> bool:
    return upstream.others and dialect_named(upstream.dialect).issuer == vendor


async def reject_websocket(exchange: Exchange, record: Record) -> None:
    """Reject a WebSocket with a status upon which clients that prefer one use HTTP at once."""
    reply = dialect_named(record.dialect).build_error(Problem("unsupported", "use HTTP here, not a WebSocket"))
    await exchange.send(426, reply.headers, reply.body)


async def reject_path(paths: Paths, exchange: Exchange, record: Record) -> None:
    """Reject a path that does not exist, or that has other methods."""
    request = exchange.request
    methods = paths.methods(request.path, request.target.partition("?")[0])
    if not methods:
        raise Problem("not_found", f"there is no {request.method} {request.path} here", code="unknown_url")
    allowed = ", ".join(methods)
    words = f"{request.path} is asked with {allowed} here, not with {request.method}"
    reply = dialect_named(record.dialect).build_error(Problem("invalid_request", words, status=405))
    record.status, record.outcome = 405, "refused"
    await exchange.send(405, headers_of(record, {**reply.headers, "allow": allowed}), add_id(reply.body, record))


async def send_error(problem: Problem, exchange: Exchange, record: Record) -> None:
    """Send an error in the client's dialect; cut a response that has started."""
    record.problem = problem
    record.outcome = "failed" if record.upstream else "refused"
    if exchange.started:
        exchange.cut()
        return
    if record.operation == "mcp":
        rejection = mcp.refusal(problem)
        record.status = rejection.status
        # It is no dialect of a model's, and has no place for the name of a request.
        await exchange.send(rejection.status, {**rejection.headers, "x-dragoman-exchange": record.id}, rejection.body)
        return
    reply = dialect_named(record.dialect).build_error(problem)
    record.status = reply.status
    headers = headers_of(record, reply.headers)
    if record.is_spent or not client_may_retry(problem, record.tries):
        headers["x-should-retry"] = "false"
    await exchange.send(reply.status, headers, add_id(reply.body, record))


_SAID: dict[int, tuple[Kind, str]] = {
    400: ("invalid_request", "this is no HTTP request, or one that could be read in two ways"),
    408: ("timeout", "the body of the request did not come in time"),
    413: ("too_large", "the request is larger than this server takes"),
    415: ("unsupported", "the body is encoded in a way that is not known here: send it plain, or with gzip or deflate"),
    431: ("invalid_request", "the headers of the request are larger than this server takes"),
}


def refusal(paths: Paths, status: int, request: Request) -> tuple[Headers, bytes]:
    """Return the error for something that is no request; of the request only its first lines are known."""
    path = paths.find("POST", request.path)
    dialect = (path.dialect if path is not None else "") or paths.dialect_of(request.path, dict(request.headers))
    record = Record(dialect=dialect, status=status)
    kind, words = _SAID[status]
    told = dialect_named(dialect).build_error(Problem(kind, words, status=status))
    return tuple(headers_of(record, told.headers).items()), add_id(told.body, record)
