"""A Gemini program in every format, with a history, and callers in every dialect."""

import http.client
import json
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import anthropic
import openai

from dragoman.simulator.runner import Running
from intercept.surroundings import Between

MODEL = "gemini-3-flash"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PROMPT = "(The tools have answered: go on.)"


class Client:
    """A program with a history. `form` is whole, events or items, with `wrapped` in Code Assist's envelope."""

    def __init__(self, base_url: str, form: str = "whole", *, wrapped: bool = False, tools: Sequence[Any] = ()) -> None:
        self.base_url = base_url
        self.form = form
        self.wrapped = wrapped
        self.bearer = wrapped
        self.tools = tools
        self.history: list[dict[str, Any]] = []
        self.status = 0
        self.raw = b""

    def request(self, text: str = "", **more: Any) -> bytes:
        """Return the bytes of the next request; without a text it goes on from its history."""
        asked = [*self.history, {"role": "user", "parts": [{"text": text}]}] if text else self.history
        body: dict[str, Any] = {"contents": asked, **({"tools": self.tools} if self.tools else {}), **more}
        return json.dumps({"model": MODEL, "project": "p", "request": body} if self.wrapped else body).encode()

    @property
    def path(self) -> str:
        verb = {"whole": "generateContent", "events": "streamGenerateContent?alt=sse"}.get(
            self.form, "streamGenerateContent"
        )
        return f"/v1internal:{verb}" if self.wrapped else f"/v1beta/models/{MODEL}:{verb}"

    def send(self, body: bytes) -> list[dict[str, Any]]:
        """Send bytes; return the chunks of the reply."""
        parts = urlsplit(self.base_url)
        link = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        try:
            headers = {"content-type": "application/json", "authorization": "Bearer the-clients"}
            if not self.bearer:
                headers = {"content-type": "application/json", "x-goog-api-key": "the-clients"}
            link.request("POST", parts.path + self.path, body, headers)
            reply = link.getresponse()
            self.status, self.raw = reply.status, reply.read()
        finally:
            link.close()
        chunks = self._chunks() if self.status == 200 else []
        return [chunk["response"] if self.wrapped else chunk for chunk in chunks]

    @contextmanager
    def sending(self, body: bytes) -> Generator[socket.socket]:
        """Send bytes, and hang up with the block, whatever was read by then."""
        parts = urlsplit(self.base_url)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as link:
            head = f"POST {parts.path}{self.path} HTTP/1.1\r\nhost: localhost\r\nx-goog-api-key: k\r\n"
            link.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            yield link

    def _chunks(self) -> list[dict[str, Any]]:
        if self.form == "events":
            return [json.loads(line[6:]) for line in self.raw.decode().splitlines() if line.startswith("data: ")]
        read = json.loads(self.raw)
        return read if self.form == "items" else [read]

    def say(self, text: str = "", **more: Any) -> str:
        """Say something, and remember it with what the model says."""
        chunks = self.send(self.request(text, **more))
        assert self.status == 200, self.raw
        parts = [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", [])]
        # An empty text says nothing, and no SDK remembers it.
        parts = [part for part in parts if part != {"text": ""}]
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
        assert chunks[-1]["usageMetadata"] is not None
        if text:
            self.history.append({"role": "user", "parts": [{"text": text}]})
        self.history.append({"role": "model", "parts": parts})
        return "".join(part.get("text", "") for part in parts if not part.get("thought"))


class Call(dict[str, Any]):
    """A call as a caller got it: id, name, arguments."""


class Caller:
    """A caller with tools, in one dialect."""

    def __init__(self, middle: Between, dialect: str, conversation: str, tools: dict[str, Any], **more: Any) -> None:
        self.dialect = dialect
        self.conversation = conversation
        self.tools = tools
        self.streamed = more.pop("streamed", False)
        self.middle = middle
        self.base_url = middle.base_url
        self.history: list[Any] = []
        self.header = {"x-dragoman-conversation": conversation}

    def ask(self, prompt: str) -> tuple[str, list[Call]]:
        """Ask something; return the words and the calls that come back."""
        self.history.append(prompt)
        return getattr(self, f"_{self.dialect}")(prompt, [])

    def answer(self, results: list[tuple[Call, str]], prompt: str = "") -> tuple[str, list[Call]]:
        """Send results, and a prompt with them if there is one."""
        return getattr(self, f"_{self.dialect}")(prompt, results)

    def _responses(self, prompt: str, results: list[tuple[Call, str]]) -> tuple[str, list[Call]]:
        sdk = self.middle.client(openai.OpenAI, "/v1")
        output: list[Any] = [
            {"type": "function_call_output", "call_id": call["id"], "output": text} for call, text in results
        ]
        output += [{"role": "user", "content": prompt}] if prompt else []
        tools: Any = [{"type": "function", "name": name, "parameters": one} for name, one in self.tools.items()]
        asked: Any = {"model": MODEL, "input": output, "tools": tools, "conversation": self.conversation}
        if self.streamed:
            with sdk.responses.stream(**asked) as events:
                got = events.until_done().get_final_response()
        else:
            got = sdk.responses.create(**asked)
        calls = [item for item in got.output if item.type == "function_call"]
        return got.output_text, [Call(id=one.call_id, name=one.name, arguments=one.arguments) for one in calls]

    def _chat(self, prompt: str, results: list[tuple[Call, str]]) -> tuple[str, list[Call]]:
        output: list[Any] = [{"role": "user", "content": self.history[0]}] if results else []
        if results:
            made = [
                {"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": one["arguments"]}}
                for one, _ in results
            ]
            output.append({"role": "assistant", "content": None, "tool_calls": made})
            output += [{"role": "tool", "tool_call_id": one["id"], "content": text} for one, text in results]
        output += [{"role": "user", "content": prompt}] if prompt else []
        tools: Any = [
            {"type": "function", "function": {"name": name, "parameters": one}} for name, one in self.tools.items()
        ]
        sdk = self.middle.client(openai.OpenAI, "/v1")
        asked: Any = {"model": MODEL, "messages": output, "tools": tools, "extra_headers": self.header}
        if self.streamed:
            with sdk.chat.completions.stream(**asked) as events:
                got = events.get_final_completion().choices[0].message
        else:
            got = sdk.chat.completions.create(**asked).choices[0].message
        calls = [(one.id, one.function) for one in got.tool_calls or ()]
        return got.content or "", [Call(id=name, name=f.name, arguments=f.arguments) for name, f in calls]

    def _messages(self, prompt: str, results: list[tuple[Call, str]]) -> tuple[str, list[Call]]:
        output: list[Any] = [{"role": "user", "content": self.history[0]}] if results else []
        if results:
            made = [
                {"type": "tool_use", "id": one["id"], "name": one["name"], "input": json.loads(one["arguments"])}
                for one, _ in results
            ]
            output.append({"role": "assistant", "content": made})
            given: list[Any] = [
                {"type": "tool_result", "tool_use_id": one["id"], "content": text} for one, text in results
            ]
            output.append(
                {"role": "user", "content": [*given, *([{"type": "text", "text": prompt}] if prompt else [])]}
            )
        elif prompt:
            output += [{"role": "user", "content": prompt}]
        tools: Any = [{"name": name, "input_schema": one} for name, one in self.tools.items()]
        sdk = self.middle.client(anthropic.Anthropic)
        asked: Any = {
            "model": MODEL,
            "max_tokens": 500,
            "messages": output,
            "tools": tools,
            "extra_headers": self.header,
        }
        if self.streamed:
            with sdk.messages.stream(**asked) as events:
                got = events.get_final_message()
        else:
            got = sdk.messages.create(**asked)
        text = "".join(block.text for block in got.content if block.type == "text")
        calls = [block for block in got.content if block.type == "tool_use"]
        return text, [Call(id=one.id, name=one.name, arguments=json.dumps(one.input)) for one in calls]

    def _gemini(self, prompt: str, results: list[tuple[Call, str]]) -> tuple[str, list[Call]]:
        parts: list[Any] = [
            {"functionResponse": {"id": one["id"], "name": one["name"], "response": {"result": text}}}
            for one, text in results
        ]
        parts += [{"text": prompt}] if prompt else []
        declared = [{"name": name, "parametersJsonSchema": one} for name, one in self.tools.items()]
        body = {"model": MODEL, "conversation": self.conversation, "input": parts, "stream": self.streamed}
        chunks = post(f"{self.base_url}/v1/gemini", body | {"tools": [{"functionDeclarations": declared}]})
        output = [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", [])]
        made = [part["functionCall"] for part in output if "functionCall" in part]
        text = "".join(part.get("text", "") for part in output if not part.get("thought"))
        return text, [Call(id=one["id"], name=one["name"], arguments=json.dumps(one["args"])) for one in made]


def post(url: str, body: Any) -> list[dict[str, Any]]:
    """Post JSON; return what comes, event by event if it comes so."""
    parts = urlsplit(url)
    link = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        link.request(
            "POST", parts.path, json.dumps(body), {"content-type": "application/json", "x-goog-api-key": "any"}
        )
        reply = link.getresponse()
        result = reply.read()
        assert reply.status == 200, result
    finally:
        link.close()
    if result.startswith(b"data: "):
        return [json.loads(line[6:]) for line in result.decode().splitlines() if line.startswith("data: ")]
    read = json.loads(result)
    return read if isinstance(read, list) else [read]


def last_request(simulator: Running) -> dict[str, Any]:
    """Return the last request that the simulator got, out of its envelope."""
    body = json.loads(simulator.requests[-1].body)
    return body.get("request", body)
