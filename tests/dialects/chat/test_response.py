"""Whole replies of OpenAI Chat Completions: read, built, and judged by the official SDK."""

import json
from typing import Any

import pytest

from dragoman.core.parts import Citation, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response, Usage
from dragoman.dialects.chat.response import build_response, parse_response
from shelf import needs_shelf


def reply(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> Response:
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        **fields,
    }
    return parse_response(json.dumps(body).encode())


def build(*parts: Any, finish: str = "stop", raw: str = "", **fields: Any) -> dict[str, Any]:
    response = Response(id="r", model="m", parts=parts, finish=Finish(finish, raw), **fields)  # pyright: ignore[reportArgumentType]
    return json.loads(build_response(response, None))


def function(name: str, arguments: str, call_id: str = "a") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def get_meaning(response: Response) -> Any:
    """What a round trip keeps: raw JSON compares as JSON, and the vendor's finish word gives way to the right one."""
    usage = response.usage
    counts = usage and (
        usage.input,
        usage.output,
        usage.cached,
        usage.cache_written,
        usage.reasoning,
        members(usage.extras),
    )
    return (
        response.id,
        response.model,
        response.created,
        response.parts,
        response.finish.reason,
        counts,
        members(response.extras),
    )


def members(extras: Any) -> Any:
    return extras and {pointer: json.loads(raw) for pointer, raw in extras.fields.items()}


@needs_shelf
def test_every_recorded_reply_survives_the_round_trip(replies: list[Any]):
    assert len(replies) > 500
    for name, body in replies:
        response = parse_response(body)
        again = parse_response(build_response(response, None))
        assert get_meaning(again) == get_meaning(response), name


@needs_shelf
def test_every_recorded_reply_matches_the_official_sdk(replies: list[Any], ask: Any):
    for name, body in replies[::5]:
        response = parse_response(body)
        message = ask(body).to_dict()["choices"][0]["message"]
        calls = [
            (c["id"], c["function"]["name"], c["function"]["arguments"])
            for c in message.get("tool_calls") or []
            if c.get("function")
        ]
        read = [
            (p.id, p.name, p.arguments) for p in response.parts if isinstance(p, ToolCall) and p.form == "json" and p.id
        ]
        assert [(i, n, a or "{}") for i, n, a in calls] == read, name
        if isinstance(message.get("content"), str):
            assert "".join(p.text for p in response.parts if isinstance(p, Text)) == message["content"], name


@needs_shelf
def test_what_is_built_from_recordings_satisfies_the_official_types(replies: list[Any]):
    from openai.types.chat import ChatCompletion

    for name, body in replies:
        response = parse_response(body)
        if any(isinstance(p, Opaque) or p.spelling in ("chat part", "chat thinking") for p in response.parts):
            continue
        if any(isinstance(p, Text) and any(not c.url for c in p.citations) for p in response.parts):
            continue
        built = json.loads(build_response(without_extras(response), None))
        assert ChatCompletion.model_validate(built, strict=True).choices[0].index == 0, name


def without_extras(response: Response) -> Response:
    usage = response.usage and Usage(input=response.usage.input, output=response.usage.output)
    return Response(
        id=response.id,
        model=response.model,
        parts=response.parts,
        finish=response.finish,
        usage=usage,
        created=response.created,
    )


def test_a_call_makes_stop_a_tool_call():
    response = reply({"content": None, "tool_calls": [function("f", "{}")]})
    assert response.finish == Finish("tool_calls", "stop")
    assert response.parts == (ToolCall(id="a", name="f", arguments="{}"),)


def test_absent_arguments_of_a_reply_are_an_empty_object():
    assert reply({"tool_calls": [function("f", "")]}).parts == (ToolCall(id="a", name="f", arguments="{}"),)
    bare = {"id": "a", "type": "function", "function": {"name": "f"}}
    assert reply({"tool_calls": [bare]}).parts == (ToolCall(id="a", name="f", arguments="{}"),)


def test_arguments_given_as_an_object_become_text():
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
    assert reply({"tool_calls": [call]}).parts == (ToolCall(id="a", name="f", arguments='{"x":1}'),)


def test_invalid_arguments_stay_verbatim():
    response = reply({"tool_calls": [function("f", '{"a": tru')]}, "tool_calls")
    assert response.parts == (ToolCall(id="a", name="f", arguments='{"a": tru'),)


def test_a_call_cut_by_the_limit_is_incomplete_and_the_finish_stays_length():
    response = reply({"tool_calls": [function("f", '{"a":1}'), function("g", '{"a":', "b")]}, "length")
    assert response.finish.reason == "length"
    assert response.parts == (
        ToolCall(id="a", name="f", arguments='{"a":1}'),
        ToolCall(id="b", name="g", arguments='{"a":', complete=False),
    )


