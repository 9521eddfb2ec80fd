"""Every recorded request, translated to every other dialect, passes the target's request types and pairing rules."""

import re

import pytest

from conformance.recordings import DIALECTS, Asked, requests
from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from oracles import check_pairs, check_request
from shelf import needs_shelf

PAIRS = [(source, target) for source in DIALECTS for target in DIALECTS if source != target]
MODELS = {
    "chat": ("gpt-4o", "gpt-5.6"),
    "responses": ("gpt-4o", "gpt-6-luna"),
    "messages": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "gemini": ("gemini-2.5-pro", "gemini-3.8-flash"),
}
"""An older and a newer model of each; requests take turns."""
REFUSED = re.compile(
    r"/n|/generationConfig/candidateCount|/previous_response_id|/conversation|/prompt/id|/input/\d+/id"
    r"|/thread/previous_message_id|/cachedContent|/cached_content"
)
"""Where a request may be refused: what no other dialect can do at all."""


def complaints(asked: Asked, source: str, target: str, *, older: bool) -> list[str]:
    model = MODELS[target][0 if older else 1]
    try:
        call = translate_request(Call(asked.body, asked.model, asked.stream), source, target, model=model).call
    except Problem as problem:
        refused = problem.kind == "unsupported" and REFUSED.fullmatch(problem.where)
        return [] if refused else [repr(problem)]
    return [*check_request(target, call.body, older_model=older), *check_pairs(target, call.body, older_model=older)]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_translated_request_is_one_the_targets_sdk_could_have_sent(source, target):
    found = {
        asked.id: what
        for number, asked in enumerate(requests(source))
        if (what := complaints(asked, source, target, older=number % 2 == 0))
    }
    assert not found, "\n".join(f"{name}: {what}" for name, what in found.items())


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_enough_requests_to_mean_something(dialect):
    assert len(requests(dialect)) > 600


@pytest.mark.parametrize(
    ("dialect", "body", "complaint"),
    [
        ("chat", b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x","odd":1}]}]}', "/odd"),
        ("chat", b'{"model":"m","messages":[{"role":"nobody","content":"x"}]}', "/messages"),
        ("responses", b'{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","odd":1}]}', "/input"),
        ("responses", b'{"model":"m","input":"x","stop":["y"]}', "/stop"),
        (
            "responses",
            b'{"input":[{"role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}]}',
            "/input",
        ),
        (
            "responses",
            b'{"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QQ==","format":"wav"}}]}]}',
            "/input",
        ),
        ("responses", b'{"input":[{"type":"reasoning","summary":[],"encrypted_content":"x"}]}', "/input"),
        ("messages", b'{"model":"m","messages":[]}', "/max_tokens"),
        ("messages", b'{"model":"m","max_tokens":1,"messages":[],"temperature":1}', "/temperature"),
        ("gemini", b'{"contents":[{"role":"user","parts":[{"text":"x","odd":1}]}]}', "'odd'"),
    ],
)
def test_the_judge_of_requests_finds_what_is_wrong(dialect, body, complaint):
    assert any(complaint in found for found in check_request(dialect, body))


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("chat", b'{"messages":[{"role":"assistant","tool_calls":[{"id":"a"}]},{"role":"user"}]}'),
        ("responses", b'{"input":[{"type":"function_call","call_id":"a"}]}'),
        ("messages", b'{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}'),
        ("gemini", b'{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"x"}]}]}'),
    ],
)
def test_the_judge_of_pairs_finds_what_is_wrong(dialect, body):
    assert check_pairs(dialect, body)


CALLED = b'{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]}'
RESULT = b'{"functionResponse":{"name":"f","response":{}}}'
WORDS = b'{"text":"x"}'


@pytest.mark.parametrize(
    ("turns", "older", "newer"),
    [
        ([RESULT], True, True),
        ([RESULT + b"," + WORDS], True, False),
        ([RESULT, WORDS], False, True),
        ([RESULT, WORDS, WORDS], False, False),
        ([WORDS, RESULT], False, False),
    ],
)
def test_only_newer_gemini_accepts_user_text_in_a_content_after_results(turns, older, newer):
    contents = b",".join([CALLED, *(b'{"role":"user","parts":[%s]}' % parts for parts in turns)])
    body = b'{"contents":[%s]}' % contents
    assert (check_pairs("gemini", body, older_model=True) == []) is older
    assert (check_pairs("gemini", body) == []) is newer
