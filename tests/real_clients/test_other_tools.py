"""Tools of another kind than reading a file: those of an MCP server, images in results, and Codex's free-form patches."""

import base64
import secrets
from pathlib import Path

import pytest

from dragoman.simulator import Answer, Call, Received
from real_clients import launch
from real_clients.runs import RUNS

pytestmark = pytest.mark.slow
RUN = {"claude": launch.claude_code, "codex": launch.codex, "gemini": launch.gemini_cli}
ROWS = {"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI, API key and Code Assist"}
FOREIGN = [(client, upstream) for client, row in ROWS.items() for upstream in RUNS[row]]
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SHOWN_BY = {"claude": ("Read", "file_path"), "codex": ("view_image", "path"), "gemini": ("read_file", "file_path")}
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made by a patch\n*** End Patch\n"


def call(number: int, name: str, arguments: dict[str, str]) -> Answer:
    return Answer(calls=(Call(id=f"call{number}", name=name, arguments=arguments),), end="calls")


def read_vault(received: Received) -> Answer | None:
    """Find the tool among the declared ones or by the client's own search, call it and report its result."""
    asked = received.request
    results = [result for turn in asked.turns for result in turn.results]
    names = [tool.name for tool in asked.tools]
    found = [name for name in names if name.endswith("open_vault")]
    if found and not any(result.name == found[0] for result in results):
        return call(len(results), found[0], {"door": "north"})
    if not found and "ToolSearch" in names and not results:
        return call(0, "ToolSearch", {"query": "vault"})
    return Answer(text=results[-1].text) if results else None


@pytest.mark.parametrize(("client", "upstream"), FOREIGN)
def test_a_tool_of_an_mcp_server_is_found_and_called(programs, stage, client, upstream):
    word = secrets.token_hex(8)
    sandbox = stage({"*": upstream}, read_vault)
    printed = RUN[client](sandbox, programs, "What is in the vault?", servers={"vault": launch.vault(word)})
    assert f"{word} behind the north door" in printed


@pytest.mark.parametrize(("client", "upstream"), FOREIGN)
def test_an_image_that_a_tool_shows_reaches_the_model(programs, stage, folder: Path, client, upstream):
    name, argument = SHOWN_BY[client]
    (folder / "dot.png").write_bytes(DOT)

    def looks(received: Received) -> Answer | None:
        asked = received.request
        if name not in {tool.name for tool in asked.tools}:
            return None
        if any(turn.results for turn in asked.turns):
            return Answer(text="I have seen it.")
        return call(1, name, {argument: str(folder / "dot.png")})

    sandbox = stage({"*": upstream}, looks)
    assert "I have seen it." in RUN[client](sandbox, programs, "What is in the picture dot.png?")
    image = base64.b64encode(DOT)
    assert image in sandbox.simulator.requests[-1].body


@pytest.mark.parametrize("upstream", ["gemini", "anthropic", "chat"])
def test_a_patch_in_free_form_is_applied(programs, stage, folder, upstream):
    def patches(received: Received) -> Answer | None:
        asked = received.request
        tools = {tool.name: tool for tool in asked.tools}
        if any(turn.results for turn in asked.turns):
            return Answer(text="It is done.")
        free = tools["apply_patch"].kind == "custom"
        return Answer(
            calls=(Call(id="p1", name="apply_patch", arguments=PATCH if free else {"input": PATCH}),), end="calls"
        )

    sandbox = stage({"*": upstream}, patches)
    assert "It is done." in launch.codex(sandbox, programs, "Make a file.", model="gpt-5.5")
    assert (folder / "made.txt").read_text(encoding="utf-8") == "made by a patch\n"
