"""What only a vendor's server keeps: a request that is not whole without it is refused abroad and passes at home."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter import translate
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, translate_request
from interpreter.workbench import encode

MODELS = {"chat": "gpt-4.1", "responses": "gpt-4.1", "messages": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}
ASKED = {"role": "user", "content": "q"}
CONTENTS = [{"role": "user", "parts": [{"text": "q"}]}]
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "21C"}]}
CONTINUED = {"max_tokens": 50, "thread": {"type": "continue", "previous_message_id": "msg_1"}, "messages": [RESULT]}
WHY = "this refers to something that only its own vendor's server stores: send the content itself"
KEPT = [
    ("messages", CONTINUED, "/thread/previous_message_id"),
    ("messages", CONTINUED | {"thread": {"type": "continue"}}, "/thread/type"),
    ("responses", {"input": "q", "conversation": "conv_1"}, "/conversation"),
    ("responses", {"input": "q", "conversation": {"id": "conv_1"}}, "/conversation/id"),
    ("responses", {"prompt": {"id": "pmpt_1", "variables": {"a": "b"}}}, "/prompt/id"),
    ("responses", {"input": "q", "prompt": {"id": "pmpt_1"}}, "/prompt/id"),
    ("responses", {"input": "q", "prompt": {"id": "pmpt_1", "variables": {"n": 10**400}}}, "/prompt/id"),
    ("responses", {"input": [ASKED, {"type": "item_reference", "id": "fc_1"}]}, "/input/1/id"),
    ("responses", {"input": [{"id": "msg_1"}, ASKED]}, "/input/0/id"),
    ("gemini", {"contents": CONTENTS, "cachedContent": "cachedContents/1"}, "/cachedContent"),
    ("gemini", {"contents": CONTENTS, "cached_content": "cachedContents/1"}, "/cached_content"),
    ("gemini", {"contents": CONTENTS, "continuationToken": "t"}, "/continuationToken"),
    ("gemini", {"contents": CONTENTS, "continuation_token": "t"}, "/continuation_token"),
    ("gemini", {"request": {"contents": CONTENTS, "cachedContent": "c"}}, "/request/cachedContent"),
]


def require_rejected(body, source, target):
    with pytest.raises(Problem) as caught:
        translate_request(Call(encode(body), "m"), source, target, model=MODELS[target])
    return caught.value


@pytest.mark.parametrize(("source", "body", "where"), KEPT)
def test_a_request_that_refers_to_vendor_state_is_rejected_with_its_pointer(source, body, where):
    for target in MODELS.keys() - {source}:
        problem = require_rejected(body, source, target)
        assert (problem.kind, problem.message, problem.where) == ("unsupported", WHY, where)


@pytest.mark.parametrize(("source", "body", "where"), KEPT[:-1])
def test_such_a_request_passes_in_its_own_dialect(source, body, where):
    result = translate_request(Call(encode(body), "m"), source, source)
    assert (result.call.body, result.losses) == (encode(body), ())
    dialect = dialect_named(source)
    again = dialect.parse_request(dialect.render_request(dialect.parse_request(Call(encode(body), "m")), None))
    assert [reference.where for reference in again.references] == ([where] if not where.startswith("/input") else [])


def test_a_thread_that_cannot_continue_is_rejected_with_the_code_upon_which_clients_send_everything():
    problem = require_rejected(CONTINUED, "messages", "chat")
    error = json.loads(dialect_named("messages").build_error(problem).body)["error"]
    assert (error["type"], error["details"]) == (
        "invalid_request_error",
        {"error_code": "thread_unsupported_request"},
    )


@pytest.mark.parametrize(
    ("source", "body", "lost"),
    [
        ("messages", CONTINUED | {"thread": {"type": "create"}, "messages": [ASKED]}, ["/thread"]),
        ("messages", CONTINUED | {"thread": None, "messages": [ASKED]}, []),
        ("responses", {"input": "q", "conversation": None, "prompt": None}, []),
        ("responses", {"input": "q", "prompt": {"variables": {"a": "b"}}}, ["/prompt"]),
        (
            "responses",
            {"input": [ASKED, {"type": "item_reference", "id": "rs_1"}, ASKED]},
            ["/input/1"],
        ),
        ("gemini", {"contents": CONTENTS, "cachedContent": "", "continuationToken": None}, ["/cachedContent"]),
    ],
)
def test_a_self_contained_request_or_a_useless_reference_is_translated(source, body, lost):
    result = translate_request(Call(encode(body), "m"), source, "chat", model="gpt-4.1")
    assert "q" in json.dumps(json.loads(result.call.body)["messages"])
    assert [loss.where for loss in result.losses if loss.kind == "dropped"] == lost


def test_a_refusal_is_the_same_however_often_the_conversation_came_before(monkeypatch):
    monkeypatch.setattr(translate, "CACHES", Caches(ToolsCache(), PrefixCache(min_bytes=10)))
    turns = [ASKED, {"role": "assistant", "content": "a"}] * 20
    body = {"input": [*turns, {"type": "item_reference", "id": "fc_1"}, *turns, ASKED], "previous_response_id": "r"}
    places = [require_rejected(body, "responses", "chat").where for _ in range(3)]
    assert places == ["/previous_response_id"] * 3
    del body["previous_response_id"]
    assert [require_rejected(body, "responses", "chat").where for _ in range(3)] == ["/input/40/id"] * 3
