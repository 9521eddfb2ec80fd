"""Citations of other dialects to Google's metadata, and what the ledger says of both ways."""

import json

import pytest

from dialects.gemini.grounded import GROUNDING, decode, ground, list_citations, reply, spans, sse, support
from dragoman.core.parts import Citation, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.response import Finish, Response
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.gemini import DIALECT
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator


def source(url="https://a.org", title="A", *, start=None, end=None, dialect="chat"):
    return Citation(dialect, b"{}", url=url, title=title, start=start, end=end)


def foreign(*parts, extras=None):
    return Response(id="r", model="m", parts=parts, finish=Finish("stop"), extras=extras)


def build(response):
    return json.loads(DIALECT.build_response(response, None))["candidates"][0]


def encode(response):
    encoder = DIALECT.encoder(None)
    return b"".join(encoder.feed(event) for event in replay(response))


def last_chunk(response):
    frames = encode(response).decode().split("\r\n\r\n")
    assert all("groundingMetadata" not in frame for frame in frames[:-2])
    return json.loads(frames[-2].removeprefix("data: "))["candidates"][0]


def test_citations_with_an_address_become_grounding():
    text = Text(
        text="Grüße. Ja.",
        citations=(
            source(start=0, end=6),
            source("https://b.org", "", start=7, end=10),
            source("https://b.org", "B", start=7, end=10),
            source("https://a.org", "Z", start=7, end=10, dialect="responses"),
            source("https://a.org", start=7, end=10),
            source("", "no address"),
        ),
    )
    assert build(foreign(text)) == {
        "content": {"parts": [{"text": "Grüße. Ja."}], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
        "groundingMetadata": {
            "groundingChunks": [
                {"web": {"uri": "https://a.org", "title": "A"}},
                {"web": {"uri": "https://b.org", "title": "B"}},
            ],
            "groundingSupports": [support(0, 8, "Grüße.", 0), support(9, 12, "Ja.", 1, 0)],
        },
    }
    assert last_chunk(foreign(text))["groundingMetadata"] == build(foreign(text))["groundingMetadata"]


@pytest.mark.parametrize(
    ("start", "end", "result"),
    [(None, None, (0, 4)), (1, None, (2, 4)), (0, 99, (0, 4)), (0, 0, (0, 4)), (3, 1, (0, 4)), (-4, 2, (0, 3))],
)
def test_a_citation_without_a_span_is_about_the_whole_text(start, end, result):
    (written,) = build(foreign(Text(text="éab", citations=(source(start=start, end=end),))))["groundingMetadata"][
        "groundingSupports"
    ]
    assert (written["segment"]["startIndex"], written["segment"]["endIndex"]) == result
    assert written["segment"]["text"] == "éab".encode()[slice(*result)].decode()


SIGNED = Signature("google", "cw==")
A = Text(text="é one. ", citations=(source(),))
B = Text(text="two. ", citations=(source("https://b.org", "B", start=1, end=3),))
PLAIN = Text(text="So: ")
CALLED = ToolCall(id="c", name="f", arguments="{}")
THOUGHT = Reasoning(texts=("Hm.",))


@pytest.mark.parametrize(
    ("parts", "places"),
    [
        ((A, B), [(None, "é one. "), (None, "wo")]),
        ((PLAIN, A, PLAIN, B), [(None, "é one. "), (None, "wo")]),
        ((A, CALLED, PLAIN, B), [(None, "é one. "), (2, "wo")]),
        ((THOUGHT, A), [(1, "é one. ")]),
        ((Text(text="s", signature=SIGNED), A), [(1, "é one. ")]),
        ((CALLED, Refusal(text="no"), PLAIN), None),
        ((Opaque(dialect="chat", raw=b"{}"), A), [(None, "é one. ")]),
        ((ToolCall(id="c", name="f", arguments="{", complete=False), A), [(None, "é one. ")]),
    ],
)
def test_segments_count_bytes_of_the_part_they_name(parts, places):
    for candidate in (build(foreign(*parts)), last_chunk(foreign(*parts))):
        if places is None:
            assert "groundingMetadata" not in candidate
            continue
        segments = [item["segment"] for item in candidate["groundingMetadata"]["groundingSupports"]]
        assert [(segment.get("partIndex"), segment["text"]) for segment in segments] == places
    written = build(foreign(*parts))["content"]["parts"]
    for segment in segments if places else ():
        text = written[segment.get("partIndex", 0)]["text"].encode()
        assert text[segment["startIndex"] : segment["endIndex"]].decode() == segment["text"]


def test_a_text_with_fields_of_its_own_stays_a_part_of_its_own():
    marked = Text(text="m", extras=Extras("gemini", {"/x": b"1"}), citations=(source(),))
    candidate = build(foreign(PLAIN, marked, A))
    assert [part["text"] for part in candidate["content"]["parts"]] == ["So: ", "m", "é one. "]
    segments = [item["segment"] for item in candidate["groundingMetadata"]["groundingSupports"]]
    assert [segment["partIndex"] for segment in segments] == [1, 2]


def test_thoughts_that_follow_each_other_are_one_part_of_a_stream():
    empty = Text(text="")
    signed = Reasoning(texts=("Hm.",), signature=SIGNED)
    for parts, place in (
        ((THOUGHT, THOUGHT, A), 1),
        ((THOUGHT, empty, THOUGHT, A), 1),
        ((signed, THOUGHT, signed, A), 2),
        ((THOUGHT, CALLED, THOUGHT, A), 3),
    ):
        response = foreign(*parts)
        (written,) = last_chunk(response)["groundingMetadata"]["groundingSupports"]
        assert written["segment"]["partIndex"] == place
        assert spans(collect(decode(encode(response)))) == [(0, 7)]


def test_own_citations_are_not_written_and_own_metadata_wins():
    own = Text(text="x", citations=(source(dialect="gemini"),))
    assert "groundingMetadata" not in build(foreign(own))
    assert "groundingMetadata" not in last_chunk(foreign(own))
    both = foreign(Text(text="x", citations=(source(),)), extras=Extras("gemini", {GROUNDING: b'{"a":1}'}))
    assert build(both)["groundingMetadata"] == last_chunk(both)["groundingMetadata"] == {"a": 1}
    assert DIALECT.build_response(both, None).count(b"groundingMetadata") == 1


def test_what_was_written_reads_back():
    response = foreign(PLAIN, A, CALLED, B)
    again = DIALECT.parse_response(DIALECT.build_response(response, None))
    assert list_citations(again) == [("é one. ", "https://a.org"), ("wo", "https://b.org")]
    assert list_citations(collect(decode(encode(foreign(PLAIN, A, B))))) == [
        ("é one. ", "https://a.org"),
        ("wo", "https://b.org"),
    ]


FULL = reply(
    "x y",
    **ground(
        {**support(0, 1, "x", 0, 2), "confidenceScores": [0.5]},
        chunks=[
            {"web": {"uri": "https://a.org", "title": "A", "domain": "a.org"}},
            {"web": {"uri": "https://b.org"}},
            {"retrievedContext": {"title": "T"}},
        ],
        webSearchQueries=["q"],
        searchEntryPoint={"renderedContent": "<b>"},
    ),
    citationMetadata={"citations": [{"uri": "https://c.org", "endIndex": 1, "license": "mit"}, {"endIndex": 2}]},
)


@pytest.mark.parametrize(("client", "has_searches"), [("chat", False), ("responses", True), ("messages", True)])
def test_grounding_in_citations_and_searches_is_no_loss_and_the_rest_is(client, has_searches):
    whole = translate_response(json.dumps(FULL).encode(), "gemini", client)
    translator = StreamTranslator("gemini", client)
    translator.feed(sse(reply("x ", finishReason=None), {**FULL, "candidates": [{**FULL["candidates"][0]}]}))
    translator.close()
    for losses in (whole.losses, translator.losses):
        found = [(loss.where.removeprefix("/candidates/0/"), loss.kind) for loss in losses]
        search = {"groundingMetadata/groundingChunks/1/web/uri", "groundingMetadata/webSearchQueries/0"}
        assert found == [row for row in EVERY_LOSS if not (has_searches and row[0] in search)]


EVERY_LOSS = [
    ("citationMetadata/citations/0/license", "dropped"),
    ("citationMetadata/citations/1/endIndex", "dropped"),
    ("groundingMetadata/groundingChunks/0/web/domain", "dropped"),
    ("groundingMetadata/groundingChunks/1/web/uri", "dropped"),
    ("groundingMetadata/groundingChunks/2/retrievedContext/title", "dropped"),
    ("groundingMetadata/groundingSupports/0/confidenceScores/0", "dropped"),
    ("groundingMetadata/groundingSupports/0/groundingChunkIndices/1", "dropped"),
    ("groundingMetadata/searchEntryPoint/renderedContent", "dropped"),
    ("groundingMetadata/webSearchQueries/0", "dropped"),
]


def test_metadata_that_citations_cover_completely_is_no_loss():
    body = json.dumps(reply("x", **ground(support(0, 1, "x", 0, 1)))).encode()
    assert translate_response(body, "gemini", "responses").losses == ()


def test_a_source_without_an_address_is_lost_on_the_way_to_gemini():
    block = {
        "type": "text",
        "text": "x",
        "citations": [{"type": "char_location", "cited_text": "w", "document_index": 0}],
    }
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = json.dumps({**message, "content": [block], "usage": usage}).encode()
    translated = translate_response(body, "messages", "gemini")
    assert b"groundingMetadata" not in translated.body
    assert "the client's dialect cannot express this citation" in {loss.what for loss in translated.losses}
