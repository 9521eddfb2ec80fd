"""Web searches that Google ran together with functions of the client, whole and streamed."""

import json

import pytest

from dragoman.core.parts import Search, Text, ToolCall
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from interpreter.test_searches import declare, decode, flow, list_queries, list_searches, parse

CALLED = {
    "toolCall": {
        "toolType": "GOOGLE_SEARCH_WEB",
        "id": "abcd1234",
        "args": {"queries": ["deep fjords", "fjord depth"]},
    },
    "thoughtSignature": "c2lnbmVk",
}
RETURNED = {
    "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "abcd1234", "response": {"search_suggestions": "x"}}
}
FOUND = {
    "webSearchQueries": ["deep fjords", "fjord depth"],
    "groundingChunks": [{"web": {"uri": f"https://{name}.org", "title": name}} for name in "ab"],
    "groundingSupports": [{"segment": {"endIndex": 4, "text": "Deep"}, "groundingChunkIndices": [0]}],
}


def build_chunk(*parts, **members):
    return {"candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **members}], "responseId": "r"}


def stream_chunks(*chunks):
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)


CALL = {"functionCall": {"name": "save", "args": {"depth": 1303}}}
GROUNDED_TEXT = [{"text": "Deep."}, {"groundingMetadata": FOUND}]


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize(("rest", "metadata"), [(CALL, {}), GROUNDED_TEXT], ids=["call", "text"])
def test_a_search_of_gemini_with_functions_comes_before_what_follows_it(client, rest, metadata):
    """Google sends no metadata if the answer is a call, and else at the end of the stream."""
    chunks = [build_chunk(CALLED), build_chunk(RETURNED), build_chunk(rest, finishReason="STOP", **metadata)]
    streamed = decode(client, flow("gemini", client, stream_chunks(*chunks), context=declare(client))).parts
    body = json.dumps(build_chunk(CALLED, RETURNED, rest, finishReason="STOP", **metadata)).encode()
    whole = parse(client, translate_response(body, "gemini", client, declare(client)).body).parts
    for parts in (whole, streamed):
        assert "; ".join(list_queries(parts)) == "deep fjords; fjord depth"
        assert next(type(part) for part in parts if isinstance(part, Search | Text | ToolCall)) is Search
        assert isinstance(parts[-1], Text if metadata else ToolCall)
        pages = [page.url for search in list_searches(parts) for page in search.pages]
        is_late = parts is streamed and client == "responses"
        assert pages == (["https://a.org", "https://b.org"] if metadata and not is_late else [])


def test_pages_that_come_after_their_search_was_sent_are_reported():
    chunks = [build_chunk(CALLED), build_chunk({"text": "Deep."}, finishReason="STOP", groundingMetadata=FOUND)]
    translator = StreamTranslator("gemini", "responses", declare("responses"))
    translator.feed(stream_chunks(*chunks))
    translator.close()
    lost = {loss.where for loss in translator.losses if "groundingMetadata" in loss.where}
    assert lost == {f"/candidates/0/groundingMetadata/groundingChunks/1/web/{name}" for name in ("uri", "title")}
