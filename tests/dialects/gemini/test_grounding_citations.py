"""Google's metadata to citations, whole and streamed: bytes to characters, each on the text it is about."""

import json

import pytest

import shelf
from dialects.gemini.grounded import (
    CALL,
    GROUNDING,
    WEB,
    decode,
    ground,
    list_citations,
    parse,
    reply,
    spans,
    sse,
    streams_with_sources,
    support,
    with_sources,
)
from dragoman.core.events import Native, PartCited, PartEnded, PartStarted
from dragoman.core.parts import Citation, Text, ToolCall
from dragoman.core.stream import collect, replay
from dragoman.dialects.gemini import DIALECT
from dragoman.dialects.gemini.grounding import CITATION_FIELD, SourceReader
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator


def test_supports_are_citations_on_the_text_they_are_about():
    response = parse("Blue sky. Wet sea.", **ground(support(0, 9, "Blue sky.", 0, 1), support(10, 18, "Wet sea.", 1)))
    (text,) = response.parts
    where = f"{GROUNDING}/groundingSupports/1"
    assert [(item.url, item.title, item.quote, item.start, item.end) for item in text.citations] == [
        ("https://a.org", "A", "Blue sky.", 0, 9),
        ("https://b.org", "", "Blue sky.", 0, 9),
        ("https://b.org", "", "Wet sea.", 10, 18),
    ]
    assert text.citations[2].places == (
        f"{where}/segment/startIndex",
        f"{where}/segment/endIndex",
        f"{where}/segment/text",
        f"{where}/groundingChunkIndices/0",
        f"{GROUNDING}/groundingChunks/1/web/uri",
    )


@pytest.mark.parametrize("text", ["Ça coûte 5 €. Fin.", "😀😀 ok. Zürich — 東京 ist groß.", "é", "ascii only"])
def test_byte_offsets_become_character_offsets(text):
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            first, last = len(text[:start].encode()), len(text[:end].encode())
            response = parse(text, **ground(support(first, last, text[start:end], 0)))
            assert spans(response) == [(start, end)]
            bare = {"citationSources": [{"uri": "https://c.org", "startIndex": first, "endIndex": last}]}
            response = parse(text, citationMetadata=bare)
            assert spans(response) == [(start, end)]
            assert response.parts[0].citations[0].quote == text[start:end]


@pytest.mark.parametrize(
    ("start", "end", "result"),
    [
        (1, 2, [(0, 0)]),  # inside a character
        (0, 99, [(0, 3)]),
        (50, 99, [(3, 3)]),
        (3, 1, [(1, 1)]),
        (None, 3, [(0, 1)]),
        (3, None, [(1, 1)]),
        (None, None, [(None, None)]),
        (-5, 2, []),
    ],
)
def test_spans_that_cannot_be_are_clamped(start, end, result):
    segment = {"startIndex": start, "endIndex": end}
    response = parse("€uro"[:3], **ground({"segment": segment, "groundingChunkIndices": [0]}))
    assert spans(response) == result


def test_the_cited_text_has_precedence_over_offsets():
    text = "one two one two one"
    one_off = [support(9, 12, "one", 0), support(5, 8, "two", 0), support(3, 6, "one", 1), support(1, 4, "no such", 1)]
    assert spans(parse(text, **ground(*one_off))) == [(8, 11), (4, 7), (0, 3), (1, 4)]


def test_a_part_is_named_by_its_number_among_those_that_were_sent():
    parts = [{"text": "Hm.", "thought": True}, "é one. ", "two. ", CALL, "three"]
    supports = [
        support(0, 7, "é one.", 0, partIndex=1),
        support(0, 4, "two.", 0, partIndex=2),
        support(0, 5, "three", 1, partIndex=4),
        support(2, 6, "hree", 1, partIndex=9),
    ]
    first, call, second = parse(*parts, **ground(*supports)).parts[1:]
    assert isinstance(call, ToolCall)
    assert [(first.text[item.start : item.end], item.url) for item in first.citations] == [
        ("é one.", "https://a.org"),
        ("two.", "https://a.org"),
    ]
    assert [second.text[item.start : item.end] for item in second.citations] == ["three"]


def test_without_a_part_index_offsets_count_the_whole_text():
    parts = [{"toolCall": {"id": "x"}}, {"text": "Hm.", "thought": True}, "é one. ", CALL, "two"]
    first, second = (
        part
        for part in parse(*parts, **ground(support(0, 7, "é one.", 0), support(8, 11, "two", 1))).parts
        if isinstance(part, Text)
    )
    assert [(item.start, item.end, item.url) for item in first.citations] == [(0, 6, "https://a.org")]
    assert [(item.start, item.end, item.url) for item in second.citations] == [(0, 3, "https://b.org")]


