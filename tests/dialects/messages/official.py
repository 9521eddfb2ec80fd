"""Anthropic's own SDK as a judge: its request types, its reply types and its stream accumulator."""

import functools
import json
import typing

import httpx2
from pydantic import TypeAdapter, ValidationError

QUESTION = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}


@functools.cache
def _request_adapter():
    from anthropic.types import message_create_params as params

    return TypeAdapter(
        typing.Union[params.MessageCreateParamsNonStreaming, params.MessageCreateParamsStreaming]  # noqa: UP007
    )


@functools.cache
def _event_models():
    from anthropic.types import beta

    return {
        "message_start": beta.BetaRawMessageStartEvent,
        "content_block_start": beta.BetaRawContentBlockStartEvent,
        "content_block_delta": beta.BetaRawContentBlockDeltaEvent,
        "content_block_stop": beta.BetaRawContentBlockStopEvent,
        "message_delta": beta.BetaRawMessageDeltaEvent,
        "message_stop": beta.BetaRawMessageStopEvent,
    }


def _faults(model, data):
    try:
        model.model_validate(data)
    except ValidationError as error:
        return {(fault["loc"][-2:], fault["type"]) for fault in error.errors()}
    return set()


def _walk(value):
    """Visit everything: the SDK's types validate iterables lazily."""
    if isinstance(value, dict):
        return {key: _walk(member) for key, member in value.items()}
    if isinstance(value, str | bytes | int | float) or value is None:
        return value
    return [_walk(item) for item in value]


def accepts_request(body):
    """Fail unless `body` is what the SDK's request type allows, without unknown top-level members."""
    from anthropic.types import message_create_params as params

    known = set(typing.get_type_hints(params.MessageCreateParamsNonStreaming))
    known |= set(typing.get_type_hints(params.MessageCreateParamsStreaming))
    assert set(body) <= known
    _walk(_request_adapter().validate_python(body))


def reply_faults(body):
    """Return what the SDK's own strict model finds wrong with a reply; old recordings lack what it now demands."""
    from anthropic.types.beta import BetaMessage

    return _faults(BetaMessage, json.loads(body))


def frames(stream):
    """Split a strictly written stream into (event name, data)."""
    for block in stream.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def stream_faults(stream):
    """Return what the SDK's own strict models find wrong with the frames of a stream, however it is written."""
    faults = set()
    for line in stream.decode().split("\n"):
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            data = json.loads(line[5:])
            if data["type"] in _event_models():
                faults |= _faults(_event_models()[data["type"]], data)
    return faults


def accepts_order(stream):
    """Fail unless every frame is named and in order, with one block open at a time."""
    names = []
    opened, count = None, 0
    for name, data in frames(stream):
        assert name == data["type"]
        names.append(name)
        match name:
            case "content_block_start":
                assert opened is None
                assert data["index"] == count
                opened = count
            case "content_block_delta":
                assert data["index"] == opened
            case "content_block_stop":
                assert data["index"] == opened
                opened = None
                count += 1
            case _:
                assert opened is None
    assert names[0] == "message_start"
    assert names.count("message_start") == 1
    assert names[-2:] == ["message_delta", "message_stop"]


def _client(status, content, kind, headers=None):
    import anthropic

    transport = httpx2.MockTransport(
        lambda _request: httpx2.Response(status, content=content, headers={"content-type": kind, **(headers or {})})
    )
    return anthropic.Anthropic(api_key="k", http_client=httpx2.Client(transport=transport), max_retries=0)


def accumulate(stream):
    """Return the message the SDK's accumulator makes of a stream."""
    client = _client(200, stream, "text/event-stream")
    with client.beta.messages.stream(**QUESTION) as events:
        return events.get_final_message()


def get_stream_error(stream):
    """Return the error the SDK raises while it reads a stream."""
    import anthropic

    client = _client(200, stream, "text/event-stream")
    try:
        for _event in client.messages.create(stream=True, **QUESTION):
            pass
    except anthropic.APIStatusError as error:
        return error
    raise AssertionError("no error was raised")


def get_reply_error(reply):
    """Return the error the SDK raises for an error reply."""
    import anthropic

    client = _client(reply.status, reply.body, "application/json", reply.headers)
    try:
        client.messages.create(**QUESTION)
    except anthropic.APIStatusError as error:
        return error
    raise AssertionError("no error was raised")
