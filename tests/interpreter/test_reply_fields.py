"""Reply fields other than text and calls are sent if the client's dialect has them, and are losses otherwise."""

import itertools
import json

import pytest

from cases.through import DONE, answer, flow, loss_pointers
from dragoman.core.events import Failed, PartEnded, PartSigned, PartStarted
from dragoman.core.losses import Loss
from dragoman.core.parts import Reasoning, Signature
from dragoman.core.problems import Problem
from dragoman.core.value import Extras
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_envelopes import open_envelope
from interpreter.workbench import nobodys_dialect

COUNTS = {
    "input_tokens": 5,
    "output_tokens": 7,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
    "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
    "service_tier": "standard",
    "inference_geo": None,
}
UNCOUNTED = {"/usage/cache_creation"}
SEARCHES = "/usage/server_tool_use/web_search_requests"
SAID = [{"type": "text", "text": "x"}]


def message(**more):
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": SAID, "stop_reason": "end_turn", "usage": COUNTS, **more}


def message_frames(stop_reason="end_turn", stop_sequence=None, block=None, *deltas):
    begun = {**message(content=[], stop_reason=None), "usage": {**COUNTS, "output_tokens": 1}}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": block or {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": stop_sequence},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


def chat(usage=None, **choice):
    one = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop", **choice}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [one]}
    return {**body, "usage": usage} if usage else body


@pytest.mark.parametrize(
    ("client", "more"),
    [("chat", {SEARCHES}), ("responses", set()), ("gemini", {SEARCHES, "/usage/cache_creation_input_tokens"})],
)
def test_counts_the_client_has_no_place_for_are_reported_and_zeros_are_not(client, more):
    lost = UNCOUNTED | more
    assert loss_pointers(answer("messages", client, message())) == lost
    assert loss_pointers(flow("messages", client, message_frames())) == lost


def test_token_counts_with_a_field_in_the_target_are_sent():
    usage = answer("messages", "responses", message()).body["usage"]
    assert usage["input_tokens_details"] == {"cached_tokens": 0, "cache_write_tokens": 3}
    assert usage["input_tokens"] == 8


def test_a_count_that_is_counted_in_with_another_is_not_lost():
    usage = {"promptTokenCount": 4, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 9}
    candidate = {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}
    result = answer("gemini", "chat", {"candidates": [candidate], "usageMetadata": usage, "responseId": "r"})
    assert result.body["usage"]["prompt_tokens"] == 7
    assert [(loss.kind, loss.where) for loss in result.losses] == [
        ("approximated", "/usageMetadata/toolUsePromptTokenCount")
    ]


def test_details_of_tokens_are_reported_leaf_by_leaf():
    details = {"cached_tokens": 1, "audio_tokens": 2}
    usage = {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11, "prompt_tokens_details": details}
    reply = answer("chat", "messages", chat(usage))
    assert reply.body["usage"]["cache_read_input_tokens"] == 1
    assert loss_pointers(reply) == {"/usage/prompt_tokens_details/audio_tokens"}


@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_the_stop_sequence_that_was_hit_is_reported_where_there_is_no_place_for_it(client):
    whole = answer("messages", client, message(stop_reason="stop_sequence", stop_sequence="END"))
    assert "/stop_sequence" in loss_pointers(whole, "dropped")
    assert "/stop_sequence" in loss_pointers(
        flow("messages", client, message_frames("stop_sequence", "END")), "dropped"
    )
    assert "/stop_sequence" not in loss_pointers(answer("messages", client, message()))


def stop(reason):
    """As vLLM says it, whole and in chunks."""
    chunk = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop", "stop_reason": reason}
    return chat(stop_reason=reason), [{**chat(), "choices": [chunk]}, DONE]