@pytest.mark.parametrize("word", ["web", "retrievedContext", "maps"])
def test_what_has_an_address_is_a_source(word):
    chunks = [{word: {"uri": "https://a.org", "title": "A", "more": 1}}]
    response = parse("x", **ground(support(0, 1, "x", 0), chunks=chunks))
    assert list_citations(response) == [("x", "https://a.org")]


def test_sources_without_a_url_are_sent_only_in_the_same_dialect():
    chunks = [
        {"retrievedContext": {"title": "T", "text": "t"}},
        {"web": {"uri": ""}},
        {},
        {"image": {"sourceUri": "u"}},
    ]
    body = reply("x", **ground(support(0, 1, "x", 0, 1, 2, 3, 4, -1), chunks=chunks))
    response = DIALECT.parse_response(json.dumps(body).encode())
    assert response.parts == (Text(text="x"),)
    assert json.loads(DIALECT.build_response(response, None)) == body


@pytest.mark.parametrize("name", ["citations", "citationSources"])
def test_pages_an_answer_repeats_are_citations_too(name):
    sources = [
        {"uri": "https://c.org", "title": "C", "startIndex": 3, "endIndex": 5, "license": "mit"},
        {"startIndex": 0, "endIndex": 1},
        {"uri": "https://c.org"},
        {"uri": "https://c.org"},
        {"uri": ""},
    ]
    (text,) = parse("€abcd", citationMetadata={name: sources}).parts
    where = f"/candidates/0/citationMetadata/{name}"
    assert text.citations == (
        Citation(
            "gemini",
            b"",
            "https://c.org",
            "C",
            "ab",
            1,
            3,
            tuple(f"{where}/0/{member}" for member in ("uri", "title", "startIndex", "endIndex")),
        ),
        Citation("gemini", b"", "https://c.org", places=(f"{where}/2/uri", f"{where}/3/uri")),
    )


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        7,
        None,
        [1],
        {"groundingChunks": None, "groundingSupports": None},
        {"groundingChunks": [None], "groundingSupports": [{"groundingChunkIndices": [0]}]},
        {"groundingChunks": WEB, "groundingSupports": [{"groundingChunkIndices": ["0"], "segment": {}}]},
        {"groundingChunks": WEB, "groundingSupports": [{"segment": {"startIndex": 1}}, {}]},
        {"citations": 1, "citationSources": [{"uri": 3}]},
    ],
)
def test_odd_metadata_has_no_citations_and_survives_a_round_trip(metadata):
    body = reply("x", groundingMetadata=metadata, citationMetadata=metadata)
    response = DIALECT.parse_response(json.dumps(body).encode())
    assert response.parts == (Text(text="x"),)
    assert json.loads(DIALECT.build_response(response, None)) == body
    again = collect(decode(sse(reply("x", finishReason=None), body, body)))
    assert again.parts == (Text(text="xxx"),)


def test_snake_case_is_read_and_only_what_no_citation_has_is_a_loss():
    segment = {"start_index": 0, "end_index": 1, "text": "x"}
    metadata = {
        "grounding_chunks": WEB,
        "grounding_supports": [{"segment": segment, "grounding_chunk_indices": [0]}],
    }
    body = json.dumps(reply("x", grounding_metadata=metadata)).encode()
    assert list_citations(DIALECT.parse_response(body)) == [("x", "https://a.org")]
    losses = [loss.where for loss in translate_response(body, "gemini", "chat").losses]
    assert losses == ["/candidates/0/grounding_metadata/grounding_chunks/1/web/uri"]


def test_metadata_is_rendered_back_once_and_unchanged():
    body = reply("x y", **ground(support(0, 1, "x", 0), webSearchQueries=["q"]), citationMetadata={"citations": []})
    response = DIALECT.parse_response(json.dumps(body).encode())
    written = DIALECT.build_response(response, None)
    assert json.loads(written) == body
    assert written.count(b"groundingMetadata") == 1
    encoder = DIALECT.encoder(None)
    stream = b"".join(encoder.feed(event) for event in replay(response))
    assert stream.count(b"groundingMetadata") == 1
    assert collect(decode(stream)) == response


def test_a_streamed_text_names_its_sources_before_it_ends():
    body = decode(
        sse(
            reply("Bl", finishReason=None),
            reply("ü", finishReason=None),
            reply("e sky", finishReason=None),
            reply("", **ground(support(5, 9, " sky", 1))),
        )
    )
    kinds = [type(event) for event in body if isinstance(event, PartStarted | PartCited | PartEnded | Native)]
    assert kinds == [PartStarted, PartCited, PartEnded, Native]
    assert list_citations(collect(body)) == [(" sky", "https://b.org")]


