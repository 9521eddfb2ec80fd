"""Real programs search the web on a Chat upstream, which cannot: the gateway searches with a SearXNG server."""

import json

import pytest

from dragoman.http.server import run_in_thread
from dragoman.simulator import Answer, Call
from gateway.searxng import Searxng, answer, result, serve_searxng
from real_clients import launch

pytestmark = pytest.mark.slow
PAGE = "https://www.example.org/fjords-of-norway"
QUERY = "deepest fjord"


@pytest.fixture
def searxng():
    """A search backend, and its table of the gateway's configuration."""
    server = Searxng(answer(result(PAGE, "Fjords of Norway", "Sognefjord is the deepest.")))
    with run_in_thread(lambda: serve_searxng(server), "searxng") as url:
        server.table = f'[search]\nbackend = "{url}"\n'
        yield server


class ClaudeCodeModel:
    """Calls Claude Code's tool; in the request that the tool makes, searches; in the end repeats the tool's result."""

    def __init__(self):
        self.shown = ""

    def __call__(self, received):
        request = received.request
        names = {tool.name for tool in request.tools}
        results = [one.text for turn in request.turns for one in turn.results]
        if "web_search" in names:
            if not results:
                return Answer(calls=(Call(id="s1", name="web_search", arguments={"query": QUERY}),), end="calls")
            return Answer(text=f"Sognefjord, says [Fjords of Norway]({PAGE}).")
        if "WebSearch" in names:
            if not any("Sognefjord" in text for text in results):
                return Answer(calls=(Call(id="w1", name="WebSearch", arguments={"query": QUERY}),), end="calls")
            self.shown = next(text for text in results if "Sognefjord" in text)
            return Answer(text=f"The tool says: {self.shown}")
        if "ToolSearch" in names:
            return Answer(
                calls=(Call(id="t1", name="ToolSearch", arguments={"query": "select:WebSearch"}),), end="calls"
            )
        return None


def test_claude_code_finds_pages(programs, stage, searxng):
    model = ClaudeCodeModel()
    sandbox = stage({"*": "chat"}, model, searxng.table)
    printed = launch.claude_code(sandbox, programs, "Which fjord is the deepest? Search the web.")
    assert PAGE in printed
    assert "Fjords of Norway" in model.shown
    assert searxng.queries[0]["q"] == [QUERY]


class CodexModel:
    """Searches, then says what was found."""

    def __call__(self, received):
        request = received.request
        results = [one.text for turn in request.turns for one in turn.results]
        if "web_search" not in {tool.name for tool in request.tools}:
            return None
        if not results:
            return Answer(calls=(Call(id="s1", name="web_search", arguments={"query": QUERY}),), end="calls")
        return Answer(text=f"Found: {json.dumps('Sognefjord' in results[-1])}, see [Fjords]({PAGE}).")


def test_codex_searches(programs, stage, searxng):
    sandbox = stage({"*": "chat"}, CodexModel(), searxng.table)
    printed = launch.codex(sandbox, programs, "Which fjord is the deepest?", model="gpt-5.5")
    assert f"Found: true, see [Fjords]({PAGE})." in printed
    assert searxng.queries[0]["q"] == [QUERY]
