"""Streams have OpenAI's order, and the official SDK accumulates them to the same content as a whole reply."""

import pytest

from dragoman.simulator.apis.conversation import Answer, Call
from simulator.apis.chat.answers import (
    CASES,
    LEGACY,
    TOOLS,
    USED,
    accumulate,
    call,
    chunks,
    extras,
    parse_chunk,
    parse_typed,
    whole,
)
from simulator.apis.chat.bodies import CALCULATOR

ALL = pytest.mark.parametrize(("members", "answer"), CASES.values(), ids=CASES.keys())
UNTYPED = ".choices[0].delta[0].annotations"
"""OpenAI streams citations (openai/openai-java#297), but its own SDK has no type for them there."""
TWO = Answer(calls=(call(1), call(2, "Tokyo")), end="calls", usage=USED)


def list_calls(choice):
    return [(each.id, each.function.name, each.function.arguments) for each in choice.message.tool_calls or []]


def deltas(sent):
    return [chunk["choices"][0]["delta"] for chunk in sent if chunk["choices"]]


@ALL
def test_a_chunk_has_only_fields_of_the_sdk(members, answer):
    found = {name for chunk in chunks(members, answer) for name in extras(parse_chunk(chunk))}
    assert found == ({UNTYPED} if answer.sources else set())


@ALL
@pytest.mark.parametrize("pace", [{"size": 0}, {"size": 1}, {"size": 7, "seed": 3}, {"size": 5, "interleaved": True}])
def test_a_stream_adds_up_to_the_whole_reply(members, answer, pace):
    expected = parse_typed(whole(members, answer))
    result = accumulate(chunks(members, answer, **pace))
    assert result.usage == expected.usage
    assert (result.id, result.model, result.service_tier) == (expected.id, expected.model, expected.service_tier)
    for given, meant in zip(result.choices, expected.choices, strict=True):
        assert given.finish_reason == meant.finish_reason
        assert (given.message.content or "") == (meant.message.content or "")
        assert (given.message.refusal or None) == meant.message.refusal
        assert list_calls(given) == list_calls(meant)
        if meant.message.function_call is not None:
            assert given.message.function_call.arguments == meant.message.function_call.arguments


@ALL
def test_a_stream_has_openais_order(members, answer):
    sent = chunks(members, answer)
    count = members.get("n", 1)
    *output, usage = sent
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == 40 + 20 * count
    assert all(chunk["usage"] is None for chunk in output)
    assert [chunk["choices"][0]["index"] for chunk in output[-count:]] == list(range(count))
    assert all(chunk["choices"][0]["delta"] == {} and chunk["choices"][0]["finish_reason"] for chunk in output[-count:])
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in output[:-count])
    for index in range(count):
        first, *others = [
            chunk["choices"][0]["delta"] for chunk in output[:-count] if chunk["choices"][0]["index"] == index
        ]
        assert first["role"] == "assistant"
        assert first["refusal"] is None
        assert not any("role" in delta for delta in others)


@ALL
def test_all_chunks_are_of_one_reply(members, answer):
    shared = ("id", "created", "model", "object", "service_tier", "system_fingerprint")
    assert len({tuple(chunk[name] for name in shared) for chunk in chunks(members, answer)}) == 1


def test_a_text_opens_with_an_empty_one():
    first, *others = deltas(chunks({}, Answer(text="Hello there")))
    assert first == {"role": "assistant", "content": "", "refusal": None}
    assert others[-1] == {}
    assert all(list(delta) == ["content"] for delta in others[:-1])


def test_a_call_that_is_all_there_is_comes_with_the_first_chunk():
    first, *others = deltas(chunks(TOOLS, Answer(calls=(call(1),), end="calls")))
    assert first["content"] is None
    [header] = first["tool_calls"]
    assert (header["index"], header["type"]) == (0, "function")
    assert header["function"] == {"name": "get_weather", "arguments": ""}
    assert all(set(delta["tool_calls"][0]) == {"index", "function"} for delta in others[:-1])
    assert all(set(delta["tool_calls"][0]["function"]) == {"arguments"} for delta in others[:-1])


