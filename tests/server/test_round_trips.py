"""The official SDKs ask every kind of upstream for a tool call, whole and streamed, and go on with its result."""

import json
from typing import Any

import anthropic
import openai
import pytest

from oracles.clients import genai
from server.conftest import Gateway

MODELS = ["gem", "claude", "gpt", "resp", "vgem", "vclaude", "assist"]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASK = "What is the weather in Tokyo?"
RESULT = '{"temperature":72,"unit":"F"}'
Call = tuple[str, str, dict[str, Any]]
"""The id, the name and the arguments of a call, as the SDK read them."""


class Chat:
    """The openai SDK with Chat Completions."""

    def __init__(self, gateway: Gateway, model: str) -> None:
        self._client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
        self._model = model
        self._messages: list[Any] = [{"role": "user", "content": ASK}]
        function = {"name": "get_weather", "description": "Get the weather", "parameters": SCHEMA}
        self._tools: list[Any] = [{"type": "function", "function": function}]

    def turn(self, *, streamed: bool) -> tuple[str, list[Call]]:
        asked: dict[str, Any] = {"model": self._model, "messages": self._messages, "tools": self._tools}
        if streamed:
            with self._client.chat.completions.stream(**asked) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = self._client.chat.completions.create(**asked).choices[0].message
        self._messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in self._messages[-1].get("tool_calls", ()):
            call["function"].pop("parsed_arguments", None)
        found = [
            (call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()
        ]
        return message.content or "", found

    def result(self, call: Call) -> None:
        self._messages.append({"role": "tool", "tool_call_id": call[0], "content": RESULT})


class Responses:
    """The openai SDK with Responses."""

    def __init__(self, gateway: Gateway, model: str) -> None:
        self._client = gateway.open(openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="any", max_retries=0))
        self._model = model
        self._input: list[Any] = [{"role": "user", "content": ASK}]
        self._tools: list[Any] = [
            {"type": "function", "name": "get_weather", "description": "Get it", "parameters": SCHEMA, "strict": False}
        ]

    def turn(self, *, streamed: bool) -> tuple[str, list[Call]]:
        asked: dict[str, Any] = {"model": self._model, "input": self._input, "tools": self._tools, "store": False}
        asked["include"] = ["reasoning.encrypted_content"]
        if streamed:
            with self._client.responses.stream(**asked) as stream:
                response: Any = stream.get_final_response()
        else:
            response = self._client.responses.create(**asked)
        found = []
        for item in response.output:
            self._input.append(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}))
            if item.type == "function_call":
                found.append((item.call_id, item.name, json.loads(item.arguments)))
        for item in self._input:
            for content in item.get("content", ()) if item.get("type") == "message" else ():
                content.pop("parsed", None)
        return response.output_text, found

    def result(self, call: Call) -> None:
        self._input.append({"type": "function_call_output", "call_id": call[0], "output": RESULT})


class Messages:
    """The anthropic SDK."""

    def __init__(self, gateway: Gateway, model: str) -> None:
        self._client = gateway.open(anthropic.Anthropic(base_url=gateway.base_url, api_key="any", max_retries=0))
        self._model = model
        self._messages: list[Any] = [{"role": "user", "content": ASK}]
        self._tools: list[Any] = [{"name": "get_weather", "description": "Get it", "input_schema": SCHEMA}]

    def turn(self, *, streamed: bool) -> tuple[str, list[Call]]:
        asked: dict[str, Any] = {"model": self._model, "messages": self._messages, "tools": self._tools}
        asked["max_tokens"] = 1000
        if streamed:
            with self._client.messages.stream(**asked) as stream:
                message: Any = stream.get_final_message()
        else:
            message = self._client.messages.create(**asked)
        self._messages.append(
            {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in message.content]}
        )
        found = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        return "".join(block.text for block in message.content if block.type == "text"), found

    def result(self, call: Call) -> None:
        result = {"type": "tool_result", "tool_use_id": call[0], "content": RESULT}
        self._messages.append({"role": "user", "content": [result]})


class Gemini:
    """The google-genai SDK."""

    def __init__(self, gateway: Gateway, model: str) -> None:
        self._client = gateway.open(genai.Client(api_key="any", http_options={"base_url": gateway.base_url}))
        self._model = model
        self._contents: list[Any] = [{"role": "user", "parts": [{"text": ASK}]}]
        declared = {"name": "get_weather", "description": "Get it", "parameters_json_schema": SCHEMA}
        self._config: Any = {"tools": [{"function_declarations": [declared]}]}

    def turn(self, *, streamed: bool) -> tuple[str, list[Call]]:
        asked: dict[str, Any] = {"model": self._model, "contents": self._contents, "config": self._config}
        if streamed:
            chunks = list(self._client.models.generate_content_stream(**asked))
        else:
            chunks = [self._client.models.generate_content(**asked)]
        parts: list[Any] = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
        kept = [part for part in parts if part.text != "" or part.thought_signature or part.function_call]
        self._contents.append(genai.types.Content(role="model", parts=kept))
        calls = [part.function_call for part in parts if part.function_call]
        text = "".join(part.text for part in parts if part.text and not part.thought)
        return text, [(call.id or "", call.name, call.args) for call in calls]

    def result(self, call: Call) -> None:
        response = {"id": call[0], "name": call[1], "response": json.loads(RESULT)}
        self._contents.append({"role": "user", "parts": [{"function_response": response}]})


CLIENTS = {"chat": Chat, "responses": Responses, "messages": Messages, "gemini": Gemini}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_tool_is_called_and_its_result_is_used(gateway, client, model, streamed):
    conversation = CLIENTS[client](gateway, model)
    text, calls = conversation.turn(streamed=streamed)
    assert [(name, arguments) for _, name, arguments in calls] == [("get_weather", {"city": "Tokyo"})]
    conversation.result(calls[0])
    text, calls = conversation.turn(streamed=streamed)
    assert calls == []
    assert "72" in text
    assert gateway.simulator.requests[-1].status == 200
