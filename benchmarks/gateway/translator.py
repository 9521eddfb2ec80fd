"""The smallest gateway that translates: Chat Completions in, Gemini out, whole and streamed, with tools.

`python -m benchmarks.gateway.translator UPSTREAM`. Callbacks on uvloop, httptools and msgspec; no task and no future a
request. One pair of dialects, text and functions only; no keys, no deadlines, no limits, no errors, no log. It is the
yardstick: what a gateway costs beyond this is what it does more.
"""

import asyncio
import sys
from itertools import count
from typing import Any, ClassVar, cast
from urllib.parse import urlsplit

import httptools
from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

_WHOLE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_NO_SCHEMA = Raw(b"{}")
_encode = Encoder().encode
_ids = count(1)


class Function(Struct):
    """A function that may be called."""

    name: str
    description: str = ""
    parameters: Raw = _NO_SCHEMA


class Tool(Struct):
    """A tool."""

    function: Function


class CalledFunction(Struct):
    """The function of a call; its arguments are JSON in a text."""

    name: str
    arguments: str


class ToolCall(Struct):
    """A call."""

    id: str
    function: CalledFunction


class Message(Struct):
    """A message."""

    role: str
    content: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str = ""


class ChatRequest(Struct):
    """A request of a client."""

    model: str
    messages: list[Message]
    tools: list[Tool] = []
    tool_choice: str = "auto"
    temperature: float | None = None
    max_tokens: int | None = None
    stream: bool = False


class FunctionCall(Struct):
    """A call of Gemini's."""

    name: str
    args: Raw = _NO_SCHEMA


class Part(Struct, rename="camel"):
    """A part of Gemini's reply."""

    text: str = ""
    function_call: FunctionCall | None = None


class Content(Struct):
    """The parts of an answer."""

    parts: list[Part] = []


class Candidate(Struct, rename="camel"):
    """An answer."""

    content: Content | None = None
    finish_reason: str = ""


class Usage(Struct, rename="camel"):
    """Tokens."""

    prompt_token_count: int = 0
    candidates_token_count: int = 0
    total_token_count: int = 0


class GeminiReply(Struct, rename="camel"):
    """A reply of Gemini's, or a chunk of one."""

    candidates: list[Candidate] = []
    usage_metadata: Usage | None = None


_decode_request = Decoder(ChatRequest).decode
_decode_reply = Decoder(GeminiReply).decode


def to_gemini(request: ChatRequest) -> bytes:
    """Translate a request."""
    contents: list[dict[str, Any]] = []
    system: list[dict[str, str]] = []
    names: dict[str, str] = {}
    for message in request.messages:
        role = "model" if message.role == "assistant" else "user"
        if message.role == "system":
            system.append({"text": message.content or ""})
            continue
        if message.role == "tool":
            answer = {"name": names.get(message.tool_call_id, ""), "response": {"output": message.content}}
            parts: list[dict[str, Any]] = [{"functionResponse": answer}]
        else:
            parts = [{"text": message.content}] if message.content else []
            for call in message.tool_calls:
                names[call.id] = call.function.name
                arguments = Raw(call.function.arguments.encode())
                parts.append({"functionCall": {"name": call.function.name, "args": arguments}})
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    config = {"temperature": request.temperature, "maxOutputTokens": request.max_tokens}
    body: dict[str, Any] = {
        "contents": contents,
        "generationConfig": {name: value for name, value in config.items() if value is not None},
    }
    if system:
        body["systemInstruction"] = {"parts": system}
    if request.tools:
        functions = [tool.function for tool in request.tools]
        body["tools"] = [{"functionDeclarations": [_declaration(function) for function in functions]}]
        body["toolConfig"] = {"functionCallingConfig": {"mode": _MODES[request.tool_choice]}}
    return _encode(body)


def _declaration(function: Function) -> dict[str, Any]:
    return {"name": function.name, "description": function.description, "parametersJsonSchema": function.parameters}


