"""Answers that cite after a search, at clients whose citations have positions."""

import json

import pytest

from dragoman.core.events import PartDelta
from dragoman.core.parts import Text
from dragoman.core.stream import collect, replay
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator


def parse(dialect, body):
    return DIALECTS[dialect].parse_response(body)


def flow(source, client, body):
    translator = StreamTranslator(source, client)
    return translator.feed(body) + translator.close()


def decode(dialect, body):
    decoder = DIALECTS[dialect].decoder()
    return collect([*decoder.feed(body), *decoder.close()])


def block(text, *urls):
    cited = [
        {"type": "web_search_result_location", "url": url, "title": "T", "cited_text": "", "encrypted_index": "E"}
        for url in urls
    ]
    return {"type": "text", "text": text, **({"citations": cited} if cited else {})}


CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        block("Hm."),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        block("é. "),
        block("One.", "https://a.org", "https://b.org"),
        block(" Two.", "https://b.org"),
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        block("End."),
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def list_spans(parts):
    return [
        (part.text, [(one.url, one.start, one.end) for one in part.citations])
        for part in parts
        if isinstance(part, Text)
    ]


@pytest.mark.parametrize("client", ["responses", "chat", "gemini"])
def test_the_blocks_of_a_cited_answer_are_one_text_with_spans(client):
    body = json.dumps(CLAUDE).encode()
    stream = DIALECTS["messages"].encoder(None)
    reply = parse("messages", body)
    frames = b"".join(map(stream.feed, replay(reply)))
    whole = parse(client, translate_response(body, "messages", client).body)
    streamed = decode(client, flow("messages", client, frames))
    assert whole.finish.reason == streamed.finish.reason == "tool_calls"
    for parts in (whole.parts, streamed.parts):
        if client == "responses":
            cited = [("https://a.org", 3, 7), ("https://b.org", 3, 7), ("https://b.org", 7, 12)]
            assert list_spans(parts) == [("Hm.", []), ("é. One. Two.", cited), ("End.", [])]
    answer = "".join(text for text, _ in list_spans(whole.parts))
    found = [(answer[start:end], url) for _, cited in list_spans(whole.parts) for url, start, end in cited]
    if client != "responses":
        assert found == [("One.", "https://a.org"), ("One.", "https://b.org"), (" Two.", "https://b.org")]


@pytest.mark.parametrize("client", ["chat", "gemini"])
def test_the_positions_of_a_streamed_answer_are_those_of_the_whole_one(client):
    body = {**CLAUDE, "content": CLAUDE["content"][:-2], "stop_reason": "end_turn"}
    encoder = DIALECTS["messages"].encoder(None)
    frames = b"".join(map(encoder.feed, replay(parse("messages", json.dumps(body).encode()))))
    sent = flow("messages", client, frames).decode()
    last = json.loads(translate_response(json.dumps(body).encode(), "messages", client).body)
    if client == "chat":
        spans = [one["url_citation"] for one in last["choices"][0]["message"]["annotations"]]
        assert [(one["start_index"], one["end_index"]) for one in spans] == [(6, 10), (6, 10), (10, 15)]
        assert json.dumps(spans[0])[1:-1].replace(" ", "") in sent.replace(" ", "")
    else:
        supports = last["candidates"][0]["groundingMetadata"]["groundingSupports"]
        assert [one["segment"]["text"] for one in supports] == ["One.", " Two."]
        assert json.dumps(supports).replace(" ", "") in sent.replace(" ", "")


def test_the_texts_of_a_cited_answer_are_streamed_as_they_arrive():
    encoder = DIALECTS["messages"].encoder(None)
    events = list(replay(parse("messages", json.dumps(CLAUDE).encode())))
    translator = StreamTranslator("messages", "responses")
    sent = b"".join(translator.feed(encoder.feed(event)) for event in events[: events.index(PartDelta(4, "One.")) + 1])
    assert b'"delta":"One."' in sent
