"""Real programs search the web: with the upstream's own search, or with the gateway's where the upstream has none."""

import json
import re

import pytest

from dragoman.http.server import run_in_thread
from dragoman.simulator import Answer, Call
from dragoman.simulator.apis.conversation import AnswerSource
from gateway.searxng import Searxng, answer, result, serve_searxng
from real_clients import launch
from real_clients.test_interactive import answer_first_questions, claude_code, leave

pytestmark = pytest.mark.slow
QUERY = "deepest fjord"
PAGES = {
    "https://www.example.org/fjords-of-norway": "Fjords of Norway",
    "https://www.example.org/sognefjord": "Sognefjord — “King of the Fjords”",
}
LINKS = " and ".join(f"[{title}]({url})" for url, title in PAGES.items())
QUOTES = ("Sognefjord (“Sognefjorden”) is the deepest", "it is 1303 m deep")
"""What the answer of an upstream that searches says by each of the pages, after characters of several bytes."""
TEXT = f"According to the map, {QUOTES[0]}: {QUOTES[1]}."
NO_SEARCH = "I have no web search."
DECLARED = {
    "gemini": '{"googleSearch": {}}',
    "gemini-2.5": '{"googleSearch": {}}',
    "anthropic": '"web_search_20250305"',
    "responses": '{"type": "web_search"',
}
"""What a request has for an upstream's own search."""
SEARCHES = ("gemini", "responses", "anthropic", "searxng", "model")
"""The upstreams that search, and the two backends of the gateway, which are used with a Chat upstream."""


class SearchingModel:
    """Calls the client's search tool, or else searches, and in the end repeats what that tool returned."""

    def __init__(self, tool=""):
        self._tool = tool
        self.shown = ""
        """The result of the client's tool."""

    def __call__(self, received):
        kinds = {tool.name: tool.kind for tool in received.request.tools}
        results = [result for turn in received.request.turns for result in turn.results]
        if self._tool and self._tool in kinds:
            self.shown = next((one.text for one in results if one.name == self._tool), "")
            return Answer(text=f"The tool says: {self.shown}") if self.shown else _call(self._tool, QUERY)
        if self._tool and "ToolSearch" in kinds:
            return _call("ToolSearch", f"select:{self._tool}")
        if "search" in kinds.values():
            pages = (
                AnswerSource(url=url, title=PAGES[url], quote=quote) for url, quote in zip(PAGES, QUOTES, strict=True)
            )
            return Answer(text=TEXT, query=QUERY, sources=tuple(pages))
        if "web_search" in kinds:
            return Answer(text=f"It says so in {LINKS}.") if results else _call("web_search", QUERY)
        return Answer(text=NO_SEARCH)


def _call(name, query):
    return Answer(calls=(Call(id=f"call_{name}", name=name, arguments={"query": query}),), end="calls")


@pytest.fixture
def searching(stage):
    """Set the stage with a model and one of `SEARCHES`, or another upstream."""
    server = Searxng(answer(*(result(url, title, "1303 m") for url, title in PAGES.items())))
    with run_in_thread(lambda: serve_searxng(server), "searxng") as url:
        backends = {"searxng": f'backend = "{url}"', "model": 'backend = "model"\nmodel = "searching-model"'}

        def start(search, model, **models):
            if search not in backends:
                return stage({"*": search, **models}, model)
            models |= {"searching-model": "gemini"} if search == "model" else {}
            return stage({"*": "chat", **models}, model, f"[search]\n{backends[search]}\n")

        yield start
        assert [query["q"] for query in server.queries] in ([], [[QUERY]])


def assert_upstream_searched(sandbox, search):
    """An upstream that searches was asked to; one that cannot got the pages as the result of a function."""
    posted = [one for one in sandbox.simulator.requests if one.method == "POST"]
    bodies = [(one.api, json.dumps(one.json(), ensure_ascii=False)) for one in posted]
    native = DECLARED.get("gemini" if search == "model" else search)
    assert native is None or any(native in body for _, body in bodies)
    if search not in DECLARED:
        results = next(body for api, body in bodies if api == "chat" and "was written by others" in body)
        assert all(url in results for url in PAGES)


