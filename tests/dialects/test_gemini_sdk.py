import json

import pytest

import shelf
from dialects.gemini import official, recordings
from dragoman.core.events import Failed
from dragoman.core.parts import Data, Inline, Media, Reasoning, Signature, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.core.traits import Traits
from dragoman.dialects.gemini import DIALECT

SDK_REFUSES = {
    "gemini/prism-php-0009": "no blank lines between events",
    **dict.fromkeys(
        (
            "gemini/langchaingo-0005",
            "gemini/langchaingo-0006",
            "gemini/langchaingo-0008",
            "gemini/openinference-0034",
            "gemini/opentelemetry-python-contrib-0003",
            "gemini/opentelemetry-python-contrib-0004",
            "gemini/opentelemetry-python-contrib-0006",
            "gemini/opentelemetry-python-contrib-0012",
            "gemini/opentelemetry-python-contrib-0013",
        ),
        "enums recorded by number",
    ),
}

EVERYTHING = Response(
    id="r1",
    model="gemini-x",
    parts=(
        Reasoning(texts=("Think.",)),
        Text(text="Hello\nworld", signature=Signature("google", "c2ln")),
        ToolCall(id="c1", name="f", arguments='{\n "a": 1.0\n}', signature=Signature("google", "c2ln")),
        ToolCall(id="c2", name="g", arguments="{}"),
        Media(kind="image", media_type="image/png", source=Inline("aGk=")),
    ),
    finish=Finish("tool_calls"),
    usage=Usage(input=10, output=7, cached=4, reasoning=2),
)


def decode(stream):
    decoder = DIALECT.decoder()
    return [*decoder.feed(stream), *decoder.close()]


def encode(events, request=None):
    encoder = DIALECT.encoder(request)
    return b"".join(encoder.feed(event) for event in events)


def understood(response):
    """Return the same values of a core reply as `official.parse_parts` returns of the SDK's."""
    return {
        "text": "".join(part.text for part in response.parts if isinstance(part, Text)),
        "thought": "".join(text for part in response.parts if isinstance(part, Reasoning) for text in part.texts),
        "calls": [
            (part.id, part.name, json.loads(part.arguments)) for part in response.parts if isinstance(part, ToolCall)
        ],
        "finish": response.finish.raw,
        "prompt": (response.usage and response.usage.input) or 0,
    }


@shelf.needs_shelf
@pytest.mark.filterwarnings("ignore:.* is not a valid")
def test_the_decoder_understands_recorded_streams_as_the_official_parser_does():
    compared = 0
    for name, stream in recordings.streams():
        plain = stream.startswith(b"data: ") and not stream.startswith(b'data: {"response"')
        if not plain or b'"partialArgs"' in stream or name in SDK_REFUSES:
            continue
        assert understood(collect(decode(stream))) == official.parse_parts(official.chunks(stream)), name
        compared += 1
    assert compared > 215


@shelf.needs_shelf
@pytest.mark.filterwarnings("ignore:.* is not a valid")
def test_what_is_written_of_recorded_replies_is_read_by_the_official_sdk_like_the_recording():
    compared = 0
    for name, body in recordings.replies():
        response = DIALECT.parse_response(body)
        if not response.finish.raw or name in SDK_REFUSES or "response" in json.loads(body):
            continue
        if response.finish.reason == "paused":
            # The SDK would ask for the rest for ever.
            continue
        theirs = official.parse_parts([official.whole(body)])
        assert official.parse_parts(official.chunks(encode(replay(response)))) == theirs, name
        assert official.parse_parts([official.whole(DIALECT.build_response(response, None))]) == theirs, name
        compared += 1
    assert compared > 380


def test_a_reply_from_elsewhere_is_read_by_the_official_sdk():
    expected = {
        "text": "Hello\nworld",
        "thought": "Think.",
        "calls": [("c1", "f", {"a": 1}), ("c2", "g", {})],
        "finish": "STOP",
        "prompt": 10,
    }
    assert official.parse_parts([official.whole(DIALECT.build_response(EVERYTHING, None))]) == expected
    assert official.parse_parts(official.chunks(encode(replay(EVERYTHING)))) == expected


def test_a_failure_in_the_middle_of_a_stream_is_raised_by_the_official_sdk():
    events = [*replay(EVERYTHING)][:4]
    stream = encode([*events, Failed(Problem("overloaded", "Come back later."))])
    with pytest.raises(official.errors.ServerError) as caught:
        official.chunks(stream)
    assert (caught.value.code, caught.value.status) == (503, "UNAVAILABLE")
    assert "Come back later." in str(caught.value)


def test_an_error_reply_is_raised_by_the_official_sdk():
    reply = DIALECT.build_error(Problem("rate_limit", "Slow down.", retry_after=21.0))
    with pytest.raises(official.errors.ClientError) as caught:
        official.whole(reply.body, reply.status)
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")


def test_a_request_from_elsewhere_is_valid_by_the_official_types():
    request = Request(
        model="m",
        messages=(
            Message(role="system", parts=(Text(text="Be brief."),)),
            Message(
                role="user", parts=(Text(text="Hi"), Media(kind="image", media_type="image/png", source=Inline("aGk=")))
            ),
            Message(role="assistant", parts=(ToolCall(id="c1", name="f", arguments='{"a":1}'),)),
            Message(role="user", parts=(ToolResult(call_id="c1", name="f", content=(Data(json=b"[1]"),)),)),
        ),
        tools=(Tool(name="f", description="d", parameters=b'{"type":"object"}'),),
        tool_choice=ToolChoice(mode="required", names=("f",)),
        sampling=Sampling(temperature=1, max_tokens=10, stop=("x",)),
        thinking=Thinking(effort="high", visible=True),
        output=OutputFormat(kind="json_schema", schema=b'{"type":"object"}'),
    )
    official.accepts_request(json.loads(DIALECT.render_request(request, Traits(dialect="gemini")).body))
