"""Web searches in Messages: read as recorded and documented, written as Anthropic's SDK reads them."""

import json

import pytest
from anthropic.types import Message

from conformance.recordings import replies
from dragoman.core.parts import FoundPage, Search, Text
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import collect, replay
from dragoman.dialects.messages import DIALECT
from dragoman.dialects.messages.searches import read_web_search, write_web_search
from shelf import needs_shelf

PAGES = (FoundPage("https://a.org", "A", "May 1", "An excerpt."), FoundPage("https://b.org"))
SEARCH = Search(id="ZHJhZ29tYW4xff", queries=("one", "two"), pages=PAGES)


def read(block):
    return read_web_search(json.dumps(block).encode(), "/content/0")


def build(*parts, **usage):
    response = Response(id="m", model="m", parts=parts, finish=Finish("stop"), usage=Usage(input=1, output=1, **usage))
    return DIALECT.build_response(response, None)


@needs_shelf
def test_every_recorded_search_is_read():
    queries, pages = 0, 0
    for recording in replies("messages"):
        if b"web_search_tool_result" not in recording.body or recording.streamed:
            continue
        found = [part for part in DIALECT.parse_response(recording.body).parts if isinstance(part, Search)]
        assert found, recording.id
        for part in found:
            block = json.loads(part.raw)
            if part.step == "call":
                assert (part.id, part.queries) == (block["id"], (block["input"]["query"],))
                queries += 1
            elif isinstance(block["content"], list):
                assert [(page.url, page.title) for page in part.pages] == [
                    (item["url"], item["title"]) for item in block["content"]
                ]
                pages += len(part.pages)
    assert queries > 10
    assert pages > 50


@needs_shelf
def test_the_query_of_a_streamed_search_is_read_from_its_deltas():
    (body,) = (recording.body for recording in replies("messages") if recording.id == "anthropic/chatlas-0003")
    decoder = DIALECT.decoder()
    parts = collect([*decoder.feed(body), *decoder.close()]).parts
    call, results = parts[:2]
    assert (call.step, call.queries) == ("call", ("ggplot2 1.0.0 CRAN release date",))
    assert (results.step, results.id, len(results.pages)) == ("results", call.id, 10)


@pytest.mark.parametrize(
    "code",
    [
        "invalid_tool_input",
        "unavailable",
        "max_uses_exceeded",
        "too_many_requests",
        "query_too_long",
        "request_too_large",
    ],
)
def test_a_failed_search_has_its_error(code):
    content = {"type": "web_search_tool_result_error", "error_code": code}
    found = read({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content})
    assert (found.step, found.error, found.pages) == ("results", code, ())
    again = json.loads(build(Search(id="x", queries=("q",), error=code)))["content"]
    assert again[1]["content"] == content


@pytest.mark.parametrize(
    "block",
    [
        {"type": "server_tool_use", "name": "web_fetch", "id": "srvtoolu_1", "input": {"url": "web_search"}},
        {"type": "server_tool_use", "name": "web_search", "id": 7, "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": "text"},
        {"type": "web_search_tool_result", "content": []},
    ],
)
def test_any_other_block_is_no_search(block):
    assert read(block) is None


def test_odd_results_are_no_pages_but_stay_in_the_block():
    content = [7, None, {"url": 3}, {"url": "https://a.org", "title": 5}, []]
    found = read({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content})
    assert [page.url for page in found.pages] == ["https://a.org"]
    assert json.loads(found.raw)["content"] == content


def test_the_official_sdk_reads_a_search_of_another_dialect():
    message = Message.model_validate_json(build(SEARCH, Text(text="x"), searches=2), strict=True)
    call, results, text = message.content
    assert (call.type, call.name, call.input) == ("server_tool_use", "web_search", {"query": "one; two"})
    assert results.tool_use_id == call.id == "srvtoolu_ZHJhZ29tYW4xff"
    assert [(page.url, page.title, page.page_age) for page in results.content] == [
        ("https://a.org", "A", "May 1"),
        ("https://b.org", "https://b.org", None),
    ]
    assert text.text == "x"
    assert message.usage.server_tool_use.web_search_requests == 2


def test_a_stream_has_the_query_in_a_delta_and_the_same_blocks():
    response = Response(id="m", model="m", parts=(SEARCH,), finish=Finish("stop"))
    encoder = DIALECT.encoder(None)
    stream = b"".join(encoder.feed(event) for event in replay(response))
    assert b'"input":{}' in stream
    decoder = DIALECT.decoder()
    parts = collect([*decoder.feed(stream), *decoder.close()]).parts
    assert [json.loads(part.raw) for part in parts] == [json.loads(bytes(block)) for block in write_web_search(SEARCH)]


def test_the_excerpt_of_a_page_comes_back_with_the_history():
    call, results = map(bytes, write_web_search(SEARCH))
    assert read_web_search(call, "").queries == ("one; two",)
    first, second = read_web_search(results, "/x").pages
    assert (first.excerpt, second.excerpt) == ("An excerpt.", "")
    damaged = results.replace(b"ZHJhZ29tYW4x", b"ZHJhZ29tYW4x!")
    assert next(page.excerpt for page in read_web_search(damaged, "").pages) == ""
