"""Handle one generation request: replay a recording, or check the rules and answer from the script or the model.

The reply is sent whole or as a stream; a fault can make either go wrong.
"""

import time
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import Struct, structs

from dragoman.http.exchange import Exchange
from dragoman.http.message import JSON_HEADERS, Request
from dragoman.simulator import model
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection, Chunking, HttpReply, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, ModelRequest
from dragoman.simulator.apis.routes import Route
from dragoman.simulator.apis.rule import CheckContext, Violation
from dragoman.simulator.apis.usage import count_request_tokens, count_usage
from dragoman.simulator.faults import (
    Fault,
    RenderFailure,
    SendOptions,
    UnknownFault,
    find_early_status,
    is_disconnected_within,
    read_fault,
    send_early_fault,
    send_frames,
    send_reply,
    split_frames,
    split_model,
    transform_frames,
)
from dragoman.simulator.recordings import SSE
from dragoman.simulator.script import Received, Unmet
from dragoman.simulator.state import State
from dragoman.wire.json import Malformed
from dragoman.wire.splice import set_member

_SSE = {"content-type": SSE, "cache-control": "no-cache"}
_STREAM_ERROR = ApiRejection(status=500, message="Simulated error in the stream", rule="fault")


class _ModelField(Struct):
    model: str | None = None


class RequestRejected(Exception):  # noqa: N818  the name says what happened to the request
    """A request is rejected with an API error."""

    def __init__(self, rejection: ApiRejection) -> None:
        super().__init__(rejection.message)
        self.rejection = rejection


