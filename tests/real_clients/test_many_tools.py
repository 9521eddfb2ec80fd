"""MCP servers with many tools: the model searches for the one it needs, with the client's search or the gateway's."""

import json
import secrets

import pytest

from dragoman.simulator import Answer, Call, Received
from real_clients import launch

pytestmark = pytest.mark.slow
SEARCHES = ("ToolSearch", "tool_search")


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


def list_bodies(sandbox) -> list[bytes]:
    """The requests upstream that declare tools."""
    return [one.body for one in sandbox.simulator.requests if b'"tools"' in one.body]


@pytest.mark.parametrize("upstream", ["gemini", "chat", "responses"])
def test_claude_code_finds_one_of_121_tools(programs, stage, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 120)}
    printed = launch.claude_code(sandbox, programs, "What is in the vault?", servers=servers)
    assert f"{word} behind the north door" in printed
    assert b"Part 0 of the house." not in list_bodies(sandbox)[0]


@pytest.mark.parametrize("upstream", ["gemini", "anthropic", "chat"])
def test_codex_finds_a_tool_with_its_own_search_under_a_name_it_knows(programs, stage, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 20)}
    printed = launch.codex(sandbox, programs, "What is in the vault?", model="gpt-5.5", servers=servers)
    assert f"{word} behind the north door" in printed


@pytest.mark.parametrize(("provider", "upstream"), [("openai-compatible", "chat"), ("anthropic", "chat")])
def test_opencode_finds_one_of_150_tools_with_the_gateways_search(programs, stage, provider, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, find_word)
    servers = {"vault": launch.vault(word, 150)}
    printed = launch.opencode(sandbox, programs, "What is in the vault?", provider=provider, servers=servers)
    assert f"{word} behind the north door" in printed
    counts = [len(json.loads(body)["tools"]) for body in list_bodies(sandbox)]
    assert max(counts) <= 128