def test_a_text_that_is_over_cites_nothing_more():
    late = ground(support(0, 3, "one", 0), support(3, 6, "two", 1))
    stream = sse(reply("one", finishReason=None), reply(CALL, finishReason=None), reply("two", **late))
    response = collect(decode(stream))
    assert list_citations(response) == [("two", "https://b.org")]
    translator = StreamTranslator("gemini", "chat")
    translator.feed(stream)
    translator.close()
    dropped = {loss.where.removeprefix(GROUNDING) for loss in translator.losses if loss.kind == "dropped"}
    assert dropped == {
        "/groundingChunks/0/web/title",
        "/groundingChunks/0/web/uri",
        "/groundingSupports/0/groundingChunkIndices/0",
        "/groundingSupports/0/segment/endIndex",
        "/groundingSupports/0/segment/startIndex",
        "/groundingSupports/0/segment/text",
    }
    assert list_citations(parse("one", CALL, "two", **late)) == [("one", "https://a.org"), ("two", "https://b.org")]


def test_parts_of_a_stream_are_counted_as_they_are_put_together():
    thought = {"text": "Hm.", "thought": True}
    last = ground(support(0, 3, "a b", 0, partIndex=1), support(4, 5, "b", 1, partIndex=7))
    stream = sse(
        reply(thought, finishReason=None), reply(thought, finishReason=None), reply("a"), reply(" b b", **last)
    )
    assert spans(collect(decode(stream))) == [(0, 3), (4, 5)]


def test_metadata_of_several_chunks_is_put_together():
    first = {"citations": [{"uri": "https://c.org", "endIndex": 1}]}
    second = {"citations": [{"uri": "https://d.org", "startIndex": 1, "endIndex": 2}]}
    searched = {"groundingMetadata": {"webSearchQueries": ["q"]}}
    stream = sse(
        reply("a", citationMetadata=first, **searched),
        reply("b", citationMetadata=second, **ground(support(0, 2, "ab", 0))),
        reply("", citationMetadata={"citations": first["citations"] + second["citations"]}),
    )
    response = collect(decode(stream))
    assert list_citations(response) == [("ab", "https://a.org"), ("a", "https://c.org"), ("b", "https://d.org")]
    kept = {name: json.loads(raw) for name, raw in response.extras.fields.items()}
    assert kept["/candidates/0/citationMetadata"]["citations"] == first["citations"] + second["citations"]
    assert kept[GROUNDING] == {**searched["groundingMetadata"], **ground(support(0, 2, "ab", 0))["groundingMetadata"]}


@shelf.needs_shelf
def test_recorded_cited_text_is_found_at_googles_offsets():
    count = 0
    for name, body in with_sources():
        for part in DIALECT.parse_response(body).parts:
            for citation in getattr(part, "citations", ()):
                if citation.start is not None:
                    count += 1
                    assert part.text[citation.start : citation.end] == citation.quote, name
    for name, stream in streams_with_sources():
        for part in collect(decode(stream, 7)).parts:
            for citation in getattr(part, "citations", ()):
                count += 1
                assert part.text[citation.start : citation.end] == citation.quote, name
    assert count >= 190


@shelf.needs_shelf
@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_recorded_reply_cut_into_chunks_cites_the_same(size):
    count = 0
    for name, body in with_sources():
        document = json.loads(body)
        candidate = document["candidates"][0]
        chunks = []
        for part in candidate["content"]["parts"]:
            if set(part) == {"text"}:
                text = part["text"]
                pieces = [{"text": text[at : at + size]} for at in range(0, len(text), size)]
            else:
                pieces = [part]
            chunks.extend({"candidates": [{"content": {"parts": [piece], "role": "model"}}]} for piece in pieces)
        last = {**candidate, "content": {"parts": [{"text": ""}], "role": "model"}}
        stream = sse(*chunks, {**document, "candidates": [last]})
        whole, streamed = DIALECT.parse_response(body), collect(decode(stream))
        assert (streamed.parts, streamed.extras) == (whole.parts, whole.extras), name
        count += 1
    assert count >= 30


class CountedList(list):
    """A list that counts the items an iteration visits. A slice copies only its own items and is not counted."""

    visited = 0

    def __iter__(self):
        for item in super().__iter__():
            self.visited += 1
            yield item


class CountedDict(dict):
    """A dict that counts the keys an iteration visits, from either end."""

    visited = 0

    def __iter__(self):
        for key in super().__iter__():
            self.visited += 1
            yield key

    def __reversed__(self):
        for key in super().__reversed__():
            self.visited += 1
            yield key


def test_the_end_of_a_text_does_not_visit_earlier_texts_again():
    pieces, starts = CountedList(), CountedDict()
    reader = SourceReader(pieces, starts, [])
    for index in range(100):
        starts[index] = len(pieces)
        pieces.append("word")
        reader.add(CITATION_FIELD, b'{"citations":[{"uri":"https://a.org/%d","startIndex":%d}]}' % (index, 4 * index))
        [citation] = reader.build_citations(index, last=False)
        assert citation.url == f"https://a.org/{index}"
    assert pieces.visited <= 100
    assert starts.visited <= 100