def test_the_stop_sequence_a_server_names_reaches_a_client_that_has_a_place_for_it():
    body, chunks = stop("END")
    result = answer("chat", "messages", body)
    assert (result.body["stop_reason"], result.body["stop_sequence"], result.losses) == ("stop_sequence", "END", ())
    streamed = flow("chat", "messages", chunks)
    assert streamed.body[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    assert streamed.losses == ()


@pytest.mark.parametrize(("client", "reason"), [("messages", 154829), ("gemini", 154829), ("gemini", "END")])
def test_a_token_that_ended_a_reply_and_a_sequence_without_a_place_are_reported(client, reason):
    body, chunks = stop(reason)
    assert loss_pointers(answer("chat", client, body)) == {"/choices/0/stop_reason"}
    assert loss_pointers(flow("chat", client, chunks)) == {"/choices/0/stop_reason"}


@pytest.mark.parametrize(
    ("source", "client", "word", "where"),
    [
        ("messages", "chat", "model_context_window_exceeded", "/stop_reason"),
        ("messages", "gemini", "brand_new", "/stop_reason"),
        ("messages", "gemini", "pause_turn", "/stop_reason"),
        ("chat", "messages", "eos", "/choices/0/finish_reason"),
        ("gemini", "chat", "LANGUAGE", "/candidates/0/finishReason"),
    ],
)
def test_a_finish_reason_more_specific_than_the_clients_is_approximated(source, client, word, where):
    bodies = {
        "messages": message(stop_reason=word, usage=None),
        "chat": chat(finish_reason=word),
        "gemini": {"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": word}], "responseId": "r"},
    }
    result = answer(source, client, bodies[source])
    assert [(loss.kind, loss.where) for loss in result.losses] == [("approximated", where)]


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}


def respond(*output, **more):
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**head, "output": list(output), **more}


@pytest.mark.parametrize("client", ["messages", "gemini"])
def test_the_id_of_a_thought_travels_in_the_envelope_and_is_not_reported(client):
    result = answer("responses", client, respond(THOUGHT, {**THOUGHT, "id": "rs.2"}))
    first, _ = open_envelope(Signature("", _signatures(result.body)[0]))
    assert (first.item, first.value) == ("rs_1", "e")
    assert loss_pointers(result) == {"/output/1/id"}, "an envelope has no room for an id with a dot"


def _signatures(body):
    blocks = body.get("content") or body["candidates"][0]["content"]["parts"]
    return [block.get("signature") or block["thoughtSignature"] for block in blocks]


@pytest.mark.parametrize("client", ["chat", "messages", "gemini"])
def test_the_id_of_a_thought_without_a_signature_is_reported(client):
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    assert loss_pointers(answer("responses", client, respond(thought))) == {"/output/0/id"}


def test_fields_of_a_thought_that_was_cut_off_are_reported_too():
    ledger = Ledger({})
    adapter = EventAdapter(nobodys_dialect(), dialect_named("messages"), ledger)
    adapter.feed(PartStarted(0, Reasoning(where="/p", extras=Extras("responses", {"/id": b'"rs_1"'}))))
    adapter.feed(Failed(Problem("malformed_reply", "cut")))
    assert [loss.where for loss in ledger.losses()] == ["/p/id"]


def test_a_field_that_merely_looks_like_the_id_of_another_thought_is_reported():
    ledger = Ledger({})
    adapter = EventAdapter(nobodys_dialect(), dialect_named("messages"), ledger)
    adapter.feed(PartStarted(0, Reasoning(where="/p", extras=Extras("responses", {"/id": b'"rs_2"'}))))
    adapter.feed(PartSigned(0, Signature("openai", "e", "rs_1")))
    adapter.feed(PartEnded(0))
    assert [loss.where for loss in ledger.losses()] == ["/p/id"]


def test_fields_that_only_repeat_the_request_are_no_losses():
    result = answer("responses", "chat", respond(temperature=1.0, text={"format": {"type": "text"}}, billing={"p": 1}))
    assert loss_pointers(result) == {"/billing"}


@pytest.mark.parametrize("client", ["chat", "gemini"])
def test_the_namespace_of_a_call_is_reported_where_calls_have_none(client):
    call = {"type": "function_call", "call_id": "c", "name": "f", "namespace": "crm", "arguments": "{}"}
    assert loss_pointers(answer("responses", client, respond(call))) == {"/output/0/namespace"}


PAGE = {"type": "url_citation", "url": "https://a.org", "title": "A", "start_index": 0, "end_index": 3}


def build_cited_reply(*annotations):
    text = {"type": "output_text", "text": "abcdef", "annotations": list(annotations)}
    return respond({"type": "message", "role": "assistant", "content": [text]})


def test_the_span_of_a_citation_is_a_loss_where_citations_apply_to_whole_blocks():
    where = "/output/0/content/0/annotations/0"
    assert loss_pointers(answer("responses", "messages", build_cited_reply(PAGE))) == {
        f"{where}/start_index",
        f"{where}/end_index",
    }
    assert loss_pointers(answer("responses", "chat", build_cited_reply(PAGE))) == set()
    assert loss_pointers(answer("responses", "gemini", build_cited_reply(PAGE))) == set()


