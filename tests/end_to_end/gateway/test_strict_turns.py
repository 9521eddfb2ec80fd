"""Strict mode accepts every turn that only repeats what the gateway handed out, for each client and upstream."""

import json
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from oracles.clients import genai
from server.conftest import Gateway

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTIONS = ("What is the weather in Tokyo and in Paris?", "What is the weather in Rome?", "Thank you. Say hello.")
STRICT = {"x-dragoman-strict": "true"}
MODELS = ("gem", "claude", "gpt", "resp")
SHOWN: dict[str, dict[str, Any]] = {
    "responses": {"hidden": {}, "shown": {"summary": "auto"}},
    "messages": {"hidden": {}, "shown": {"display": "summarized"}},
    "gemini": {"hidden": {}, "shown": {"include_thoughts": True}},
}
"""The settings that show thinking to the client. Chat has none, neither for clients nor at upstreams."""
CASES = [
    (client, model, thinking)
    for client in ("chat", "responses", "messages", "gemini")
    for model in MODELS
    for thinking in ("", "hidden", "shown")
    if thinking != "shown" or (client != "chat" and model != "gpt")
]
Ask = Callable[[Gateway, str, list[Any], bool, str], tuple[list[Any], int]]
"""Send a history; return it with the reply and the results of its calls, and the number of calls."""


def result_of(number: int) -> str:
    return json.dumps({"temp": 20 + number})


def ask_chat(gateway: Gateway, model: str, history: list[Any], stream: bool, thinking: str) -> tuple[list[Any], int]:
    client = gateway.open(
        openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0, default_headers=STRICT)
    )
    body: dict[str, Any] = {
        "model": model,
        "messages": history,
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}],
        **({"reasoning_effort": "low"} if thinking else {}),
    }
    if stream:
        with client.chat.completions.stream(**body) as events:
            message = events.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**body).choices[0].message
    calls = message.tool_calls or []
    given = message.model_dump(exclude_none=True, exclude={"parsed"})
    for call in given.get("tool_calls", ()):
        call["function"].pop("parsed_arguments", None)
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": result_of(number)} for number, call in enumerate(calls)
    ]
    return [*history, given, *results], len(calls)


def ask_responses(
    gateway: Gateway, model: str, history: list[Any], stream: bool, thinking: str
) -> tuple[list[Any], int]:
    client = gateway.open(
        openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0, default_headers=STRICT)
    )
    body: dict[str, Any] = {
        "model": model,
        "input": history,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}],
        **({"reasoning": {"effort": "low", **SHOWN["responses"][thinking]}} if thinking else {}),
    }
    if stream:
        with client.responses.stream(**body) as events:
            reply = events.get_final_response()
    else:
        reply = client.responses.create(**body)
    items = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
    for item in items:
        for content in item.get("content", ()):
            content.pop("parsed", None)
    calls = [item for item in items if item["type"] == "function_call"]
    results = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": result_of(number)}
        for number, call in enumerate(calls)
    ]
    return [*history, *items, *results], len(calls)


def ask_messages(
    gateway: Gateway, model: str, history: list[Any], stream: bool, thinking: str
) -> tuple[list[Any], int]:
    client = gateway.open(
        anthropic.Anthropic(base_url=gateway.base_url, api_key="k", max_retries=0, default_headers=STRICT)
    )
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": 4000,
        "messages": history,
        "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
        **({"thinking": {"type": "adaptive", **SHOWN["messages"][thinking]}} if thinking else {}),
    }
    if stream:
        with client.messages.stream(**body) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**body)
    content = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]
    calls = [block for block in content if block["type"] == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": result_of(number)}
        for number, call in enumerate(calls)
    ]
    turns = [{"role": "assistant", "content": content}]
    return [*history, *turns, *([{"role": "user", "content": results}] if results else [])], len(calls)


def ask_gemini(gateway: Gateway, model: str, history: list[Any], stream: bool, thinking: str) -> tuple[list[Any], int]:
    options = {"base_url": gateway.base_url, "headers": STRICT}
    client = gateway.open(genai.Client(api_key="k", http_options=options))
    config: dict[str, Any] = {
        "tools": [{"function_declarations": [{"name": "get_weather", "parameters_json_schema": SCHEMA}]}],
        **({"thinking_config": {"thinking_level": "low", **SHOWN["gemini"][thinking]}} if thinking else {}),
    }
    if stream:
        chunks = client.models.generate_content_stream(model=model, contents=history, config=config)
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    else:
        parts = client.models.generate_content(model=model, contents=history, config=config).candidates[0].content.parts
    calls = [part.function_call for part in parts if part.function_call is not None]
    results = [
        {"function_response": {"id": call.id, "name": call.name, "response": {"output": result_of(number)}}}
        for number, call in enumerate(calls)
    ]
    turn = {"role": "model", "parts": [part.model_dump(exclude_none=True) for part in parts]}
    return [*history, turn, *([{"role": "user", "parts": results}] if results else [])], len(calls)


ASK: dict[str, Ask] = {
    "chat": ask_chat,
    "responses": ask_responses,
    "messages": ask_messages,
    "gemini": ask_gemini,
}


def question_of(client: str, text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": text}]} if client == "gemini" else {"role": "user", "content": text}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("client", "model", "thinking"), CASES)
def test_three_questions_with_their_tool_rounds_are_accepted(gateway, client, model, thinking, stream):
    history: list[Any] = []
    calls = 0
    for question in QUESTIONS:
        history.append(question_of(client, question))
        open_calls = 1
        while open_calls:
            history, open_calls = ASK[client](gateway, model, history, stream, thinking)
            calls += open_calls
    assert calls >= 2