def test_calls_come_one_after_the_other():
    indexes = [delta["tool_calls"][0]["index"] for delta in deltas(chunks(TOOLS, TWO)) if "tool_calls" in delta]
    assert indexes == sorted(indexes)
    assert set(indexes) == {0, 1}


def test_interleaved_calls_grow_in_turns():
    sent = deltas(chunks(TOOLS, TWO, interleaved=True))
    indexes = [delta["tool_calls"][0]["index"] for delta in sent if "tool_calls" in delta]
    assert indexes[:4] == [0, 1, 0, 1]
    opened = [delta["tool_calls"][0]["id"] for delta in sent if "id" in delta.get("tool_calls", [{}])[0]]
    assert len(set(opened)) == 2


def test_a_call_without_arguments_has_an_empty_object():
    call_without = Call(id="call_1", name="get_weather", arguments={})
    result = accumulate(chunks(TOOLS, Answer(calls=(call_without,), end="calls")))
    assert result.choices[0].message.tool_calls[0].function.arguments == "{}"


def test_a_call_that_cannot_be_read_is_streamed_all_the_same():
    result = accumulate(chunks(TOOLS, Answer(end="malformed_call")))
    assert result.choices[0].message.tool_calls[0].function.arguments == '{"'


def test_a_call_of_old_has_no_index():
    sent = deltas(chunks({"functions": LEGACY}, Answer(calls=(call(1),), end="calls")))
    assert sent[0]["function_call"] == {"name": "get_weather", "arguments": ""}
    assert all(list(delta) == ["function_call"] for delta in sent[1:-1])


def test_a_custom_call_grows_in_its_input():
    answer = Answer(calls=(Call(id="call_1", name="calculate", arguments="2+3*4-5"),), end="calls")
    first, *others = deltas(chunks({"tools": [CALCULATOR]}, answer))
    assert first["tool_calls"] == [
        {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "calculate", "input": ""}}
    ]
    assert "".join(delta["tool_calls"][0]["custom"]["input"] for delta in others[:-1]) == "2+3*4-5"


def test_usage_is_sent_only_if_requested():
    for options in ({"include_usage": False}, {"include_obfuscation": True}):
        sent = chunks({}, Answer(text="Hello", usage=USED), options=options)
        assert all("usage" not in chunk and chunk["choices"] for chunk in sent)


def test_chunks_are_padded_unless_that_is_declined():
    padded = chunks({}, Answer(text="Hello there"))
    assert all(isinstance(chunk["obfuscation"], str) for chunk in padded)
    plain = chunks({}, Answer(text="Hello there"), options={"include_obfuscation": False})
    assert not any("obfuscation" in chunk for chunk in plain)


def test_log_probabilities_come_with_the_text():
    asked = {"model": "gpt-4o", "logprobs": True}
    sent = chunks(asked, Answer(text="Hello wide world"), size=3)
    result = [chunk["choices"][0] for chunk in sent if chunk["choices"]]
    for choice in result:
        text = choice["delta"].get("content")
        tokens = "".join(token["token"] for token in (choice["logprobs"] or {"content": []})["content"])
        assert tokens == (text or "")


def test_citations_come_in_a_chunk_of_their_own_behind_the_text():
    members, answer = CASES["a search"]
    result = deltas(chunks(members, answer))
    assert result[-2] == {"annotations": whole(members, answer)["choices"][0]["message"]["annotations"]}
    assert result[-3].keys() == {"content"}


def test_a_refusal_grows_in_its_own_member():
    first, *others = deltas(chunks(*CASES["a refusal"]))
    assert first == {"role": "assistant", "content": None, "refusal": None}
    assert "".join(delta["refusal"] for delta in others[:-1]) == "I cannot help with that."


@pytest.mark.parametrize("options", [{"include_usage": True}, {"include_usage": False}])
def test_the_moderation_result_is_in_the_last_chunk(options):
    members, answer = CASES["moderated"]
    *others, last = chunks({**members, "n": 2}, answer, options=options)
    assert last["moderation"] == whole(members, answer)["moderation"]
    assert not any("moderation" in chunk for chunk in others)
