"""Web searches of a reply at clients of other dialects, whole and streamed."""

import json
from typing import Any

import pytest
from anthropic.types import Message
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as SdkResponse

from conformance.recordings import replies
from dragoman.core.parts import Reasoning, Search, Text
from dragoman.core.request import NativeTool, Request
from dragoman.core.searches import GENERATED_MARK, SearchJoiner
from dragoman.core.stream import collect, replay
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.reply_adapter import NO_CONTEXT, Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.signature_envelopes import ENVELOPE_PREFIX
from dragoman.interpreter.stream import StreamTranslator
from shelf import needs_shelf

DECLARED = {
    "messages": b'{"type":"web_search_20250305","name":"web_search"}',
    "responses": b'{"type":"web_search"}',
    "gemini": b'{"googleSearch":{}}',
}
SIGNS = {
    "messages": b'"web_search_tool_result"',
    "responses": b'"web_search_call"',
    "gemini": b'"webSearchQueries"',
    "chat": b'"url_citation"',
}
MODELS = {
    "messages": Message,
    "responses": SdkResponse,
    "gemini": GenerateContentResponse,
    "chat": ChatCompletion,
}
PAIRS = [(source, client) for source in SIGNS for client in SIGNS if source != client]


def declare(client):
    tool = DECLARED.get(client)
    tools = (NativeTool(dialect=client, raw=tool),) if tool else ()
    return Context(request=Request(model="m", messages=(), tools=tools))


def find_recorded(source, *, streamed):
    return [one for one in replies(source) if SIGNS[source] in one.body and one.streamed is streamed]


def parse(dialect, body):
    return DIALECTS[dialect].parse_response(body)


def list_searches(parts):
    return [part for part in parts if isinstance(part, Search)]


def list_queries(parts):
    return [query for search in list_searches(parts) for query in search.queries]


def list_asked(source, parts):
    """Return the queries of searches; Google sends them twice if the request has functions, too."""
    queries = list_queries(parts)
    return list(dict.fromkeys(queries)) if source == "gemini" else queries


def list_cited(parts):
    return {citation.url for part in parts if isinstance(part, Text) for citation in part.citations if citation.url}


def flow(source, client, body, size=1 << 20, context=NO_CONTEXT):
    translator = StreamTranslator(source, client, context)
    return b"".join([*(translator.feed(body[at : at + size]) for at in range(0, len(body), size)), translator.close()])


def decode(dialect, body):
    decoder = DIALECTS[dialect].decoder()
    return collect([*decoder.feed(body), *decoder.close()])


@needs_shelf
@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_recorded_searches_reach_every_client(source, client):
    found = find_recorded(source, streamed=False)
    assert found
    for recording in found:
        before = parse(source, recording.body).parts
        body = translate_response(recording.body, source, client, declare(client)).body
        MODELS[client].model_validate_json(body)
        after = parse(client, body).parts
        assert "".join(part.text for part in after if isinstance(part, Text)) == "".join(
            part.text for part in before if isinstance(part, Text)
        ), recording.id
        assert list_cited(before) <= list_cited(after), recording.id
        if client != "chat":
            assert "; ".join(list_queries(after)) == "; ".join(list_asked(source, before)), recording.id
            pages = {page.url for search in list_searches(before) for page in search.pages if list_queries(before)}
            assert pages <= {page.url for search in list_searches(after) for page in search.pages}, recording.id


@needs_shelf
@pytest.mark.parametrize(("source", "client"), [pair for pair in PAIRS if pair[0] != "chat"])
def test_a_streamed_search_is_that_of_the_whole_reply(source, client):
    found = find_recorded(source, streamed=True)
    assert found
    for recording in found:
        reply = decode(source, recording.body)
        streamed = flow(source, client, recording.body, context=declare(client))
        assert streamed == flow(source, client, recording.body, 97, declare(client)), recording.id
        after = decode(client, streamed).parts
        assert list_cited(reply.parts) <= list_cited(after), recording.id
        if client != "chat":
            assert "; ".join(list_queries(after)) == "; ".join(list_asked(source, reply.parts)), recording.id
        whole = translate_response(DIALECTS[source].build_response(reply, None), source, client, declare(client)).body
        made, sent = ([simplify(part) for part in parts] for parts in (parse(client, whole).parts, after))
        if (source, client) == ("gemini", "responses"):
            # Google's metadata comes last in a stream, which is not held back: after the text, or without its pages.
            made, sent = ([part if part[0] == "text" else part[:2] for part in sorted(parts)] for parts in (made, sent))
        assert made == sent, recording.id


def simplify(part: Any) -> Any:
    match part:
        case Search():
            return "search", part.queries, part.pages and [page.url for page in part.pages]
        case Text():
            return "text", part.text, [citation.url for citation in part.citations]
        case _:
            return (type(part).__name__,)


