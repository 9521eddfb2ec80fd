"""Recorded sources, translated, as official clients read them."""

import json

import pytest

import shelf
from dialects.gemini import official
from dialects.gemini.grounded import decode, streams_with_sources, with_sources
from dialects.messages import official as anthropic
from dragoman.core.stream import collect
from dragoman.dialects.gemini import DIALECT
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator


def sources_of(response):
    return [item for part in response.parts for item in getattr(part, "citations", ())]


def translate(stream, source, target):
    translator = StreamTranslator(source, target)
    return translator.feed(stream) + translator.close()


def openai_chat(body):
    from openai.types.chat import ChatCompletion

    message = ChatCompletion.model_validate_json(body).choices[0].message
    pages = [annotation.url_citation for annotation in message.annotations or []]
    return [(page.url, message.content[page.start_index : page.end_index]) for page in pages]


def openai_responses(body):
    from openai.types.responses import Response as Reply

    found = []
    for item in Reply.model_validate_json(body).output:
        for part in item.content if item.type == "message" else ():
            found.extend((note.url, part.text[note.start_index : note.end_index]) for note in part.annotations)
    return found


def anthropic_messages(body):
    from anthropic.types import Message

    assert not anthropic.reply_faults(body)
    blocks = Message.model_validate_json(body).content
    return [(item.url, item.cited_text) for block in blocks for item in getattr(block, "citations", None) or ()]


READERS = {"chat": openai_chat, "responses": openai_responses, "messages": anthropic_messages}


@shelf.needs_shelf
@pytest.mark.parametrize("client", READERS)
def test_recorded_grounding_reaches_official_clients(client):
    count = 0
    for name, body in with_sources():
        expected = sources_of(DIALECT.parse_response(body))
        translated = READERS[client](translate_response(body, "gemini", client).body)
        assert [url for url, _ in translated] == [item.url for item in expected], name
        spanned = [item.start is not None for item in expected]
        for (_, words), item, known in zip(translated, expected, spanned, strict=True):
            assert not known or words == item.quote, name
        count += len(translated)
    assert count >= 150


def chat_stream(stream):
    from openai.lib.streaming._deltas import accumulate_delta
    from openai.types.chat import ChatCompletionChunk

    message = {}
    for line in stream.decode().split("\n"):
        if line.startswith("data: {"):
            ChatCompletionChunk.model_validate_json(line[6:])
            for choice in json.loads(line[6:])["choices"]:
                message = accumulate_delta(message, choice["delta"])
    pages = [note["url_citation"] for note in message.get("annotations", ())]
    return [(page["url"], message["content"][page["start_index"] : page["end_index"]]) for page in pages]


def responses_stream(stream):
    from openai.types.responses import ResponseOutputTextAnnotationAddedEvent as Added

    added, final = [], None
    for line in stream.decode().split("\n"):
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            if event["type"] == "response.output_text.annotation.added":
                added.append(Added.model_validate(event).annotation.url)
            elif event["type"] == "response.completed":
                final = openai_responses(json.dumps(event["response"]))
    assert added == [url for url, _ in final]
    return final


def messages_stream(stream):
    assert not anthropic.stream_faults(stream)
    anthropic.accepts_order(stream)
    blocks = anthropic.accumulate(stream).content
    return [(item.url, item.cited_text) for block in blocks for item in getattr(block, "citations", None) or ()]


STREAM_READERS = {"chat": chat_stream, "responses": responses_stream, "messages": messages_stream}


@shelf.needs_shelf
@pytest.mark.parametrize("client", STREAM_READERS)
def test_recorded_grounding_of_streams_reaches_official_clients(client):
    count = 0
    for name, stream in streams_with_sources():
        expected = [(item.url, item.quote) for item in sources_of(collect(decode(stream)))]
        assert STREAM_READERS[client](translate(stream, "gemini", client)) == expected, name
        count += len(expected)
    assert count >= 40


KINDS = {"chat": "url_citation", "responses": "url_citation", "messages": "web_search_result_location"}


def list_named_urls(dialect, body):
    """Return the addresses a recorded reply cites, by the words of its own dialect."""
    kind = KINDS[dialect]
    found = []

    def visit(value):
        if isinstance(value, dict):
            page = value.get("url_citation", value) if value.get("type") == kind else {}
            if page.get("url"):
                found.append(page["url"])
            for member in value.values():
                visit(member)
        elif isinstance(value, list):
            for item in value:
                visit(item)

    visit(body)
    return found


def read_by_google(replies):
    """Return the addresses google-genai reads; every segment must be the words it says it is."""
    parts = [part for reply in replies for part in (reply.candidates[0].content or Empty).parts or ()]
    text = "".join(part.text or "" for part in parts if not part.thought).encode()
    grounding = replies[-1].candidates[0].grounding_metadata
    if grounding is None:
        return set()
    for item in grounding.grounding_supports:
        assert text[item.segment.start_index : item.segment.end_index].decode() == item.segment.text
        assert item.segment.text
    # The pages that are cited come first, and then the other pages that a search found.
    used = {index for item in grounding.grounding_supports for index in item.grounding_chunk_indices}
    assert used == set(range(len(used)))
    return {chunk.web.uri for chunk in grounding.grounding_chunks[: len(used)]}


class Empty:
    parts = ()


@shelf.needs_shelf
@pytest.mark.parametrize(("dialect", "least"), [("chat", 4), ("responses", 20), ("messages", 12)])
def test_recorded_citations_of_other_dialects_are_grounding_for_google_genai(dialect, least):
    count = 0
    for row in shelf.exchanges(dialect):
        if row["op"] != "generate" or row["status"] != 200 or not isinstance(row.get("response"), dict):
            continue
        urls = list_named_urls(dialect, row["response"])
        if urls:
            count += 1
            body = translate_response(json.dumps(row["response"]).encode(), dialect, "gemini").body
            assert read_by_google([official.whole(body)]) == set(urls), row["id"]
    assert count >= least


@shelf.needs_shelf
@pytest.mark.parametrize(("dialect", "least"), [("responses", 4), ("messages", 9)])
def test_recorded_citations_in_streams_are_grounding_for_google_genai(dialect, least):
    count = 0
    for row in shelf.exchanges(dialect):
        if row["op"] != "generate" or row["status"] != 200 or "sse" not in row:
            continue
        lines = [line[5:] for line in row["sse"].split("\n") if line.startswith("data:") and KINDS[dialect] in line]
        urls = [url for line in lines for url in list_named_urls(dialect, json.loads(line))]
        if urls:
            count += 1
            stream = translate(row["sse"].encode(), dialect, "gemini")
            assert read_by_google(official.chunks(stream)) == set(urls), row["id"]
    assert count >= least
