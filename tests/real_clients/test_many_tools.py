"""MCP servers with many tools: the model searches for the one it needs, with the client's search or the gateway's."""

import json
import secrets
from itertools import pairwise

import pytest

from dragoman.simulator import Answer, Call, Received
from real_clients import launch

pytestmark = pytest.mark.slow
SEARCHES = ("ToolSearch", "tool_search")
MAX_OPENAI = 128
"""The tools that OpenAI takes in one request."""


def find_word(received: Received) -> Answer | None:
    """Search for the tool if it is not declared, call it and report its result."""
    results = [result for turn in received.request.turns for result in turn.results]
    names = [tool.name for tool in received.request.tools]
    found = next((name for name in names if name.endswith("open_vault")), "")
    search = next((name for name in names if name in SEARCHES), "")
    if any("behind the" in result.text for result in results):
        return Answer(text=results[-1].text)
    if found:
        return Answer(calls=(Call(id="c1", name=found, arguments={"door": "north"}),), end="calls")
    if search and not results:
        return Answer(calls=(Call(id="s1", name=search, arguments={"query": "open vault"}),), end="calls")
    return None


def list_tools(sandbox) -> list[list[str]]:
    """The tools of each request upstream that has any, as JSON without cache marks; of Gemini's only the functions."""
    found = []
    for seen in sandbox.simulator.requests:
        tools = seen.json().get("tools", []) if seen.method == "POST" else []
        declared = [
            one for tool in tools for one in tool.get("functionDeclarations", [tool]) if "googleSearch" not in one
        ]
        written = [json.dumps({**tool, "cache_control": None}, sort_keys=True) for tool in declared]
        found += [written] if written else []
    return found


def assert_deferred(requests: list[list[str]], least: int) -> None:
    """Before the search no MCP tool is declared; then a few are, after those before, and are never taken away."""
    first, *_, last = requests
    assert not any("Look into room" in tool for tool in first)
    assert 0 < len(last) - len(first) < least / 10
    for before, after in pairwise(requests):
        assert after[: len(before)] == before


@pytest.mark.parametrize("name", ["gemini-3-flash", "claude-opus-4-8"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("upstream", ["gemini", "chat", "responses"])
def test_claude_code_finds_one_of_121_tools(programs, stage, upstream, name):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 120)}
    printed = launch.claude_code(sandbox, programs, "What is in the vault?", model=name, servers=servers)
    assert f"{word} behind the north door" in printed
    assert_deferred(list_tools(sandbox), 120)


@pytest.mark.parametrize("upstream", ["gemini", "anthropic", "chat"])
def test_codex_finds_a_tool_with_its_own_search_under_a_name_it_knows(programs, stage, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 120)}
    printed = launch.codex(sandbox, programs, "What is in the vault?", model="gpt-5.5", servers=servers)
    assert f"{word} behind the north door" in printed
    assert_deferred(list_tools(sandbox), 120)


def run_opencode(provider):
    """Return a function that starts opencode with a provider."""

    def run(*arguments, servers):
        return launch.opencode(*arguments, provider=provider, servers=servers)

    return run


DECLARING = {
    "codex": launch.codex,
    "gemini": launch.gemini_cli,
    **{f"opencode-{provider}": run_opencode(provider) for provider in ("openai-compatible", "anthropic", "google")},
    "opencode-openai": run_opencode("openai"),
}
"""Clients that declare every tool of an MCP server; Codex does under a name that it does not know."""
LIMITED = [*((client, "chat") for client in DECLARING), ("gemini", "responses"), ("opencode-anthropic", "responses")]


@pytest.mark.parametrize(("client", "upstream"), LIMITED)
def test_one_of_151_tools_is_found_with_the_gateways_search(programs, stage, client, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 150)}
    printed = DECLARING[client](sandbox, programs, "What is in the vault?", servers=servers)
    assert f"{word} behind the north door" in printed
    requests = list_tools(sandbox)
    assert [any('open_vault", ' in tool for tool in tools) for tools in requests] == [False, True, True]
    assert 64 < min(map(len, requests)) <= max(map(len, requests)) <= MAX_OPENAI
