"""A loss has the pointer of what is dropped; neighbouring values that are sent are not losses."""

import json

import pytest

from cases.through import answer, flow, loss_pointers, translate_to
from dragoman.interpreter.schema.openapi import to_openapi


def drop(schema):
    return {note.where for note in to_openapi(json.dumps(schema).encode()).notes if note.kind == "dropped"}


def test_only_the_name_that_is_not_declared_leaves_the_list_of_required_ones():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", "a", 5]}
    assert drop(schema) == {"/required/1", "/required/3"}


@pytest.mark.parametrize(
    ("word", "values", "where"),
    [
        ("enum", ["x", "", "y"], "/properties/a/enum/1"),
        ("enum", [""], "/properties/a/enum/0"),
        ("const", "", "/properties/a/const"),
    ],
)
def test_only_the_empty_string_leaves_an_enum(word, values, where):
    assert drop({"type": "object", "properties": {"a": {"type": "string", word: values}}}) == {where}


REPLY = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
PLACE = {"type": "char_location", "cited_text": "w", "document_index": 0}
PAGE = {"type": "web_search_result_location", "url": "https://example.com/a", "title": "A", "cited_text": "w"}


def test_a_source_that_cannot_be_named_is_reported_and_the_text_it_is_about_is_not():
    block = {"type": "text", "text": "x", "citations": [PAGE, PLACE]}
    output = answer("messages", "chat", {**REPLY, "content": [block]})
    message = output.body["choices"][0]["message"]
    assert message["content"] == "x"
    assert message["annotations"][0]["url_citation"]["content"] == PAGE["cited_text"]
    lost = [(loss.where, loss.leaves) for loss in output.losses if loss.kind == "dropped"]
    assert lost == [("/content/0/citations/1", len(PLACE))]


def test_a_source_in_a_stream_that_cannot_be_named_is_reported_by_its_number():
    frames = [
        {"type": "message_start", "message": {**REPLY, "stop_reason": None, "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": PAGE}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": PLACE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    result = flow("messages", "chat", frames)
    lost = [(loss.where, loss.leaves) for loss in result.losses if loss.kind == "dropped"]
    assert lost == [("/content/0/citations/1", len(PLACE))]


@pytest.mark.parametrize(("failed", "words"), [(True, "[error of tool call t]"), (False, "[result of tool call t]")])
def test_a_result_without_its_call_keeps_its_failure_flag(failed, words):
    result = {"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": failed}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [result]}]}
    request = translate_to("messages", "gemini", body, model="gemini-3-pro")
    assert request.body["contents"][0]["parts"] == [{"text": f"{words}\nno"}]
    assert loss_pointers(request) == {"/messages/0/content/0"}
