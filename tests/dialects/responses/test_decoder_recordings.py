import json

import pytest
from msgspec import structs

from dialects.responses.streams import decode, encode, frames, load_recordings, outcome, terminal
from dragoman.core.parts import Opaque, Signature
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import replay
from dragoman.dialects.responses import DIALECT
from shelf import exchanges, needs_shelf

KNOWN_BROKEN = {
    "openai_responses/lingua-0019": "events of a made-up format without types",
    "openai_responses/vercel-ai-0062": "two frames lack their closing brace",
}
FAILED = {
    "openai_responses/prism-php-0023": "rate_limit",
    "openai_responses/vercel-ai-0033": "billing",
    "error.stream.sse": "internal",
    "failed.stream.sse": "internal",
}
TERMINAL_DIFFERS = {
    "openai_responses/mastra-0070": "the terminal item has two sources more",
    "openai_responses/lingua-0073": "the fingerprint is made anew",
    "openai_responses/prism-php-0022": "the terminal object has no model",
    "openai_responses/pydantic-ai-0149": "two items are announced and never done",
    "openai_responses/pydantic-ai-0175": "item ids change from event to event",
    "openai_responses/vercel-ai-0020": "all ids change from event to event",
    "openai_responses/vercel-ai-0053": "the terminal text is another one",
}
ANOTHER_ANSWER = {"openai_responses/pydantic-ai-0149", "openai_responses/vercel-ai-0053"}
MADE_IDS = {"openai_responses/ruby-llm-0055": "its call has item_id in place of the id every item must have"}


def comparable(response):
    """OpenAI encrypts again for the terminal object, so only the presence of a blob is compared."""
    parts = []
    for part in response.parts:
        result = part if part.signature is None else structs.replace(part, signature=Signature("openai", "blob"))
        if isinstance(result, Opaque) and b'"type":"compaction"' in result.raw.replace(b" ", b""):
            result = structs.replace(result, raw=b"compaction")
        parts.append(result)
    fields = {
        name: raw for name, raw in (response.extras.fields if response.extras else {}).items() if "/stream/" not in name
    }
    return parts, response.finish, response.usage, response.id, response.model, response.created, fields


@needs_shelf
@pytest.mark.parametrize("longest", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_every_recorded_stream_is_decoded_alike_at_any_chunk_size(longest):
    assert len(load_recordings()) > 255
    for name, data in load_recordings().items():
        whole = outcome(decode(data))
        for size in (1, 7, 64) if len(data) < longest else (64,):
            assert outcome(decode(data, size)) == whole, name
        if name in FAILED:
            assert whole.kind == FAILED[name]
        elif name in KNOWN_BROKEN:
            assert whole.kind == "malformed_reply"
        else:
            assert isinstance(whole, Response), name


@needs_shelf
def test_a_stream_folds_into_its_terminal_object():
    folded = 0
    for name, data in load_recordings().items():
        if name in FAILED or name in KNOWN_BROKEN or name in TERMINAL_DIFFERS:
            continue
        whole = terminal(data)
        body = outcome(decode(data))
        if not json.loads(whole)["output"]:
            continue
        assert comparable(body) == comparable(DIALECT.parse_response(whole)), name
        folded += 1
    assert folded > 240


@needs_shelf
def test_a_stream_has_the_text_of_a_terminal_object_that_differs_otherwise():
    def words(response):
        return [
            getattr(part, "text", None) or getattr(part, "arguments", None) for part in response.parts
        ], response.finish

    for name in TERMINAL_DIFFERS.keys() - ANOTHER_ANSWER:
        whole = DIALECT.parse_response(terminal(load_recordings()[name]))
        assert words(outcome(decode(load_recordings()[name]))) == words(whole), name


@needs_shelf
def test_every_recorded_reply_survives_being_streamed():
    streamed = 0
    for row in exchanges("responses"):
        if row["status"] != 200 or row["op"] != "generate" or row["id"] in MADE_IDS:
            continue
        if "response" in row:
            response = DIALECT.parse_response(json.dumps(row["response"]).encode())
        else:
            response = outcome(decode(row["sse"].encode()))
        if isinstance(response, Problem):
            continue
        data = encode(replay(response))
        again = outcome(decode(data))
        assert again.parts == response.parts, row["id"]
        assert again.finish == response.finish, row["id"]
        assert frames(data)[-1][1]["response"] == json.loads(DIALECT.build_response(response, None)), row["id"]
        streamed += 1
    assert streamed > 700
