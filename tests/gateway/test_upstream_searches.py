"""Web searches that the upstream runs, as each vendor's SDK reads them, whole and streamed; and the turns after them."""

import json
from itertools import pairwise

import pytest

from dragoman.simulator import Answer
from dragoman.simulator.apis.conversation import AnswerSource
from dragoman.simulator.runner import in_thread
from server.agents import Client
from server.conftest import run_server_gateway

UPSTREAMS = {"gem": "contents", "claude": "messages", "resp": "input", "finder": "messages"}
"""The member of a request that has the history, by model; "finder" is a search model of Chat."""
DECLARED = {
    "chat": {"web_search_options": {}},
    "responses": {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]},
    "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "gemini": {"tools": [{"google_search": {}}]},
}
ROME, ETNA = "https://a.example.org/rom", "https://b.example.org/ätna"
TEXT = "Grüße 🌋 aus Rom. Der Ätna raucht. Ende."
CITED = [("Grüße 🌋 aus Rom.", ROME, "Röm"), ("Der Ätna raucht.", ETNA, "Ätna")]
SOURCES = tuple(AnswerSource(url=url, title=title, quote=quote) for quote, url, title in CITED)
STRICT = {"x-dragoman-strict": "true"}


def write_script(received):
    asked = [turn.text for turn in received.request.turns if turn.role == "user"]
    if not asked[-1].startswith("search"):
        return Answer(text="ok")
    return Answer(text=TEXT + asked[-1].removeprefix("search"), query="wetter rom", sources=SOURCES)


@pytest.fixture(scope="module")
def gateway():
    models = {"finder": ("openai/gpt-5-search-api",), "old-claude": ("anthropic/claude-sonnet-4",)}
    with in_thread(script=write_script) as simulator, run_server_gateway(simulator, models=models) as opened:
        yield opened


def ask(client, prompt, tools=()):
    declared = json.loads(json.dumps(DECLARED[client.dialect]))
    if tools:
        declared["tools"] += tools
    return client.ask(prompt, headers=STRICT, **declared)


def list_citations(dialect, raw):
    """The cited text, URL and title of each citation, as a user of the SDK reads them."""
    match dialect:
        case "chat":
            message = raw.choices[0].message
            found = [
                one["url_citation"] if isinstance(one, dict) else vars(one.url_citation) for one in message.annotations
            ]
            return [(message.content[one["start_index"] : one["end_index"]], one["url"], one["title"]) for one in found]
        case "responses":
            (part,) = next(item for item in raw.output if item.type == "message").content
            return [(part.text[one.start_index : one.end_index], one.url, one.title) for one in part.annotations]
        case "messages":
            blocks = [block for block in raw.content if block.type == "text"]
            return [(block.text, one.url, one.title) for block in blocks for one in block.citations or ()]
        case _:
            metadata = find_grounding(raw)
            text = "".join(chunk.text or "" for chunk in raw).encode()
            pages = [chunk.web for chunk in metadata.grounding_chunks]
            return [
                (
                    text[support.segment.start_index or 0 : support.segment.end_index].decode(),
                    pages[number].uri,
                    pages[number].title,
                )
                for support in metadata.grounding_supports
                for number in support.grounding_chunk_indices
            ]


def find_grounding(raw):
    found = [chunk.candidates[0].grounding_metadata for chunk in raw]
    return next(one for one in reversed(found) if one is not None and one.grounding_chunks)


def list_searches(dialect, raw):
    """The query of each search, and the URLs of its pages; a reply of Chat has none."""
    match dialect:
        case "responses":
            calls = [item for item in raw.output if item.type == "web_search_call"]
            assert raw.tool_usage.web_search.num_requests == len(calls)
            return [(call.action.query, [source.url for source in call.action.sources or ()]) for call in calls]
        case "messages":
            calls = [block for block in raw.content if block.type == "server_tool_use"]
            results = {block.tool_use_id: block for block in raw.content if block.type == "web_search_tool_result"}
            assert raw.usage.server_tool_use.web_search_requests == len(calls) == len(results)
            return [(call.input["query"], [page.url for page in results[call.id].content]) for call in calls]
        case "gemini":
            metadata = find_grounding(raw)
            queries = metadata.web_search_queries or [""]
            return [(query, [chunk.web.uri for chunk in metadata.grounding_chunks]) for query in queries]
        case _:
            return []


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
DEFERRED = {
    "messages": [
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        {"name": "late", "input_schema": SCHEMA, "defer_loading": True},
    ],
    "responses": [
        {"type": "tool_search"},
        {"type": "function", "name": "late", "parameters": SCHEMA, "defer_loading": True},
    ],
}
"""Deferred tools, which the gateway searches itself."""
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@STREAMS
@pytest.mark.parametrize(
    ("dialect", "is_deferring"),
    [*((dialect, False) for dialect in DECLARED), *((dialect, True) for dialect in DEFERRED)],
)
def test_every_client_gets_the_search_of_every_upstream_in_its_own_form(gateway, dialect, is_deferring, stream):
    for model in (*UPSTREAMS, "old-claude") if is_deferring else UPSTREAMS:
        client = Client(gateway, dialect, stream=stream, model=model)
        reply = ask(client, "search", DEFERRED[dialect] if is_deferring else ())
        assert reply.text == TEXT, model
        # Blank space before or after a cited text belongs to one of the blocks around it.
        found = [(text.strip(), url, title) for text, url, title in list_citations(dialect, reply.raw)]
        assert found == CITED, model
        # Chat does not report queries.
        query = "" if model == "finder" else "wetter rom"
        # Beside functions, Google sends its search when it runs, and the pages at the end.
        is_early = is_deferring and (dialect, model) == ("responses", "gem")
        pages = [] if is_early else [ROME, ETNA]
        assert list_searches(dialect, reply.raw) == [(query, pages)] * (dialect != "chat"), model


def list_turns(request, member):
    """The history of a request without cache marks, for which a text becomes a block."""

    def simplify(value):
        match value:
            case [{"type": "text", "text": text, **more}] if not more.keys() - {"cache_control"}:
                return text
            case list():
                return [simplify(one) for one in value]
            case dict():
                return {name: simplify(one) for name, one in value.items() if name != "cache_control"}
            case _:
                return value

    return simplify(json.loads(request.body)[member])


@STREAMS
@pytest.mark.parametrize("dialect", DECLARED)
def test_the_turns_after_a_search_are_accepted_and_start_with_the_one_before(gateway, dialect, stream):
    for model, member in UPSTREAMS.items():
        client = Client(gateway, dialect, stream=stream, model=model)
        turns = []
        for prompt in ("search", "why?", "search again", "and then?"):
            ask(client, prompt)
            turns.append(list_turns(gateway.simulator.requests[-1], member))
        for before, after in pairwise(turns):
            assert after[: len(before)] == before, model
            assert len(after) > len(before), model


@pytest.mark.slow
def test_a_search_of_another_vendor_in_the_history_is_accepted_by_every_vendor(gateway):
    for dialect in DECLARED:
        for first in UPSTREAMS:
            client = Client(gateway, dialect, stream=True, model=first)
            ask(client, "search")
            for client.model in UPSTREAMS:
                assert client.ask("why?").text == "ok", (dialect, first, client.model)
