"""Answers to render, and how the official SDK parses them."""

import json
from collections.abc import Iterator
from typing import Any

import pydantic
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ParsedChatCompletion

from dragoman.simulator.apis.api import Chunking, ReplyMeta
from dragoman.simulator.apis.chat import API
from dragoman.simulator.apis.conversation import Answer, AnswerSource, AnswerUsage, Call
from simulator.apis.chat.bodies import SIGNER, WEATHER, require_accepted

USED = AnswerUsage(input=40, output=20, cached=16, thought=8)
FOUND = AnswerSource(url="https://example.com/paris", title="Paris", quote="Paris lies on the Seine")
LEGACY = [WEATHER["function"]]
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def call(number: int, city: str = "Paris") -> Call:
    return Call(id=f"{number:024x}", name="get_weather", arguments={"city": city, "days": [number, 1.5, None]})


TOOLS: dict[str, Any] = {"tools": [WEATHER]}
CASES: dict[str, tuple[dict[str, Any], Answer]] = {
    "text": ({}, Answer(text="Hello there, naïve wörld! 🌍 It is a fine day in Paris.", usage=USED)),
    "nothing": ({}, Answer(usage=USED)),
    "thought": ({"reasoning_effort": "high"}, Answer(text="Hello.", thought="Greet them.", usage=USED)),
    "an older model": ({"model": "gpt-4o"}, Answer(text="Hello.", usage=USED)),
    "the newest model": ({"model": "gpt-6-luna"}, Answer(text="Hello.", usage=USED)),
    "one call": (TOOLS, Answer(calls=(call(1),), end="calls", usage=USED)),
    "a call after text": (TOOLS, Answer(text="Let me look.", calls=(call(1),), end="calls", usage=USED)),
    "two calls": (TOOLS, Answer(calls=(call(1), call(2, "Tōkyō")), end="calls", usage=USED)),
    "two calls after text": (TOOLS, Answer(text="Both.", calls=(call(1), call(2)), end="calls", usage=USED)),
    "a call that is ordered": ({**TOOLS, "tool_choice": NAMED}, Answer(calls=(call(1),), end="calls", usage=USED)),
    "a call with text for arguments": (
        TOOLS,
        Answer(calls=(Call(id="", name="get_weather", arguments='{"city": "Par'),), end="malformed_call", usage=USED),
    ),
    "a call of old": ({"functions": LEGACY}, Answer(calls=(call(1),), end="calls", usage=USED)),
    "a call of old after text": ({"functions": LEGACY}, Answer(text="Hm.", calls=(call(1),), end="calls", usage=USED)),
    "length": ({}, Answer(text="Once upon a", end="length", usage=USED)),
    "filtered": ({}, Answer(end="filtered", usage=USED)),
    "a stop sequence": ({"model": "gpt-4.1", "stop": "."}, Answer(text="Yes", stopped_by=".", usage=USED)),
    "a search": (
        {"model": "gpt-4o-search-preview"},
        Answer(text="Paris lies on the Seine, they say.", query="Paris", sources=(FOUND,), usage=USED),
    ),
    "moderated": ({"moderation": {"model": "omni-moderation-latest"}}, Answer(text="Hello.", usage=USED)),
    "a refusal": ({}, Answer(refusal="I cannot help with that.", usage=USED)),
    "two choices": ({"n": 2}, Answer(text="Hello.", usage=USED)),
    "two choices of calls": ({**TOOLS, "n": 2}, Answer(calls=(call(1),), end="calls", usage=USED)),
    "log probabilities": (
        {"model": "gpt-4o", "logprobs": True, "top_logprobs": 3},
        Answer(text="Hello, wide world", usage=USED),
    ),
    "a tier": ({"service_tier": "fast"}, Answer(text="Hello.", usage=USED)),
}


def occasion(**pace: Any) -> ReplyMeta:
    return ReplyMeta(id="0123456789abcdef01234567", created=1_790_000_000, signer=SIGNER, chunking=Chunking(**pace))


def whole(members: dict[str, Any], answer: Answer) -> dict[str, Any]:
    return json.loads(API.render_reply(answer, require_accepted(**members), occasion()))


def frames(members: dict[str, Any], answer: Answer, *, options: Any = None, **pace: Any) -> list[bytes]:
    asked = require_accepted(**members, stream=True, stream_options=options or {"include_usage": True})
    return list(API.render_stream(answer, asked, occasion(**{"size": 4, **pace})))


def chunks(members: dict[str, Any], answer: Answer, **how: Any) -> list[dict[str, Any]]:
    sent = frames(members, answer, **how)
    assert sent[-1] == b"data: [DONE]\n\n"
    assert all(frame.startswith(b"data: {") and frame.endswith(b"}\n\n") for frame in sent[:-1])
    return [json.loads(frame[6:]) for frame in sent[:-1]]


def parse_typed(reply: dict[str, Any]) -> ChatCompletion:
    return ChatCompletion.model_validate(reply, strict=True)


def parse_chunk(chunk: dict[str, Any]) -> ChatCompletionChunk:
    return ChatCompletionChunk.model_validate(chunk, strict=True)


def extras(model: pydantic.BaseModel, where: str = "") -> Iterator[str]:
    """Return the fields that the SDK's types do not know."""
    yield from (f"{where}.{name}" for name in model.model_extra or {})
    for name in type(model).model_fields:
        value = getattr(model, name)
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, pydantic.BaseModel):
                yield from extras(item, f"{where}.{name}[{index}]")


def accumulate(sent: list[dict[str, Any]]) -> ParsedChatCompletion[None]:
    """Return the completion that the SDK's helper builds from a stream."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in sent:
        state.handle_chunk(parse_chunk(chunk))
    # `get_final_completion` raises for answers that were cut, as the SDK does for its users; the snapshot does not.
    return state.current_completion_snapshot
