"""A question that needs a tool, the tool's result, and the answer: the smallest proof that tools work with a model.

It is asked in Anthropic's dialect, so that for most upstreams it goes the way of a client that speaks another one.
"""

from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.record import Record
from dragoman.gateway.router import Target
from dragoman.gateway.upstream_call import UpstreamClient, map_failure
from dragoman.http.client import Client
from dragoman.http.link import Failure
from dragoman.interpreter.response import translate_response
from dragoman.wire import json

_DIALECT = "messages"
_TOOL = {
    "name": "get_weather",
    "description": "Get the weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_QUESTION = {"role": "user", "content": "What is the weather in Tokyo now? Use the tool, then answer in one sentence."}
_RESULT = '{"temperature": 21, "unit": "celsius", "sky": "clear"}'
_ROOM = 4000
_LONGEST = 60


async def round_trip(target: Target, client: Client) -> str:
    """Let a model call a tool and use its result; return what it says, or raise the `Problem` that came up."""
    said = await _answered(target, client, [_QUESTION])
    calls = [part for part in said if part["type"] == "tool_use"]
    if not calls:
        words = "the model answered without calling the tool it was told to use"
        raise Problem("unsupported", f"{words}: {_text(said)}")
    if calls[0]["name"] != "get_weather":
        raise Problem("malformed_reply", f"the model called a tool that it was not given: {calls[0]['name']!r}")
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": _RESULT} for call in calls]
    turns = [_QUESTION, {"role": "assistant", "content": said}, {"role": "user", "content": results}]
    answer = _text(await _answered(target, client, turns))
    if not answer:
        raise Problem("malformed_reply", "the model said nothing to the tool's result")
    return f"get_weather({_short(json.encode(calls[0]['input']).decode())}) -> {answer}"


async def _answered(target: Target, client: Client, messages: list[Any]) -> list[Any]:
    """Return the parts with which a model answers."""
    body = json.encode({"model": target.model, "max_tokens": _ROOM, "messages": messages, "tools": [_TOOL]})
    ask = ClientRequest(dialect=_DIALECT, call=Call(body, target.model))
    reached = await UpstreamClient(client).open(ask, target, Record())
    try:
        reply = await reached.incoming.read()
    except Failure as failure:
        raise map_failure(failure, target.upstream.name) from None
    rendered = translate_response(reply, target.upstream.dialect, _DIALECT, reached.context)
    return json.decode(rendered.body)["content"]


def _text(parts: list[Any]) -> str:
    return _short(" ".join(part["text"] for part in parts if part["type"] == "text"))


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
