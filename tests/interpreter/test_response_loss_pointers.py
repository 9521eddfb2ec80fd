"""What a reply loses on its way to the client is named by its place in the whole reply, streamed or not."""

import pytest

from dragoman.core.events import PartStarted
from dragoman.dialects.registry import dialect_named
from dragoman.dialects.responses.parts import find_field_pointer
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.wire.lookup import lookup
from interpreter.workbench import encode

OUTPUT = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
    {
        "type": "message",
        "id": "own.1",
        "role": "assistant",
        "phase": "final",
        "status": "completed",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [], "odd": 1},
            {"type": "output_text", "text": "b", "annotations": []},
        ],
    },
    {"type": "function_call", "id": "own.2", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"},
]
REPLY = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": OUTPUT}
PLACES = {"/output/1/id", "/output/1/phase", "/output/1/content/0/odd", "/output/2/id"}
THOUGHT = "/output/0/id"


def event(kind, **members):
    return f"event: {kind}\ndata: ".encode() + encode({"type": kind, **members}) + b"\n\n"


def stream():
    """A stream as OpenAI sends it: each item is added, gets deltas and is done."""
    text = {"item_id": "own.1", "output_index": 1}
    frames = [event("response.created", response={**REPLY, "status": "in_progress", "output": []})]
    for index, item in enumerate(OUTPUT):
        started = {**item, "content": []} if "content" in item else {**item, "arguments": ""}
        frames.append(event("response.output_item.added", output_index=index, item=started))
        if item["type"] == "message":
            for place, part in enumerate(item["content"]):
                frames.append(
                    event("response.output_text.delta", **text, content_index=place, delta=part["text"], logprobs=[])
                )
                frames.append(event("response.content_part.done", **text, content_index=place, part=part))
        frames.append(event("response.output_item.done", output_index=index, item=item))
    return b"".join([*frames, event("response.completed", response=REPLY)])


@pytest.mark.parametrize("client", ["chat", "messages", "gemini"])
def test_fields_of_items_are_reported_at_their_pointers(client):
    result = translate_response(encode(REPLY), "responses", client)
    lost = {loss.where for loss in result.losses}
    assert lost >= PLACES
    assert THOUGHT not in lost, "it is sent with the signature"
    assert all(lookup(encode(REPLY), where) is not None for where in lost)


@pytest.mark.parametrize("client", ["chat", "messages", "gemini"])
def test_a_stream_names_the_same_places(client):
    translator = StreamTranslator("responses", client)
    translator.feed(stream())
    translator.close()
    streamed = {loss.where for loss in translator.losses if loss.where.startswith("/output")}
    whole = {loss.where for loss in translate_response(encode(REPLY), "responses", client).losses}
    assert streamed >= PLACES
    assert THOUGHT not in streamed
    assert streamed == {where for where in whole if where.startswith("/output")}


def test_an_item_without_an_index_is_placed_in_order():
    decoder = dialect_named("responses").decoder()
    calls = [{"type": "function_call", "id": f"fc_{n}", "call_id": f"c{n}", "name": "f"} for n in range(2)]
    result = decoder.feed(b"".join(event("response.output_item.added", item=call) for call in calls))
    assert [one.part.where for one in result if isinstance(one, PartStarted)] == ["/output/0", "/output/1"]


@pytest.mark.parametrize(
    ("where", "name", "place"),
    [
        ("/output/3/content/0", "/item/id", "/output/3/id"),
        ("/output/3/content", "/item/status", "/output/3/status"),
        ("/output/3/content/1", "/x", "/output/3/content/1/x"),
        ("/output/3", "/id", "/output/3/id"),
    ],
)
def test_a_field_of_an_item_is_reported_below_the_item(where, name, place):
    assert find_field_pointer(where, name) == place