def _chat_call(call: FunctionCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": bytes(call.args).decode()}
    return {"id": f"call_{next(_ids):x}", "type": "function", "function": function}


def to_chat(body: bytes, model: str) -> bytes:
    """Translate a whole reply."""
    reply = _decode_reply(body)
    candidate = reply.candidates[0]
    parts = candidate.content.parts if candidate.content is not None else []
    calls = [_chat_call(part.function_call) for part in parts if part.function_call is not None]
    message: dict[str, Any] = {"role": "assistant", "content": "".join([part.text for part in parts]) or None}
    if calls:
        message["tool_calls"] = calls
    reason = "tool_calls" if calls else _REASONS.get(candidate.finish_reason, "stop")
    result: dict[str, Any] = {
        "id": f"chatcmpl-{next(_ids):x}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    usage = reply.usage_metadata
    if usage is not None:
        result["usage"] = {
            "prompt_tokens": usage.prompt_token_count,
            "completion_tokens": usage.candidates_token_count,
            "total_tokens": usage.total_token_count,
        }
    return _encode(result)


class ChatStream:
    """Translates a stream, event by event."""

    def __init__(self, model: str) -> None:
        self._rest = b""
        self._calls = 0
        head = {"id": f"chatcmpl-{next(_ids):x}", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._head = b"data: " + _encode(head)[:-1] + b',"choices":[{"index":0,"delta":'

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the upstream; return those for the client."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return b"".join([self._event(line[5:]) for line in lines if line.startswith(b"data:")])

    def _event(self, data: bytes) -> bytes:
        written: list[bytes] = []
        for candidate in _decode_reply(data).candidates:
            for part in candidate.content.parts if candidate.content is not None else []:
                if part.function_call is not None:
                    call = {"index": self._calls, **_chat_call(part.function_call)}
                    self._calls += 1
                    written.append(self._chunk(_encode({"tool_calls": [call]})))
                elif part.text:
                    written.append(self._chunk(b'{"content":%b}' % _encode(part.text)))
            if candidate.finish_reason:
                reason = "tool_calls" if self._calls else _REASONS.get(candidate.finish_reason, "stop")
                written.append(self._chunk(b"{}", _encode(reason)))
                written.append(b"data: [DONE]\n\n")
        return b"".join(written)

    def _chunk(self, delta: bytes, reason: bytes = b"null") -> bytes:
        return self._head + delta + b',"finish_reason":' + reason + b"}]}\n\n"


class Upstream(asyncio.Protocol):
    """A connection to the upstream; it serves one client at a time."""

    idle: ClassVar["list[Upstream]"] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def send(self, request: bytes, client: "Client") -> None:
        """Send a request; the client gets its reply."""
        self._client = client
        self.on_body = client.on_reply_data
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        Upstream.idle.append(self)
        self._client.on_reply_end()


class Client(asyncio.Protocol):
    """A connection of a client."""

    host, port = "", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []
        self._stream: ChatStream | None = None

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._body.append(data)

    def on_message_complete(self) -> None:
        request = _decode_request(b"".join(self._body))
        self._body = []
        self._model = request.model
        self._stream = ChatStream(request.model) if request.stream else None
        verb = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        body = to_gemini(request)
        head = (
            f"POST /v1beta/models/{request.model}:{verb} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\n"
            f"content-type: application/json\r\nx-goog-api-key: some-key\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        if request.stream:
            self._transport.write(_STREAM_HEAD)
        if Upstream.idle:
            Upstream.idle.pop().send(head.encode() + body, self)
        else:
            asyncio.ensure_future(self._dial(head.encode() + body))  # noqa: RUF006, TID251  only for the first requests

    async def _dial(self, request: bytes) -> None:
        _, upstream = await asyncio.get_running_loop().create_connection(Upstream, self.host, self.port)
        upstream.send(request, self)

    def on_reply_data(self, data: bytes) -> None:
        """Take a piece of the reply's body."""
        if self._stream is None:
            self._body.append(data)
        elif events := self._stream.feed(data):
            self._transport.write(b"%x\r\n%b\r\n" % (len(events), events))

    def on_reply_end(self) -> None:
        """Finish the answer."""
        if self._stream is not None:
            self._transport.write(b"0\r\n\r\n")
            return
        reply = to_chat(b"".join(self._body), self._model)
        self._body = []
        self._transport.write(_WHOLE_HEAD % len(reply) + reply)


async def main(upstream: str) -> None:
    """Listen until the end."""
    address = urlsplit(upstream)
    Client.host, Client.port = address.hostname or "", address.port or 80
    server = await asyncio.get_running_loop().create_server(Client, "127.0.0.1", 0, backlog=1024)
    print(f"translator on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)  # noqa: T201
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(sys.argv[1]))