def test_free_text_that_the_limit_ends_is_not_trusted_to_be_whole():
    call = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    assert reply({"tool_calls": [call]}, "length").parts == (
        ToolCall(id="a", name="patch", arguments="*** Begin", form="text", complete=False),
    )


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "filtered"),
        ("eos", "stop"),
        ("model_length", "length"),
        ("error", "other"),
        ("insufficient_system_resource", "other"),
        ("brand_new", "other"),
        ("", "stop"),
        (None, "stop"),
    ],
)
def test_finish_reasons(word: str | None, reason: str):
    assert reply({"content": "x"}, word).finish == Finish(reason, word or "")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "tool_calls"),
        ("filtered", "content_filter"),
        ("refused", "content_filter"),
        ("paused", "stop"),
        ("other", "content_filter"),
    ],
)
def test_foreign_finish_reasons_get_the_nearest_one(reason: str, word: str):
    assert build(Text(text="x"), finish=reason, raw="whatever")["choices"][0]["finish_reason"] == word


def test_a_malformed_call_is_an_error_and_never_an_answer():
    with pytest.raises(Problem) as caught:
        build(finish="malformed_call")
    assert (caught.value.kind, caught.value.status, caught.value.code) == (
        "malformed_reply",
        502,
        "malformed_function_call",
    )


def test_a_refusal_has_finish_refusal_and_is_rendered_as_stop():
    response = reply({"content": None, "refusal": "I cannot."})
    assert response.finish == Finish("refused", "stop")
    assert response.parts == (Refusal(text="I cannot."),)
    built = json.loads(build_response(response, None))["choices"][0]
    assert (built["finish_reason"], built["message"]["refusal"]) == ("stop", "I cannot.")


def test_legacy_calls_finish_as_function_call():
    response = reply({"content": None, "function_call": {"name": "f", "arguments": "{}"}}, "function_call")
    assert response.parts == (ToolCall(id="", name="f", arguments="{}"),)
    choice = json.loads(build_response(response, None))["choices"][0]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}


def test_an_empty_function_call_and_an_empty_entry_of_the_calls_are_none():
    assert reply({"content": "x", "function_call": {"name": "", "arguments": ""}}).parts == (Text(text="x"),)
    for entry in ({"id": "", "type": "function"}, {"function": {"name": "", "arguments": None}}):
        parts = reply({"tool_calls": [{"type": "mcp"}, entry, function("f", "{}")]}).parts
        assert [type(part) for part in parts] == [Opaque, ToolCall]


def test_reasoning_comes_first_and_is_not_doubled():
    response = reply({"content": "x", "reasoning": "r", "reasoning_content": "r"})
    assert response.parts == (Reasoning(texts=("r",)), Text(text="x"))


def test_mistral_thinking_inside_the_content_is_reasoning():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    response = reply({"content": [thinking, {"type": "text", "text": "x"}, {"type": "reference", "ids": [1]}]})
    assert response.parts[:2] == (Reasoning(texts=("hm",)), Text(text="x"))
    assert isinstance(response.parts[2], Opaque)


def test_annotations_are_citations_of_the_text():
    page = {"url": "https://e.org", "title": "E", "start_index": 1, "end_index": 2}
    response = reply({"content": "x", "annotations": [{"type": "url_citation", "url_citation": page}]})
    [text] = response.parts
    assert isinstance(text, Text)
    [citation] = text.citations
    assert (citation.url, citation.title, citation.start, citation.end) == ("https://e.org", "E", 1, 2)


def test_foreign_citations_are_rebuilt_from_their_url():
    cited = Text(
        text="x", citations=(Citation("gemini", b"{}", url="https://e.org", title="E"), Citation("messages", b"{}"))
    )
    [annotation] = build(cited)["choices"][0]["message"]["annotations"]
    assert annotation == {
        "type": "url_citation",
        "url_citation": {"url": "https://e.org", "title": "E", "start_index": 0, "end_index": 1},
    }


def test_spans_count_from_where_the_first_text_begins():
    page = Citation("gemini", b"", url="https://e.org", start=1, end=3)
    whole = Citation("messages", b"{}", url="https://e.net")
    parts = (Text(text="héy "), ToolCall(id="a", name="f", arguments="{}"), Text(text="there", citations=(page, whole)))
    message = build(*parts)["choices"][0]["message"]
    spans = [(one["url_citation"]["start_index"], one["url_citation"]["end_index"]) for one in message["annotations"]]
    assert [message["content"][start:end] for start, end in spans] == ["he", "there"]


def test_a_google_signature_is_read_and_written():
    call = {**function("f", "{}"), "extra_content": {"google": {"thought_signature": "U0lH"}}, "index": 0}
    response = reply({"tool_calls": [call]})
    assert response.parts == (ToolCall(id="a", name="f", arguments="{}", signature=Signature("google", "U0lH")),)
    written = json.loads(build_response(response, None))["choices"][0]["message"]["tool_calls"][0]
    assert written["extra_content"] == {"google": {"thought_signature": "U0lH"}}


