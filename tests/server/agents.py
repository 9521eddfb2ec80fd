"""Send prompts to a gateway that runs tools, with the official SDKs of all four dialects behind one interface."""

import json
from typing import Any

import anthropic
import openai
from msgspec import Struct

from oracles.clients import genai
from server.asking import tools_of
from server.conftest import Gateway

CLIENTS = ["chat", "responses", "messages", "gemini"]
WEATHER = {"get_weather": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


class ClientReply(Struct):
    """A reply as an SDK parsed it."""

    text: str
    calls: list[tuple[str, str, Any]]
    """Calls for the client to run: id, name, arguments."""
    finish: str
    usage: tuple[int, int]
    history_items: list[Any]
    """The reply as the client sends it back."""
    raw: Any


class Client:
    """One dialect's SDK, with a history of its own."""

    def __init__(self, gateway: Gateway, dialect: str, *, stream: bool, model: str = "gpt", key: str = "any") -> None:
        self.gateway, self.dialect, self.stream, self.model = gateway, dialect, stream, model
        self.history: list[Any] = []
        base = gateway.base_url
        match dialect:
            case "chat" | "responses":
                self.sdk = gateway.open(openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0))
            case "messages":
                self.sdk = gateway.open(anthropic.Anthropic(base_url=base, api_key=key, max_retries=0))
            case _:
                self.sdk = gateway.open(genai.Client(api_key=key, http_options={"base_url": base}))

    def ask(
        self, text: str = "", headers: dict[str, str] | None = None, schemas: Any = None, **more: Any
    ) -> ClientReply:
        """Send a prompt with the history; without a prompt send only the history."""
        if text:
            part = {"parts": [{"text": text}]} if self.dialect == "gemini" else {"content": text}
            self.history.append({"role": "user", **part})
        tools = tools_of(self.dialect, schemas) if schemas else []
        tools += more.pop("tools", [])
        received = getattr(self, f"_{self.dialect}")(headers or {}, tools, more)
        self.history += received.history_items
        return received

    def answer(self, received: ClientReply, results: dict[str, str]) -> None:
        """Send the results of calls, by tool name."""
        for at, (call_id, name, _) in enumerate(received.calls):
            result = results[name]
            match self.dialect:
                case "chat":
                    self.history.append({"role": "tool", "tool_call_id": call_id, "content": result})
                case "responses":
                    self.history.append({"type": "function_call_output", "call_id": call_id, "output": result})
                case "messages":
                    block = {"type": "tool_result", "tool_use_id": call_id, "content": result}
                    self._together({"role": "user", "content": [block]}, "content", first=at == 0)
                case _:
                    # As `types.Part.from_function_response` makes it, without an id.
                    part = {"function_response": {"name": name, "response": {"result": result}}}
                    self._together({"role": "user", "parts": [part]}, "parts", first=at == 0)

    def _together(self, message: Any, member: str, *, first: bool) -> None:
        if first:
            self.history.append(message)
        else:
            self.history[-1][member] += message[member]

    def _chat(self, headers: dict[str, str], tools: list[Any], more: dict[str, Any]) -> ClientReply:
        asked = {"model": self.model, "messages": self.history, "extra_headers": headers, **more}
        if tools:
            asked["tools"] = tools
        if self.stream:
            with self.sdk.chat.completions.stream(**asked, stream_options={"include_usage": True}) as events:
                reply = events.get_final_completion()
        else:
            reply = self.sdk.chat.completions.create(**asked)
        choice = reply.choices[0]
        calls = [
            (call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ]
        output = choice.message.model_dump(exclude_none=True)
        for call in output.get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        output.pop("parsed", None)
        usage = (reply.usage.prompt_tokens, reply.usage.completion_tokens)
        return ClientReply(choice.message.content or "", calls, choice.finish_reason, usage, [output], reply)

    def _responses(self, headers: dict[str, str], tools: list[Any], more: dict[str, Any]) -> ClientReply:
        asked = {"model": self.model, "input": self.history, "extra_headers": headers, "tools": tools, "store": False}
        asked |= more
        if self.stream:
            with self.sdk.responses.stream(**asked) as events:
                reply = events.get_final_response()
        else:
            reply = self.sdk.responses.create(**asked)
        calls = [
            (item.call_id, item.name, json.loads(item.arguments))
            for item in reply.output
            if item.type == "function_call"
        ]
        parsed = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
        for item in parsed:
            for part in item.get("content") or ():
                part.pop("parsed", None)
        usage = (reply.usage.input_tokens, reply.usage.output_tokens)
        return ClientReply(reply.output_text, calls, reply.status, usage, parsed, reply)

    def _messages(self, headers: dict[str, str], tools: list[Any], more: dict[str, Any]) -> ClientReply:
        asked = {"model": self.model, "max_tokens": 500, "messages": self.history, "extra_headers": headers, **more}
        api = self.sdk.beta.messages if "betas" in more else self.sdk.messages
        if tools:
            asked["tools"] = tools
        if self.stream:
            with api.stream(**asked) as events:
                reply = events.get_final_message()
        else:
            reply = api.create(**asked)
        calls = [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]
        text = "".join(block.text for block in reply.content if block.type == "text")
        content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in reply.content]
        usage = (reply.usage.input_tokens, reply.usage.output_tokens)
        output = [{"role": "assistant", "content": content}]
        return ClientReply(text, calls, reply.stop_reason, usage, output, reply)

    def _gemini(self, headers: dict[str, str], tools: list[Any], more: dict[str, Any]) -> ClientReply:
        config = {"tools": tools, "http_options": {"headers": headers}, **more}
        config["automatic_function_calling"] = {"disable": True}
        asked = {"model": self.model, "contents": self.history, "config": config}
        if self.stream:
            chunks = list(self.sdk.models.generate_content_stream(**asked))
        else:
            chunks = [self.sdk.models.generate_content(**asked)]
        contents = [chunk.candidates[0].content for chunk in chunks]  # none where nothing was said
        parts = [part for content in contents if content is not None for part in content.parts or ()]
        calls = [
            (part.function_call.id, part.function_call.name, part.function_call.args)
            for part in parts
            if part.function_call
        ]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        usage = chunks[-1].usage_metadata
        counts = (usage.prompt_token_count, usage.candidates_token_count)
        finish = chunks[-1].candidates[0].finish_reason.value
        output = [{"role": "model", "parts": [part.model_dump(exclude_none=True) for part in parts]}]
        return ClientReply(text, calls, finish, counts, output, chunks)