GROUNDED = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": "Hm.", "thought": True}, {"text": "Grüße aus Rom. Es regnet. Ende"}],
            },
            "finishReason": "STOP",
            "index": 0,
            "groundingMetadata": {
                "webSearchQueries": ["wetter rom", "rom regen"],
                "groundingChunks": [
                    {"web": {"uri": "https://a.org", "title": "A"}},
                    {"web": {"uri": "https://b.org", "title": "B"}},
                ],
                "groundingSupports": [
                    {"segment": {"endIndex": 16, "text": "Grüße aus Rom."}, "groundingChunkIndices": [0]},
                    {
                        "segment": {"startIndex": 17, "endIndex": 27, "text": "Es regnet."},
                        "groundingChunkIndices": [0, 1],
                    },
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
    "responseId": "r",
    "modelVersion": "g",
}


def sse(*chunks):
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks)


def test_a_client_whose_citations_are_on_blocks_gets_the_search_first_and_the_text_cut():
    whole = json.dumps(GROUNDED).encode()
    message = json.loads(translate_response(whole, "gemini", "messages", declare("messages")).body)
    thought, call, results, first, second, last = message["content"]
    assert thought["type"] == "thinking"
    assert call["input"] == {"query": "wetter rom; rom regen"}
    assert call["id"] == results["tool_use_id"]
    assert [(page["url"], page["title"]) for page in results["content"]] == [
        ("https://a.org", "A"),
        ("https://b.org", "B"),
    ]
    assert [(first["text"], len(first["citations"])), (second["text"], len(second["citations"]))] == [
        ("Grüße aus Rom. ", 1),
        ("Es regnet.", 2),
    ]
    assert last == {"type": "text", "text": " Ende"}
    assert message["usage"]["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}
    assert translate_response(whole, "gemini", "messages", declare("messages")).losses == ()
    streamed = flow("gemini", "messages", sse(GROUNDED), context=declare("messages"))
    assert [simplify(part) for part in decode("messages", streamed).parts] == [
        simplify(part) for part in parse("messages", json.dumps(message).encode()).parts
    ]


def test_a_stream_is_held_back_only_for_such_a_client_that_asked_for_a_search():
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Rome"}]}, "index": 0}], "responseId": "r"}
    for client, context, is_held in (
        ("messages", declare("messages"), True),
        ("messages", NO_CONTEXT, False),
        ("responses", declare("responses"), False),
        ("chat", NO_CONTEXT, False),
    ):
        translator = StreamTranslator("gemini", client, context)
        start = translator.feed(sse(chunk))
        assert (b'"Rome"' not in start) is is_held
        assert b"Rome" in start + translator.feed(sse(GROUNDED)) + translator.close()


def test_thoughts_are_not_held_back():
    translator = StreamTranslator("gemini", "messages", declare("messages"))
    thought = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hm.", "thought": True}]}, "index": 0}]}
    assert b"Hm." in translator.feed(sse({**thought, "responseId": "r"}))


def test_what_was_held_back_is_sent_when_the_stream_fails():
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Rome"}]}, "index": 0}], "responseId": "r"}
    translator = StreamTranslator("gemini", "messages", declare("messages"))
    assert b"Rome" not in translator.feed(sse(chunk))
    last = translator.close()
    assert last.index(b"Rome") < last.index(b"event: error")


def test_an_answer_that_is_too_long_is_no_longer_held_back(monkeypatch):
    monkeypatch.setattr("dragoman.interpreter.searches._MAX_HELD", 10)
    translator = StreamTranslator("gemini", "messages", declare("messages"))
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "A long text."}]}, "index": 0}]}
    assert b"A long text." in translator.feed(sse({**chunk, "responseId": "r"}))
    assert b"A long text." in translator.feed(sse({**chunk, "responseId": "r"}))
    last = decode(
        "messages", flow("gemini", "messages", sse({**chunk, "responseId": "r"}, GROUNDED), context=declare("messages"))
    )
    assert next(type(part) for part in last.parts if not isinstance(part, Reasoning)) is Text


SOURCES = [{"type": "url", "url": "https://a.org"}, {"type": "url", "url": "https://b.org"}]


def answer(*items):
    return json.dumps(
        {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items}
    ).encode()


def build_search(query, **action):
    action = {"type": "search", "query": query, **action}
    return {"type": "web_search_call", "id": f"ws_{query}", "status": "completed", "action": action}


