"""The call in which some GPT models wrap several calls becomes these calls, in whole replies and in streams."""

import json

import pytest

from dragoman.core.events import Failed, Finished, PartDelta, PartEnded, PartSigned, PartStarted, Started
from dragoman.core.parts import Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish
from dragoman.core.stream import collect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.call_wrapper import CallExpander
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from event_grammar import check_events

FIRST, SECOND = '{"city": "Paris",  "n": 1.0}', '{ "city":"Tok\\u0079o" }'
ARGUMENTS = (
    f'{{"tool_uses": [{{"recipient_name": "functions.weather", "parameters": {FIRST}}}, '
    f'{{"recipient_name": "time", "parameters": {SECOND}}}, {{"recipient_name": "functions.now"}}]}}'
)
CALLS = [("weather", FIRST), ("time", SECOND), ("now", "{}")]
NAME = "multi_tool_use.parallel"
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}
OTHER = {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def build_whole(upstream):
    if upstream == "chat":
        message = {"role": "assistant", "content": "Both.", "tool_calls": [CHAT_CALL, OTHER]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return json.dumps({"id": "r", "model": "m", "choices": [choice]}).encode()
    text = {"type": "output_text", "text": "Both.", "annotations": []}
    items = [
        {"type": "message", "role": "assistant", "content": [text]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": NAME, "arguments": ARGUMENTS},
        {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "f", "arguments": '{"a":1}'},
    ]
    return json.dumps({"id": "r", "model": "m", "status": "completed", "output": items}).encode()


def build_stream(upstream):
    if upstream == "responses":
        event = {"type": "response.completed", "response": json.loads(build_whole(upstream))}
        return b"data: " + json.dumps(event).encode() + b"\n\n"
    pieces = [ARGUMENTS[at : at + 11] for at in range(0, len(ARGUMENTS), 11)]
    deltas = [
        {"content": "Both."},
        {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": NAME, "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "id": "call_2", "function": {"name": "f", "arguments": '{"a"'}}]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces),
        {"tool_calls": [{"index": 1, "function": {"arguments": ":1}"}}]},
    ]
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    frames = [json.dumps({"id": "r", "model": "m", "choices": [choice]}) for choice in chunks]
    return "".join(f"data: {frame}\n\n" for frame in [*frames, "[DONE]"]).encode()


def translate(upstream, client, *, streamed):
    """Return the client's reply as its dialect reads it, and the losses."""
    if not streamed:
        translated = translate_response(build_whole(upstream), upstream, client)
        return dialect_named(client).parse_response(translated.body), translated.losses
    translator, reader = StreamTranslator(upstream, client), dialect_named(client).decoder()
    data = build_stream(upstream)
    sent = b"".join(translator.feed(data[at : at + 50]) for at in range(0, len(data), 50)) + translator.close()
    return collect(check_events([*reader.feed(sent), *reader.close()])), translator.losses


PAIRS = [(source, target) for source in ("chat", "responses") for target in ("chat", "responses", "messages", "gemini")]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("upstream", "client"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_the_wrapper_is_expanded_into_its_calls(upstream, client, streamed):
    reply, losses = translate(upstream, client, streamed=streamed)
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    assert sorted(call.name for call in calls) == ["f", "now", "time", "weather"]
    found = {call.name: call.arguments for call in calls}
    assert {name: json.loads(found[name]) for name, _ in CALLS} == {name: json.loads(text) for name, text in CALLS}
    if client != "gemini":
        assert [found[name] for name, _ in CALLS] == [text for _, text in CALLS]
    assert len({call.id for call in calls}) == 4
    assert "".join(part.text for part in reply.parts if isinstance(part, Text)) == "Both."
    assert reply.finish.reason == "tool_calls"
    assert [loss.kind for loss in losses if "multi_tool_use" in loss.what] == ["approximated"]


def expand(*events):
    expander = CallExpander(Ledger({}))
    return list(
        check_events([*expander.feed([Started("r", "m")]), *(one for e in events for one in expander.feed([e]))])
    )


def start(index, name=NAME, **more):
    return PartStarted(index, ToolCall(id=f"c{index}", name=name, arguments="", **more))


DONE = Finished(Finish("tool_calls", ""))


@pytest.mark.parametrize("arguments", ["{}", '{"tool_uses": []}', '{"tool_uses": 5}', "[", '{"tool_uses":[{"a":1}]}'])
def test_a_wrapper_without_calls_stays_as_it_is(arguments):
    reply = collect(expand(start(0), PartDelta(0, arguments), PartEnded(0), DONE))
    assert [(part.name, part.arguments) for part in reply.parts] == [(NAME, arguments)]


def test_a_wrapper_that_was_cut_off_stays_a_cut_call():
    reply = collect(expand(start(0), PartDelta(0, ARGUMENTS[:50]), PartEnded(0, complete=False), DONE))
    assert [(part.name, part.complete) for part in reply.parts] == [(NAME, False)]


def test_parts_after_wrappers_are_renumbered_and_keep_their_order():
    signature = PartSigned(1, Signature("openai", "s"))
    reply = collect(
        expand(
            start(0, "a"),
            start(1, "parallel", namespace="multi_tool_use"),
            start(2),
            start(3, "z"),
            PartDelta(3, "{}"),
            PartDelta(2, ARGUMENTS),
            PartDelta(0, '{"x":1}'),
            PartEnded(3),
            PartDelta(1, ARGUMENTS),
            signature,
            PartEnded(1),
            PartEnded(2),
            PartEnded(0),
            start(4, "last"),
            PartEnded(4),
            DONE,
        )
    )
    names = [part.name for part in reply.parts]
    assert names == ["a", "weather", "time", "now", "weather", "time", "now", "z", "last"]
    assert [part.id for part in reply.parts[1:4]] == ["c1", "c1_1", "c1_2"]
    assert [part.signature is not None for part in reply.parts[1:4]] == [True, False, False]
    assert reply.parts[0].arguments == '{"x":1}'


def test_a_stream_that_fails_inside_a_wrapper_ends_with_its_error():
    problem = Problem("timeout", "too slow")
    events = expand(start(0), PartDelta(0, "{"), Failed(problem))
    assert events == [Started("r", "m"), Failed(problem)]


def test_a_tool_of_the_client_that_is_called_parallel_is_no_wrapper():
    reply = collect(expand(start(0, "parallel"), PartDelta(0, ARGUMENTS), PartEnded(0), DONE))
    assert [part.name for part in reply.parts] == ["parallel"]
