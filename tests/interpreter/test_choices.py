"""A request for several choices becomes requests for one, and their replies become one reply."""

import json

import pytest
from openai.types.chat import ChatCompletion

from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.choices import ChoiceMerger, SeveralChoices, split_request, sum_counts
from dragoman.interpreter.translate import translate_request

CHAT, GEMINI = dialect_named("chat"), dialect_named("gemini")


def several(body: str, source: str, target: str, model: str) -> SeveralChoices:
    with pytest.raises(SeveralChoices) as error:
        translate_request(Call(body.encode(), model), source, target, model=model)
    return error.value


def test_only_the_count_is_removed_from_the_body():
    body = '{"model": "m",  "n": 3, "messages":[{"role":"user","content":"\\u00e9"}]}'
    found = several(body, "chat", "messages", "claude-opus-4-8")
    assert (found.count, found.where, found.seed) == (3, "/n", None)
    calls = split_request(Call(body.encode(), "m", stream=True), CHAT, found)
    assert calls == [Call(body.replace('"n": 3, ', "").encode(), "m", stream=True)] * 3


@pytest.mark.parametrize("path", ["generationConfig/candidateCount", "generation_config/candidate_count"])
@pytest.mark.parametrize("envelope", [False, True])
def test_the_count_is_found_in_every_spelling_and_in_the_envelope(path, envelope):
    config, count = path.split("/")
    inner = {"contents": [{"role": "user", "parts": [{"text": "x"}]}], config: {count: 2, "temperature": 0.5}}
    body = json.dumps({"model": "m", "request": inner} if envelope else inner)
    found = several(body, "gemini", "messages", "claude-opus-4-8")
    assert found.count == 2
    for call in split_request(Call(body.encode()), GEMINI, found):
        left = json.loads(call.body)
        assert (left["request"] if envelope else left)[config] == {"temperature": 0.5}


@pytest.mark.parametrize(("seed", "seeds"), [(7, [7, 8, 9]), (2**31 - 2, [2**31 - 2, 2**31 - 3, 2**31 - 4])])
def test_each_choice_has_a_seed_of_its_own_if_the_target_takes_seeds(seed, seeds):
    body = f'{{"model":"m","n":3,"seed":{seed},"messages":[{{"role":"user","content":"x"}}]}}'
    found = several(body, "chat", "gemini", "gemini-3.5-flash")
    assert [json.loads(call.body)["seed"] for call in split_request(Call(body.encode()), CHAT, found)] == seeds


def test_a_seed_that_the_target_does_not_take_is_the_same_for_all_choices():
    found = several('{"model":"m","n":2,"seed":7,"messages":[]}', "chat", "messages", "claude-opus-4-8")
    assert found.seed is None


def reply(index: int, usage: dict) -> bytes:
    message = {"role": "assistant", "content": f"text {index}", "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    head = {"id": f"id {index}", "object": "chat.completion", "created": 5 + index, "model": "m"}
    return json.dumps({**head, "choices": [choice], "usage": usage}).encode()


def test_whole_replies_are_merged_with_their_usage_summed():
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    details = {"prompt_tokens_details": {"cached_tokens": 3}}
    merged = ChoiceMerger(CHAT).merge_replies([reply(0, usage), reply(1, {**usage, **details}), reply(2, usage)])
    parsed = ChatCompletion.model_validate_json(merged)
    assert [(choice.index, choice.message.content) for choice in parsed.choices] == [
        (0, "text 0"),
        (1, "text 1"),
        (2, "text 2"),
    ]
    assert (parsed.id, parsed.created) == ("id 0", 5)
    assert (parsed.usage.prompt_tokens, parsed.usage.completion_tokens, parsed.usage.total_tokens) == (15, 6, 21)
    assert parsed.usage.prompt_tokens_details.cached_tokens == 3


def test_a_blocked_candidate_leaves_the_others():
    blocked = b'{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}'
    candidate = b'{"candidates":[{"content":{"parts":[]},"index":0}],"usageMetadata":{"promptTokenCount":4}}'
    merged = json.loads(ChoiceMerger(GEMINI).merge_replies([blocked, candidate]))
    assert merged == {
        "candidates": [{"content": {"parts": []}, "index": 1}],
        "usageMetadata": {"promptTokenCount": 8},
    }
    assert json.loads(ChoiceMerger(GEMINI).merge_replies([blocked, blocked])) == {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 8},
    }


def test_counts_are_summed_by_member_and_by_kind_and_texts_are_kept():
    text, audio = {"modality": "TEXT", "tokenCount": 2}, {"modality": "AUDIO", "tokenCount": 1}
    first = {"a": 1, "cost": 0.5, "tier": "x", "by": [text, audio], "on": True, "none": None, "odd": [1]}
    second = {"a": 2, "cost": 0.25, "tier": "y", "by": [text], "new": 4, "on": True, "none": 1, "odd": [1]}
    assert sum_counts([first, second]) == {
        "a": 3,
        "cost": 0.75,
        "tier": "x",
        "by": [{"modality": "TEXT", "tokenCount": 4}, audio],
        "on": True,
        "none": 1,
        "odd": [2],
        "new": 4,
    }


def test_the_events_of_a_stream_keep_the_line_ends_of_the_vendor():
    merger = ChoiceMerger(GEMINI)
    event = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"responseId":"%b"}\r\n\r\n'
    assert merger.feed(1, event % b"r1" + event % b"r1") == (event % b"r1").replace(b'"index":0', b'"index":1') * 2
    assert merger.feed(0, event % b"r0") == event % b"r1"
    assert merger.close() == b""


def test_an_error_event_passes_as_it_is():
    event = b'data: {"error":{"message":"busy","type":"server_error"}}\n\n'
    assert ChoiceMerger(CHAT).feed(1, event) == event
