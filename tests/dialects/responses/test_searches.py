"""Web searches in Responses: read as recorded, written as OpenAI's SDK reads them."""

import json

import pytest
from openai.types.responses import Response as SdkResponse
from openai.types.responses import ResponseFunctionWebSearch

from conformance.recordings import replies
from dragoman.core.parts import FoundPage, Opaque, Search, Text
from dragoman.core.request import Request
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.stream import replay
from dragoman.dialects.responses import DIALECT
from dragoman.dialects.responses.searches import read_web_search
from shelf import needs_shelf

SEARCH = Search(id="ZHJhZ29tYW4xff", queries=("one", "two"), pages=(FoundPage("https://a.org", "A"),))


def read(**item):
    return read_web_search(
        json.dumps({"type": "web_search_call", "id": "ws_1", "status": "completed", **item}).encode(), "/o"
    )


@needs_shelf
def test_every_recorded_search_is_read():
    queries = pages = others = 0
    for recording in replies("responses"):
        if b'"web_search_call"' not in recording.body or recording.streamed:
            continue
        for part in DIALECT.parse_response(recording.body).parts:
            item = json.loads(part.raw) if isinstance(part, Opaque) and part.raw.startswith(b"{") else {}
            if item.get("type") != "web_search_call":
                continue
            action = item.get("action")
            action = action if isinstance(action, dict) else {}
            if action.get("type") != "search":
                others += 1
                assert not isinstance(part, Search)
                continue
            expected = {query for query in [action.get("query"), *(action.get("queries") or ())] if query}
            assert set(part.queries) == expected, recording.id
            assert [page.url for page in part.pages] == [
                one["url"] for one in action.get("sources") or () if "url" in one
            ]
            queries += len(part.queries)
            pages += len(part.pages)
    assert queries > 30
    assert pages > 10
    assert others > 5


@pytest.mark.parametrize(
    "action",
    [
        {"type": "open_page", "url": "u"},
        {"type": "find_in_page", "url": "u", "pattern": "p"},
        {"type": "other"},
        None,
        7,
    ],
)
def test_other_actions_are_no_searches(action):
    assert read(action=action) is None


def test_a_failed_search_is_unavailable_and_unknown_fields_are_kept():
    found = read(
        status="failed", action={"type": "search", "query": "q", "sources": [{"type": "api", "name": "n"}]}, x=1
    )
    assert (found.queries, found.pages, found.error) == (("q",), (), "unavailable")
    assert found.extras.fields == {
        "/action/sources/0/type": b'"api"',
        "/action/sources/0/name": b'"n"',
        "/x": b"1",
        "/id": b'"ws_1"',
    }


def test_the_official_sdk_reads_a_search_of_another_dialect():
    response = Response(
        id="resp_1",
        model="m",
        parts=(SEARCH, Text(text="x")),
        finish=Finish("stop"),
        usage=Usage(input=1, output=1, searches=2),
    )
    body = SdkResponse.model_validate_json(DIALECT.build_response(response, Request(model="m", messages=())))
    search = ResponseFunctionWebSearch.model_validate(body.output[0].model_dump(), strict=True)
    assert (search.id, search.status, search.action.type) == ("ws_ZHJhZ29tYW4xff", "completed", "search")
    assert (search.action.query, search.action.queries) == ("one", ["one", "two"])
    assert [source.url for source in search.action.sources] == ["https://a.org"]
    assert body.tool_usage.web_search.num_requests == 2


def test_a_stream_shows_the_progress_and_the_query_at_the_end():
    encoder = DIALECT.encoder(None)
    response = Response(id="resp_1", model="m", parts=(SEARCH,), finish=Finish("stop"))
    frames = b"".join(map(encoder.feed, replay(response))).decode().split("\n\n")
    events = [json.loads(frame.split("data: ", 1)[1]) for frame in frames if frame]
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[2]["item"]["action"] == {"type": "search"}
    assert events[6]["item"]["action"]["query"] == "one"
    assert {event["item_id"] for event in events[3:6]} == {events[2]["item"]["id"]} == {events[6]["item"]["id"]}