def build_message(text, *annotations):
    content = [{"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def test_searches_in_several_steps_keep_their_order():
    cited = {"type": "url_citation", "start_index": 4, "end_index": 9, "url": "https://a.org", "title": "Alpha"}
    body = answer(
        build_search("1", sources=SOURCES),
        build_message("Hm."),
        build_search("2", sources=[]),
        build_message("See (a.o).", cited),
    )
    message = json.loads(translate_response(body, "responses", "messages", declare("messages")).body)
    kinds = [block["type"] for block in message["content"]]
    assert kinds == [
        *("server_tool_use", "web_search_tool_result", "text"),
        *("server_tool_use", "web_search_tool_result", "text", "text", "text"),
    ]
    assert [page["title"] for page in message["content"][1]["content"]] == ["Alpha", "https://b.org"]
    assert message["content"][4]["content"] == []
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 2
    assert len({block["id"] for block in message["content"] if "id" in block}) == 2


CLAUDE_STEPS = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        block
        for query in ("one", "two")
        for block in (
            {"type": "server_tool_use", "id": f"srvtoolu_{query}", "name": "web_search", "input": {"query": query}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": f"srvtoolu_{query}",
                "content": [{"type": "web_search_result", "url": f"https://{query}.org", "title": query}],
            },
            {"type": "text", "text": f"Found {query}. "},
        )
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
STEPS = {
    "messages": json.dumps(CLAUDE_STEPS).encode(),
    "responses": answer(
        build_search("one", sources=[{"type": "url", "url": "https://one.org"}]),
        build_message("Found one. "),
        build_search("two", sources=[{"type": "url", "url": "https://two.org"}]),
        build_message("Found two. "),
    ),
}


@pytest.mark.parametrize(("source", "client"), [pair for pair in PAIRS if pair[0] in STEPS])
def test_each_step_of_a_search_stays_where_it_was_whole_and_streamed(source, client):
    encoder = DIALECTS[source].encoder(None)
    frames = b"".join(map(encoder.feed, replay(parse(source, STEPS[source]))))
    whole = parse(client, translate_response(STEPS[source], source, client, declare(client)).body).parts
    streamed = decode(client, flow(source, client, frames, 50, declare(client))).parts
    one, two = ("search", ("one",), ["https://one.org"]), ("search", ("two",), ["https://two.org"])
    for parts in (whole, streamed):
        text = "".join(part.text for part in parts if isinstance(part, Text))
        assert text == "Found one. Found two. "
        if client == "gemini":
            (search,) = list_searches(parts)
            assert (search.queries, [page.url for page in search.pages]) == (("one", "two"), [*one[2], *two[2]])
        elif client != "chat":
            joined = SearchJoiner()
            found = [whole for part in parts if (whole := joined.add(part) if isinstance(part, Search) else part)]
            texts = [("text", "Found one. ", []), ("text", "Found two. ", [])]
            assert [simplify(part) for part in found] == [one, texts[0], two, texts[1]]


def test_a_search_without_sources_has_the_pages_that_the_answer_cites():
    cited = {"type": "url_citation", "start_index": 0, "end_index": 3, "url": "https://a.org", "title": "Alpha"}
    body = answer(
        build_search("1"),
        build_search("2"),
        build_message("(a)", cited, {**cited, "url": "https://b.org", "title": "B"}),
    )
    message = json.loads(translate_response(body, "responses", "messages", declare("messages")).body)
    assert message["content"][1]["content"] == []
    assert [page["url"] for page in message["content"][3]["content"]] == ["https://a.org", "https://b.org"]


def chat_reply(*annotations, text="See A."):
    message = {"role": "assistant", "content": text, "annotations": annotations}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    ).encode()


PAGE = {"url": "https://a.org", "title": "A", "start_index": 4, "end_index": 5}


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_an_answer_of_chat_that_cites_pages_has_run_a_search_if_it_was_asked_for(client):
    body = chat_reply({"type": "url_citation", "url_citation": PAGE})
    (search,) = list_searches(
        {
            type(part): part
            for part in parse(client, translate_response(body, "chat", client, declare(client)).body).parts
            if not isinstance(part, Search) or part.pages or part.step == "whole"
        }.values()
    )
    assert [page.url for page in search.pages] == ["https://a.org"]
    for context in (NO_CONTEXT, declare(client)):
        plain = translate_response(body if context is NO_CONTEXT else chat_reply(), "chat", client, context).body
        assert list_searches(parse(client, plain).parts) == []


def test_what_an_unfinished_search_has_asked_is_sent():
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": "pause_turn",
        "content": [{"type": "text", "text": "x"}, call],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    output = json.loads(translate_response(json.dumps(body).encode(), "messages", "responses").body)["output"]
    assert [item["type"] for item in output] == ["message", "web_search_call"]
    assert output[1]["action"]["query"] == "q"


def test_the_mark_of_a_search_is_found_where_foreign_signatures_are():
    assert GENERATED_MARK == ENVELOPE_PREFIX


def test_a_client_without_searches_gets_the_citations_and_a_report():
    found = translate_response(
        answer(build_search("q", sources=SOURCES), build_message("x")), "responses", "chat"
    ).losses
    assert [(loss.where, loss.kind, loss.grade) for loss in found if loss.where == "/output/0"] == [
        ("/output/0", "dropped", "material")
    ]