def test_annotations_of_chat_are_reported_at_their_pointer_next_to_the_text():
    page = {"url": "https://a.org", "title": "A", "content": "words", "start_index": 0, "end_index": 1}
    notes = [{"type": "url_citation", "url_citation": page}, {"type": "file", "file": {"hash": "h"}}]
    output = {"role": "assistant", "content": "x", "annotations": notes}
    where = "/choices/0/message/annotations"
    lost = {f"{where}/0/url_citation/content", f"{where}/1"}
    assert loss_pointers(answer("chat", "responses", chat(message=output))) == lost
    chunks = [{**chat(), "choices": [{"index": 0, "delta": {"content": "x"}}]}]
    chunks += [{**chat(), "choices": [{"index": 0, "delta": {"annotations": [note]}}]} for note in notes]
    chunks += [{**chat(), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, DONE]
    assert loss_pointers(flow("chat", "responses", chunks)) == lost


def test_fields_of_another_kind_of_call_are_losses():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "custom": {"input": "odd"}}
    output = {"role": "assistant", "content": None, "tool_calls": [call]}
    where = "/choices/0/message/tool_calls/0"
    assert loss_pointers(answer("chat", "messages", chat(message=output))) == {f"{where}/custom"}
    call["custom"] = {"name": "", "input": ""}
    assert loss_pointers(answer("chat", "messages", chat(message=output))) == set()
    call |= {"type": "custom", "custom": {"name": "g", "input": "x"}}
    lost = {f"{where}/function"}
    assert loss_pointers(answer("chat", "responses", chat(message=output))) == lost


def test_text_after_a_call_is_reported_as_moved_where_calls_come_last():
    content = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}, *SAID]
    body = message(content=content, stop_reason="tool_use", usage=None)
    assert [(loss.kind, loss.where) for loss in answer("messages", "chat", body).losses] == [
        ("approximated", "/content/1")
    ]
    assert answer("messages", "responses", body).losses == ()


PARTS = [{"functionCall": {"name": "f", "args": {}, "id": "a"}}, {"executableCode": {"code": "1"}}]


def test_parts_of_later_chunks_are_named_as_a_whole_reply_would_count_them():
    chunks = [{"candidates": [{"content": {"parts": [part]}}]} for part in [{"text": "x"}, *PARTS]]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    whole = {"candidates": [{"content": {"parts": [{"text": "x"}, *PARTS]}, "finishReason": "STOP"}]}
    assert loss_pointers(answer("gemini", "chat", whole)) == {"/candidates/0/content/parts/2"}
    assert loss_pointers(flow("gemini", "chat", chunks)) == {"/candidates/0/content/parts/2"}


SERVER_ERRORS = {
    "chat": (502, {"type": "server_error", "code": None}),
    "responses": (502, {"type": "server_error", "code": "server_error"}),
    "messages": (502, {"type": "api_error"}),
    "gemini": (502, {"status": "UNAVAILABLE", "code": 502}),
}


@pytest.mark.parametrize(("source", "client"), list(itertools.permutations(SERVER_ERRORS, 2)))
@pytest.mark.parametrize("status", [500, 502])
@pytest.mark.parametrize("body", [b"<html>", b"", b'{"error":{"message":"oops"}}'])
def test_a_vendor_that_breaks_is_a_server_error_to_every_client(client, source, status, body):
    error_reply = translate_error(status, {}, body, source, client)
    error = json.loads(error_reply.body)["error"]
    expected, words = SERVER_ERRORS[client]
    assert (error_reply.status, {name: error[name] for name in words}) == (expected, words)


def test_only_the_first_candidate_is_sent_and_the_others_are_losses():
    candidates = [{"index": i, "content": {"parts": [{"text": t}]}, "finishReason": "STOP"} for i, t in enumerate("ab")]
    losses = translate_response(json.dumps({"candidates": candidates}).encode(), "gemini", "chat").losses
    assert losses == (Loss("/candidates/1", "only the first candidate is sent", "dropped", leaves=3),)
    choices = [{"index": i, "message": {"content": t}, "finish_reason": "stop"} for i, t in enumerate("ab")]
    losses = translate_response(json.dumps({"choices": choices}).encode(), "chat", "gemini").losses
    assert losses == (Loss("/choices/1", "only the first candidate is sent", "dropped", leaves=3),)
