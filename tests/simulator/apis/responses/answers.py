"""Answers to render, and how the official SDK parses them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pydantic
from openai.types.responses import Response, ResponseStreamEvent

from dragoman.simulator.apis.api import Chunking, ReplyMeta
from dragoman.simulator.apis.conversation import Answer, AnswerSource, AnswerUsage, Call, TokenSigner
from dragoman.simulator.apis.responses import API
from simulator.apis.responses.bodies import PATCH, WEATHER, asks, require_accepted

SIGNER = TokenSigner(5)
USED = AnswerUsage(input=40, output=20, cached=16, thought=8)
FOUND = AnswerSource(url="https://example.com/paris", title="Paris", quote="Paris is in France")
LATER = {**WEATHER, "name": "get_later", "defer_loading": True}
GROUP = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [{**WEATHER, "name": "get_customer"}]}


def call(number: int, name: str = "get_weather", arguments: Any = None) -> Call:
    return Call(
        id=f"{number:024x}", name=name, arguments={"city": f"Paris {number}"} if arguments is None else arguments
    )


CASES: dict[str, tuple[dict[str, Any], Answer]] = {
    "text": ({}, Answer(text="Hello there, naïve wörld! 🌍", usage=USED)),
    "empty": ({}, Answer(usage=USED)),
    "an older model": ({"model": "gpt-4o"}, Answer(text="Hello.", usage=USED)),
    "thought": ({"reasoning": {"summary": "auto"}}, Answer(text="Hello.", thought="**Plan**\n\nGreet.", usage=USED)),
    "untold thought": ({}, Answer(text="Hello.", thought="Greet.", usage=USED)),
    "sealed thought": ({"store": False}, Answer(text="Hello.", thought="Greet.", usage=USED)),
    "included thought": (
        {"include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high", "summary": "detailed"}},
        Answer(thought="Look it up.", calls=(call(1),), end="calls", usage=USED),
    ),
    "one call": ({"tools": [WEATHER]}, Answer(calls=(call(1),), end="calls", usage=USED)),
    "two calls": (
        {"tools": [WEATHER], "parallel_tool_calls": True},
        Answer(text="Checking both.", calls=(call(1), call(2)), end="calls", usage=USED),
    ),
    "a custom call": (
        {"tools": [PATCH], "tool_choice": {"type": "custom", "name": "apply_patch"}},
        Answer(calls=(call(1, "apply_patch", "*** Begin Patch\n+ü"),), end="calls", usage=USED),
    ),
    "a grouped call": ({"tools": [GROUP]}, Answer(calls=(call(1, "get_customer"),), end="calls", usage=USED)),
    "a deferred call": (
        {"tools": [LATER, {"type": "tool_search"}]},
        Answer(thought="Load it.", calls=(call(1, "get_later"), call(2, "get_later")), end="calls", usage=USED),
    ),
    "a look for tools": (
        {
            "tools": [
                {"type": "tool_search", "execution": "client", "description": "Find", "parameters": {"type": "object"}}
            ]
        },
        Answer(calls=(call(1, "tool_search", {"goal": "weather"}),), end="calls", usage=USED),
    ),
    "a shell call": (
        {"tools": [{"type": "shell", "environment": {"type": "local"}}]},
        Answer(calls=(call(1, "shell", {"commands": ["pwd", "echo ü"]}),), end="calls", usage=USED),
    ),
    "a local shell call": (
        {"tools": [{"type": "local_shell"}]},
        Answer(calls=(call(1, "local_shell", {"command": ["echo", "ü"]}),), end="calls", usage=USED),
    ),
    "two patches": (
        {"tools": [{"type": "apply_patch"}]},
        Answer(
            calls=(
                call(1, "apply_patch", {"type": "create_file", "path": "a.txt", "diff": "+naïve\n+wörld\n"}),
                call(2, "apply_patch", {"type": "delete_file", "path": "b.txt"}),
            ),
            end="calls",
            usage=USED,
        ),
    ),
    "search": (
        {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]},
        Answer(text="I read that Paris is in France. So it is.", query="Paris", sources=(FOUND,), usage=USED),
    ),
    "length": ({"max_output_tokens": 16}, Answer(text="Once upon a", end="length", usage=USED)),
    "length while thinking": ({}, Answer(thought="Once", end="length", usage=USED)),
    "filtered": ({}, Answer(text="Once", end="filtered", usage=USED)),
    "a malformed call": ({"tools": [WEATHER]}, Answer(end="malformed_call", usage=USED)),
    "a structured answer": (
        {
            "text": {
                "format": {"type": "json_schema", "name": "person", "schema": {"type": "object", "properties": {}}},
                "verbosity": "low",
            },
            "metadata": {"a": "b"},
            "conversation": {"id": "conv_1"},
            "service_tier": "fast",
            "prompt_cache_options": {"mode": "explicit"},
        },
        Answer(text="{}", usage=USED),
    ),
    "hosted tools": (
        {
            "tools": [
                {"type": "file_search", "vector_store_ids": ["vs_1"]},
                {"type": "code_interpreter", "container": {"type": "auto"}},
                {"type": "image_generation", "n": 1},
                {"type": "mcp", "server_label": "jira", "server_url": "https://mcp.example"},
                {"type": "web_search_preview"},
                {"type": "shell"},
                {"type": "apply_patch"},
                {"type": "computer"},
                {"type": "local_shell"},
                {"type": "programmatic_tool_calling"},
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "mcp", "server_label": "jira"}],
            },
        },
        Answer(text="Hello.", usage=USED),
    ),
    "moderated": (
        {
            "moderation": {"model": "omni-moderation-latest"},
            "access_programs": {"cyber": "standard"},
            "image": {"context_compression": "auto"},
            "prompt_cache_options": {"comparison_response_id": "resp_1"},
        },
        Answer(text="Hello.", usage=USED),
    ),
    "a refusal": ({}, Answer(refusal="I cannot help with that.", usage=USED)),
    "log probabilities": (
        {"model": "gpt-4.1", "include": ["message.output_text.logprobs"], "top_logprobs": 2},
        Answer(text="Hello, wide wörld", usage=USED),
    ),
    "a conversation that is sealed": (
        {"context_management": [{"type": "compaction", "compact_threshold": 40}]},
        Answer(text="Hello.", usage=USED),
    ),
    "a trigger": (
        {"input": [{"role": "user", "content": "Hello"}, {"type": "compaction_trigger"}]},
        Answer(usage=USED),
    ),
    "in the background": ({"background": True}, Answer(text="Hello.", usage=USED)),
}


def occasion(size: int = 5) -> ReplyMeta:
    return ReplyMeta(id="0123456789abcdef01234567", created=1_794_700_800, signer=SIGNER, chunking=Chunking(size=size))


def whole(members: dict[str, Any], answer: Answer) -> dict[str, Any]:
    return json.loads(API.render_reply(answer, require_accepted(asks(**members)), occasion()))


def frames(members: dict[str, Any], answer: Answer, size: int = 5) -> list[bytes]:
    return list(API.render_stream(answer, require_accepted(asks(stream=True, **members)), occasion(size)))


def events(members: dict[str, Any], answer: Answer, size: int = 5) -> list[dict[str, Any]]:
    return [json.loads(frame.partition(b"data: ")[2]) for frame in frames(members, answer, size)]


def client(body: bytes, kind: str) -> openai.OpenAI:
    """Return an SDK client whose server always sends the same reply."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"content-type": kind}, content=body))
    return openai.OpenAI(api_key="sk-test", max_retries=0, http_client=httpx2.Client(transport=transport))


def extras(value: Any, where: str = "") -> Iterator[str]:
    """Return the fields that the SDK's types do not know."""
    match value:
        case pydantic.BaseModel():
            yield from (f"{where}/{name}" for name in value.model_extra or ())
            for name in type(value).model_fields:
                yield from extras(getattr(value, name), f"{where}/{name}")
        case list():
            for number, item in enumerate(value):
                yield from extras(item, f"{where}/{number}")
        case _:
            return


def parse_typed(result: dict[str, Any]) -> Response:
    return Response.model_validate(result)


TYPED_EVENT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(ResponseStreamEvent)
