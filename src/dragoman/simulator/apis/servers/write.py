"""Render an answer as a server does: as one chat completion, or as a stream of chunks."""

from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from dragoman.http.message import JSON_HEADERS
from dragoman.simulator.apis.api import AcceptedRequest, ApiRejection, HttpReply, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, Call
from dragoman.simulator.apis.rule import Json
from dragoman.simulator.apis.servers.server import CallPlace, Server, ServerRequest
from dragoman.wire.json import encode

_DONE = b"data: [DONE]\n\n"
_ENDS = {"stop": "stop", "length": "length", "filtered": "content_filter", "malformed_call": "stop"}


class Renderer(Struct, frozen=True):
    """Renders the replies of one server."""

    server: Server

    def render_reply(self, answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> bytes:
        """Return the reply to a request without `stream`."""
        request = cast("ServerRequest", accepted.body)
        reason = self._find_finish_reason(answer, request)
        message: Json = {"role": "assistant", "content": answer.text or answer.refusal}
        message |= self._render_reasoning(answer.thought, meta)
        if answer.calls:
            ids = self._build_ids(answer, request, meta, streamed=False)
            message["tool_calls"] = [
                {"index": at, "id": one, "type": "function", "function": _render_function(call)}
                for at, (one, call) in enumerate(zip(ids, answer.calls, strict=True))
            ]
        choice = {"index": 0, "message": message, "finish_reason": reason, **self.server.choice_members(reason)}
        reply = self._build_envelope("chat.completion", request, meta)
        return encode({**reply, "choices": [choice], "usage": self._render_usage(answer)})

    def render_stream(self, answer: Answer, accepted: AcceptedRequest, meta: ReplyMeta) -> Iterator[bytes]:
        """Yield the frames of a stream."""
        server, request = self.server, cast("ServerRequest", accepted.body)
        if server.comment:
            yield server.comment
        shared = self._build_envelope("chat.completion.chunk", request, meta)

        def render_chunk(delta: Json, reason: str | None = None, **more: Any) -> bytes:
            members = server.choice_members(reason or "") if reason else {}
            choice = {"index": 0, "delta": delta, "finish_reason": reason, **members}
            return b"data: " + encode({**shared, "choices": [choice], **more}) + b"\n\n"

        yield render_chunk({"role": "assistant", "content": ""})
        for delta in self._iterate_deltas(answer, request, meta):
            yield render_chunk({"role": "assistant", **delta} if server.repeats_role else delta)
        reason, usage = self._find_finish_reason(answer, request), self._render_usage(answer)
        if server.usage_chunk == "finish":
            yield render_chunk({"content": ""}, reason, usage=usage)
        else:
            yield render_chunk({"content": ""}, reason)
            if request.at("/stream_options/include_usage"):
                yield b"data: " + encode({**shared, "choices": [], "usage": usage}) + b"\n\n"
        yield _DONE

    def render_error(self, rejection: ApiRejection) -> HttpReply:
        """Return the error reply."""
        body = encode({"error": self._build_error(rejection)})
        headers = {**JSON_HEADERS, **({"x-dragoman-rule": rejection.rule} if rejection.rule else {})}
        return HttpReply(rejection.status, headers, body)

    def render_stream_error(self, rejection: ApiRejection) -> bytes:
        """Return the frames that end a stream with an error."""
        end = _DONE if self.server.sends_error_end else b""
        return b"data: " + encode({"error": self._build_error(rejection)}) + b"\n\n" + end

    def _build_error(self, rejection: ApiRejection) -> Json:
        rule = f" [rule: {rejection.rule}]" if rejection.rule else ""
        return self.server.build_error(rejection, rejection.message + rule)

    def _build_envelope(self, kind: str, request: ServerRequest, meta: ReplyMeta) -> Json:
        name = f"chatcmpl-{meta.id}"
        return {
            "id": name,
            "object": kind,
            "created": meta.created,
            "model": request.model,
            **self.server.reply_members,
        }

    def _find_finish_reason(self, answer: Answer, request: ServerRequest) -> str:
        if answer.end != "calls" and answer.end in _ENDS and not answer.calls:
            return _ENDS[answer.end]
        if answer.end == "length":
            return "length"
        is_named = isinstance(request.get("tool_choice"), dict)
        return "stop" if self.server.stop_if_named and is_named else "tool_calls"

    def _build_ids(self, answer: Answer, request: ServerRequest, meta: ReplyMeta, *, streamed: bool) -> list[str]:
        earlier = len(request.find("/messages/*/tool_calls/*"))
        return [
            self.server.build_call_id(call, CallPlace(at, earlier, meta.id, streamed))
            for at, call in enumerate(answer.calls)
        ]

    def _render_reasoning(self, thought: str, meta: ReplyMeta) -> Json:
        if not thought:
            return {}
        if not self.server.signs_reasoning:
            return {self.server.reasoning: thought}
        signature = meta.signer.issue(thought, meta.id)
        return {self.server.reasoning: thought, "reasoning_details": [{**_detail(thought), "signature": signature}]}

    def _iterate_deltas(self, answer: Answer, request: ServerRequest, meta: ReplyMeta) -> Iterator[Json]:
        server, split = self.server, meta.chunking.split_text
        for piece in split(answer.thought):
            details = {"reasoning_details": [_detail(piece)]} if server.signs_reasoning else {}
            yield {server.reasoning: piece, **details}
        if answer.thought and server.signs_reasoning:
            signature = meta.signer.issue(answer.thought, meta.id)
            yield {"reasoning_details": [{**_detail(""), "signature": signature}]}
        for piece in split(answer.text or answer.refusal):
            yield {"content": piece}
        ids = self._build_ids(answer, request, meta, streamed=True)
        for at, (one, call) in enumerate(zip(ids, answer.calls, strict=True)):
            function = _render_function(call)
            if server.streams_whole_calls:
                yield {"tool_calls": [{"index": at, "id": one, "type": "function", "function": function}]}
                continue
            opening = {"index": at, "id": one, "type": "function", "function": {**function, "arguments": ""}}
            yield {"tool_calls": [opening]}
            again: Json = {"id": "", "type": "function"} if server.repeats_empty_id else {}
            for piece in split(function["arguments"]):
                yield {"tool_calls": [{"index": at, **again, "function": {"arguments": piece}}]}

    def _render_usage(self, answer: Answer) -> Json:
        used = answer.usage
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens_details": {"reasoning_tokens": used.thought},
            **self.server.usage_members(used.input, used.cached),
        }


def _render_function(call: Call) -> Json:
    written = call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()
    return {"name": call.name, "arguments": written}


def _detail(text: str) -> Json:
    return {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