def find_links(text):
    """Return the pages that Claude Code or Gemini CLI lists in the result of its search tool, with their titles."""
    if "Links: " in text:
        listed = json.loads(text.partition("Links: ")[2].splitlines()[0])
        return {page["url"]: page["title"] for page in listed}
    return {url: title for title, url in re.findall(r"^\[\d+\] (.*) \((.*?)\)$", text, re.MULTILINE)}


@pytest.mark.parametrize("name", ["gemini-3-flash", "claude-opus-4-8"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("search", [*SEARCHES, "gemini-2.5"])
def test_claude_code_lists_the_pages(programs, searching, search, name):
    model = SearchingModel("WebSearch")
    sandbox = searching(search, model)
    printed = launch.claude_code(sandbox, programs, "Which fjord is the deepest?", model=name)
    assert f'Web search results for query: "{QUERY}"' in printed
    assert find_links(printed) == PAGES
    assert (TEXT if search in DECLARED else LINKS) in printed
    assert_upstream_searched(sandbox, search)


@pytest.mark.parametrize("search", [*SEARCHES, "chat"])
def test_claude_code_shows_that_it_has_searched(programs, searching, search):
    """On its screen: the count is of the search blocks. Without any search it says so, and so does the model."""
    model = SearchingModel("WebSearch")
    sandbox = searching(search, model)
    with claude_code(sandbox, programs) as screen:
        answer_first_questions(screen)
        screen.type("Which fjord is the deepest?")
        screen.wait_for("Claude wants to search the web for: deepest fjord", "Do you want to proceed?")
        screen.choose("Yes")
        screen.wait_for("The tool says:", NO_SEARCH if search == "chat" else QUERY)
        screen.wait_for("Did 0 searches" if search == "chat" else "Did 1 search in")
        leave(screen, "/exit")
    assert find_links(model.shown) == (PAGES if search != "chat" else {})
    if search == "chat":
        bodies = [one.body for one in sandbox.simulator.requests]
        assert any(b"You have no web search in this conversation." in body for body in bodies)


@pytest.mark.parametrize("name", ["gemini-3-flash", "gpt-5.5"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("search", ["gemini", "anthropic", "searxng", "model"])
def test_codex_searches(programs, searching, search, name):
    sandbox = searching(search, SearchingModel())
    printed = launch.codex(sandbox, programs, "Which fjord is the deepest?", model=name)
    assert printed.strip() == (TEXT if search in DECLARED else f"It says so in {LINKS}.")
    assert sandbox.errors.index(f"web search: {QUERY}\n") < sandbox.errors.index(printed.strip())
    assert_upstream_searched(sandbox, search)


def test_codex_goes_on_at_other_upstreams_after_a_search(programs, searching):
    """The search of the first vendor is in the history that the others get."""
    others = {f"on-{upstream}": upstream for upstream in ("responses", "anthropic", "chat")}
    sandbox = searching("gemini", SearchingModel(), **others)
    launch.codex(sandbox, programs, "Which fjord is the deepest?")
    for model, upstream in others.items():
        printed = launch.codex_again(sandbox, programs, "Are you sure?", model)
        assert printed.strip() == (TEXT if upstream in DECLARED else NO_SEARCH)
        history = sandbox.simulator.requests[-1].json()
        text = json.dumps(history.get("messages") or history["input"], ensure_ascii=False)
        assert f'[Web search: \\"{QUERY}\\"]' in text


@pytest.mark.parametrize("mode", launch.SELECTED)
@pytest.mark.parametrize("search", ["anthropic", "responses", "searxng", "model"])
def test_gemini_cli_cites_the_pages(programs, searching, search, mode):
    sandbox = searching(search, SearchingModel("google_web_search"))
    printed = launch.gemini_cli(sandbox, programs, "Which fjord is the deepest?", mode=mode)
    shown = json.loads(printed.partition("The tool says: ")[2])["output"]
    assert f'Web search results for "{QUERY}"' in shown
    assert find_links(shown) == PAGES
    if search in DECLARED:
        assert f"{QUOTES[0]}[1]: {QUOTES[1]}[2]." in shown
    assert_upstream_searched(sandbox, search)