def test_other_answers_stay_whole_and_apart():
    body = {
        "id": "x",
        "model": "m",
        "choices": [
            {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
            {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
        ],
    }
    response = parse_response(json.dumps(body).encode())
    assert (response.parts, response.finish.reason) == ((Text(text="a"),), "stop")
    assert response.extras is not None
    assert json.loads(response.extras.fields["/choices/0"]) == body["choices"][0]


def test_vendor_fields_are_kept_by_pointer_and_null_is_absent():
    response = reply({"content": "x", "mood": "good"}, system_fingerprint="fp", service_tier=None)
    assert response.extras is not None
    assert response.extras.fields == {"/system_fingerprint": b'"fp"', "/choices/0/message/mood": b'"good"'}


def test_usage_keeps_what_includes_what():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.5,
    }
    read = reply({"content": "x"}, usage=usage).usage
    assert read is not None
    assert (read.input, read.output, read.cached, read.cache_written, read.reasoning) == (10, 5, 4, 2, 3)
    assert members(read.extras) == {"/prompt_tokens_details/audio_tokens": 0, "/cost": 0.5}
    assert build(usage=read)["usage"] == usage


def test_a_total_that_is_no_sum_survives():
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}
    read = reply({"content": "x"}, usage=usage).usage
    assert build(usage=read)["usage"] == usage


def test_reasoning_tokens_counted_separately_are_added_to_the_completion():
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 35,
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    read = reply({"content": "x"}, usage=usage).usage
    assert read is not None
    assert (read.output, read.reasoning) == (25, 20)
    assert build(usage=read)["usage"] == usage


def test_odd_usage_does_not_spoil_an_answer():
    assert reply({"content": "x"}, usage={"prompt_tokens": "many"}).usage is None


def test_foreign_parts_are_joined_into_one_message():
    call = ToolCall(id="a", name="f", arguments="{}")
    message = build(Reasoning(texts=("p", "q")), Text(text="a"), call, Text(text="b"), finish="tool_calls")["choices"][
        0
    ]["message"]
    assert message == {
        "role": "assistant",
        "content": "ab",
        "refusal": None,
        "reasoning_content": "p\n\nq",
        "tool_calls": [function("f", "{}")],
    }


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>", "malformed_reply"),
        (b"", "malformed_reply"),
        (b"{}", "malformed_reply"),
        (b'{"choices":[]}', "malformed_reply"),
        (b'{"choices":[{"message":{"content":5}}]}', "malformed_reply"),
        (b'{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}', "malformed_reply"),
        (b'{"error":{"message":"slow","code":429}}', "rate_limit"),
        (b'{"error":{"message":"no","type":"server_error"}}', "internal"),
    ],
)
def test_a_reply_that_is_none_raises_a_problem(body: bytes, kind: str):
    with pytest.raises(Problem) as caught:
        parse_response(body)
    assert caught.value.kind == kind


WITH_COUNTS = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": None, "accepted_prediction_tokens": 1},
}


@pytest.mark.parametrize(
    ("message", "finish", "fields"),
    [
        ({"content": "a", "refusal": None, "annotations": [], "tool_calls": [function("f", "")]}, "tool_calls", {}),
        ({"content": "", "reasoning_content": "hm", "tool_calls": None, "audio": None}, "stop", {}),
        ({"content": "a", "reasoning": "hm", "reasoning_details": [{"type": "x"}]}, "length", {}),
        ({"content": "a"}, "odd", {"usage": WITH_COUNTS, "service_tier": "default", "system_fingerprint": "fp"}),
        ({"content": "a"}, "stop", {"usage": {**WITH_COUNTS, "total_tokens": 99}, "service_tier": None, "error": None}),
        ({"content": "a"}, "stop", {"usage": {**WITH_COUNTS, "total_tokens": 15, "cost": 0.5, "queue_time": 1}}),
        ({}, "stop", {"created": 0, "id": None, "model": None, "usage": None, "provider": "p", "x_groq": {"id": "g"}}),
    ],
)
def test_known_fields_are_parsed_alike_next_to_an_unknown_one(message, finish, fields):
    known = reply(message, finish, **fields)
    other = reply(message, finish, **fields, unheard=1)
    extras = known.extras.fields if known.extras is not None else {}
    assert other.extras is not None
    assert other.extras.fields == {**extras, "/unheard": b"1"}
    assert (known.parts, known.finish, known.usage) == (other.parts, other.finish, other.usage)


@pytest.mark.parametrize("member", ["content", "service_tier"])
def test_a_reply_must_be_text(member):
    body = {"choices": [{"message": {"content": "content"}, "finish_reason": "stop"}], "service_tier": "service_tier"}
    broken = json.dumps(body).encode().replace(b'"%b"}' % member.encode(), b'"\xff"}')
    with pytest.raises(Problem):
        parse_response(broken)