class AnswerHandler:
    """Handles one generation, token-count or compaction request."""

    def __init__(self, simulator: State, exchange: Exchange, route: Route) -> None:
        self._simulator = simulator
        self._settings = simulator.settings
        self._exchange = exchange
        self._request = exchange.request
        self._api = APIS[route.api]
        self._route, self._body, self._fault_text = _split_fault(route, exchange.request.body)
        self._envelope = self._api.envelope if route.wrapped else None
        self._fault: Fault | None = None

    async def handle(self) -> HttpReply | None:
        """Return the reply to send, or None if it was sent already."""
        request, settings = self._request, self._settings
        self._fault = self._parse_fault(request.header("x-dragoman-fault") or self._fault_text or settings.fault)
        if await self._apply_early_fault():
            return None
        if settings.recordings is not None:
            target = request.target.replace(f"~{self._fault_text}", "", 1) if self._fault_text else request.target
            found = settings.recordings.find(target, self._body)
            if found is not None:
                await self._replay(found)
                return None
        accepted = self._accept()
        if self._route.operation == "count":
            counted = self._api.render_token_count(accepted, count_request_tokens(accepted.model_request))
            return HttpReply(
                200, JSON_HEADERS, self._envelope.wrap_count(counted) if self._envelope is not None else counted
            )
        if self._route.operation == "compact" and self._api.compact is not None:
            tokens = count_request_tokens(accepted.model_request)
            return HttpReply(200, JSON_HEADERS, self._api.compact(accepted, self._build_reply_meta(), tokens))
        await self._answer(accepted)
        return None

    def _parse_fault(self, fault_text: str) -> Fault | None:
        if not fault_text:
            return None
        try:
            return self._limit_fault(read_fault(fault_text))
        except UnknownFault as error:
            raise RequestRejected(ApiRejection(status=400, message=str(error), rule="fault")) from None

    def _limit_fault(self, fault: Fault) -> Fault | None:
        """Return a fault, or None once it has occurred `times` times."""
        if fault.times is None:
            return fault
        failed = self._simulator.fault_counts
        failed[fault.written] += 1
        return fault if failed[fault.written] <= fault.times else None

    async def _apply_early_fault(self) -> bool:
        """Apply a fault that needs no answer of the model; return whether the request is finished."""
        fault = self._fault
        if fault is None:
            return False
        if fault.name == "status":
            message = f"Simulated error with status {fault.status}"
            raise RequestRejected(
                ApiRejection(status=fault.status, message=message, rule="fault", retry_after=fault.retry_after)
            )
        if fault.name == "slow-headers" and await is_disconnected_within(self._exchange, fault.delay):
            self._simulator.record_request(self._request, self._api.name, 0, "fault")
            return True
        status = find_early_status(fault)
        if status is None:
            return False
        self._simulator.record_request(self._request, self._api.name, status, "fault")
        await send_early_fault(self._exchange, fault)
        return True

    async def _replay(self, recorded: HttpReply) -> None:
        """Send a recorded reply."""
        self._simulator.record_request(self._request, self._api.name, recorded.status)
        if recorded.status == 200 and recorded.headers["content-type"].startswith(SSE):
            await self._send_frames(
                recorded.headers,
                split_frames(recorded.body),
                lambda _sent: self._api.render_stream_error(_STREAM_ERROR),
            )
        else:
            await send_reply(self._exchange, recorded, self._fault)

    def _accept(self) -> AcceptedRequest:
        api, route, body, name = self._api, self._route, self._body, self._route.model
        if self._envelope is not None:
            opened = self._envelope.unwrap(body)
            if isinstance(opened, Violation):
                raise build_rejection(opened)
            name, body = opened
        if api.check_headers is not None and not route.vertex:
            missing = api.check_headers(dict(self._request.headers))
            if missing is not None:
                raise build_rejection(missing)
        memory = self._simulator.state_of(api.name)
        if memory is not None:
            joined = memory.expand_request(body, recorded=self._settings.recorded)
            if isinstance(joined, ApiRejection):
                raise RequestRejected(joined if joined.rule else structs.replace(joined, rule="stored"))
            body = joined
        context = CheckContext(
            model=name,
            recorded=self._settings.recorded,
            vertex=route.vertex or route.wrapped,
            counting=route.operation == "count",
            compacting=route.operation == "compact",
            version=self._request.header("anthropic-version") or route.version,
            betas=tuple(beta.strip() for beta in self._request.header("anthropic-beta").split(",") if beta.strip()),
        )
        accepted = api.accept(body, context, self._simulator.signer)
        if isinstance(accepted, Violation):
            raise build_rejection(accepted)
        return accepted

    async def _answer(self, accepted: AcceptedRequest) -> None:
        reply = self._run_script(accepted)
        if isinstance(reply, Fault):
            self._fault = self._fault or self._limit_fault(reply)
            if await self._apply_early_fault():
                return
        if not isinstance(reply, Answer):
            reply = model.answer(accepted.model_request, self._settings.seed, self._simulator.prompt_cache)
        reply = _apply_answer_fault(reply, self._fault)
        meta = self._build_reply_meta()
        if accepted.stream or self._route.stream:
            self._simulator.record_request(self._request, self._api.name, 200)
            await self._send_stream(reply, accepted, meta)
            return
        if self._has_fault("stream-error"):
            raise RequestRejected(_STREAM_ERROR)
        whole = self._api.render_reply(reply, accepted, meta)
        memory = self._simulator.state_of(self._api.name)
        whole = memory.save_reply(self._body, whole) if memory is not None else whole
        if self._has_fault("no-candidates"):
            whole = self._api.drop_answer(whole)
        whole = self._envelope.wrap(whole) if self._envelope is not None else whole
        if self._request.query.get("prettyPrint") == "false" and self._api.render_array is not None:
            whole = msgspec.json.format(whole, indent=-1)
        self._simulator.record_request(self._request, self._api.name, 200)
        await send_reply(self._exchange, HttpReply(200, self._build_headers(JSON_HEADERS, meta), whole), self._fault)

    def _run_script(self, accepted: AcceptedRequest) -> Answer | Fault | None:
        """Return the script's answer or fault; None if no step applies or there is no script."""
        if self._settings.script is None:
            return None
        received = Received(api=self._api.name, request=accepted.model_request, body=msgspec.json.decode(self._body))
        try:
            scripted = self._settings.script(received)
            if isinstance(scripted, Answer):
                _require_search(scripted, accepted.model_request)
        except (Unmet, AssertionError) as unmet:
            message = str(unmet) or "the request does not meet the script's expectations"
            raise RequestRejected(ApiRejection(status=400, message=message, rule="script")) from None
        if isinstance(scripted, Answer):
            return structs.replace(
                scripted, usage=count_usage(accepted.model_request, scripted, self._simulator.prompt_cache)
            )
        return scripted

    def _has_fault(self, fault: str) -> bool:
        return self._fault is not None and self._fault.name == fault

    async def _send_stream(self, answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> None:
        api = self._api
        frames = api.render_stream(answer, accepted, meta)
        memory = self._simulator.state_of(api.name)
        if memory is not None:
            frames = memory.save_stream(self._body, frames, partial(api.render_reply, answer, accepted, meta))
        if self._has_fault("no-candidates"):
            frames = transform_frames(frames, api.drop_answer)
        if self._envelope is not None:
            frames = transform_frames(frames, self._envelope.wrap)
        headers = _SSE
        if api.render_array is not None and is_array_stream(self._request, self._route):
            frames, headers = api.render_array(frames), JSON_HEADERS
        failure = partial(self._render_failure, accepted, meta)
        await self._send_frames(self._build_headers(headers, meta), frames, failure)

    def _render_failure(self, accepted: AcceptedRequest, meta: ReplyMeta, sent: int) -> bytes:
        """Return the last frames of a stream that fails after `sent` others."""
        api = self._api
        if api.render_broken_stream is not None:
            return api.render_broken_stream(_STREAM_ERROR, accepted, meta, sent)
        if api.render_array is not None and is_array_stream(self._request, self._route):
            # The error is the last element: a JSON array has no other place for it.
            alone = b"".join(api.render_array([api.render_stream_error(_STREAM_ERROR)]))
            return alone.replace(b"[", b"\n,\r\n", 1) if sent else alone
        return api.render_stream_error(_STREAM_ERROR)

    def _build_headers(self, headers: Mapping[str, str], meta: ReplyMeta) -> Mapping[str, str]:
        return headers if self._api.build_headers is None else {**headers, **self._api.build_headers(meta)}

    async def _send_frames(self, headers: Mapping[str, str], frames: Iterable[bytes], failure: RenderFailure) -> None:
        settings = self._settings
        flow = SendOptions(delay=settings.delay, split=settings.split, seed=settings.seed)
        self._exchange.start(200, headers)
        await send_frames(self._exchange, frames, flow, self._fault, failure)

    def _build_reply_meta(self) -> ReplyMeta:
        simulator, settings = self._simulator, self._settings
        simulator.answer_count += 1
        number = f"{settings.seed} {simulator.answer_count} ".encode()
        return ReplyMeta(
            id=sha256(number + self._request.body).hexdigest()[:24],
            created=int(time.time()),
            signer=simulator.signer,
            chunking=Chunking(
                size=settings.chunk,
                seed=settings.seed,
                interleaved=settings.interleaved,
                partial_args=settings.partial_args and self._route.vertex,
            ),
        )


def is_array_stream(request: Request, route: Route) -> bool:
    """Return whether the stream is one JSON array; an error before the stream is then also sent within an array."""
    return route.stream and APIS[route.api].render_array is not None and request.query.get("alt") != "sse"


def build_rejection(violation: Violation) -> RequestRejected:
    """Return the exception that rejects a request because of a violation."""
    return RequestRejected(
        ApiRejection(status=violation.status, message=violation.message, where=violation.where, rule=violation.rule)
    )


def _require_search(scripted: Answer, request: ModelRequest) -> None:
    """Raise `Unmet` if a scripted answer has searched the web and the request allows no search."""
    if (scripted.query or scripted.sources) and not any(tool.kind == "search" for tool in request.tools):
        raise Unmet("the script's answer has searched the web, but the request declares no web search")


def _split_fault(route: Route, body: bytes) -> tuple[Route, bytes, str]:
    """Split a fault off the model's name, in the path or in the body."""
    if route.model:
        model, fault = split_model(route.model)
        return structs.replace(route, model=model), body, fault
    try:
        named = msgspec.json.decode(body, type=_ModelField).model or ""
        model, fault = split_model(named)
        return route, set_member(body, "model", msgspec.json.encode(model)) if fault else body, fault
    except (msgspec.MsgspecError, Malformed, UnicodeDecodeError, RecursionError):
        return route, body, ""  # the API reports what is wrong with the body


def _apply_answer_fault(answer: Answer, fault: Fault | None) -> Answer:
    """Change the model's answer as a fault demands."""
    match fault.name if fault is not None else "":
        case "blocked":
            return structs.replace(answer, text="", thought="", calls=(), sources=(), query="", end="filtered")
        case "malformed-call":
            return structs.replace(answer, text="", calls=(), sources=(), query="", end="malformed_call")
        case _:
            return answer
