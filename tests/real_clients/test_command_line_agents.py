"""Claude Code, Codex, Gemini CLI and opencode use their own tools for a model that speaks another language."""

import pytest

from npm import assert_no_registry_is_named
from real_clients import launch
from real_clients.conftest import PACKAGES
from real_clients.plot import PROMPT, Plot, Tools
from real_clients.runs import OPENCODE, RUNS

pytestmark = pytest.mark.slow
CLAUDE_CODE = Tools("Read", "file_path", "Bash", "command")
CODEX = Tools("exec_command", "cmd", "exec_command", "cmd", reads_by_command=True)
GEMINI_CLI = Tools("read_file", "file_path", "run_shell_command", "command")
IN_OPENCODE = Tools("read", "filePath", "bash", "command")


def assert_used(plot: Plot, printed: str) -> None:
    """The results of the tools reached the model, and from there the user."""
    output = [result.text for result in plot.results]
    assert len(output) == 3
    for word, text in zip((plot.note, plot.rest, "No such file"), output, strict=True):
        assert word in text
        assert word in printed


@pytest.mark.parametrize("model", ["gemini-3-flash", "claude-opus-4-8"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("upstream", RUNS["Claude Code"])
def test_claude_code(programs, stage, folder, upstream, model):
    plot = Plot(CLAUDE_CODE, folder)
    sandbox = stage({"*": upstream}, plot)
    assert_used(plot, launch.claude_code(sandbox, programs, PROMPT, model=model))
    assert sandbox.outside.asked == set()


@pytest.mark.parametrize("model", ["gemini-3-flash", "gpt-5.5"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("upstream", RUNS["Codex"])
def test_codex(programs, stage, folder, upstream, model):
    plot = Plot(CODEX, folder)
    sandbox = stage({"*": upstream}, plot)
    assert_used(plot, launch.codex(sandbox, programs, PROMPT, model=model))
    assert sandbox.outside.asked <= {"ab.chatgpt.com"}


@pytest.mark.parametrize("mode", launch.SELECTED)
@pytest.mark.parametrize("upstream", RUNS["Gemini CLI, API key and Code Assist"])
def test_gemini_cli(programs, stage, folder, upstream, mode):
    plot = Plot(GEMINI_CLI, folder)
    sandbox = stage({"*": upstream}, plot)
    assert_used(plot, launch.gemini_cli(sandbox, programs, PROMPT, mode=mode))
    assert sandbox.outside.asked <= {"play.googleapis.com", "www.googleapis.com"}


@pytest.mark.parametrize(("provider", "upstream"), OPENCODE.items())
def test_opencode(programs, stage, folder, provider, upstream):
    plot = Plot(IN_OPENCODE, folder)
    sandbox = stage({"*": upstream}, plot)
    assert_used(plot, launch.opencode(sandbox, programs, PROMPT, provider=provider))
    assert {host.partition(".")[0] for host in sandbox.outside.asked} <= {"models", "registry"}


AGAIN = {
    "claude": (CLAUDE_CODE, launch.claude_code, launch.claude_code_again, ("gemini", "responses", "anthropic", "chat")),
    "codex": (CODEX, launch.codex, launch.codex_again, ("gemini", "anthropic", "responses", "chat")),
    "gemini": (GEMINI_CLI, launch.gemini_cli, launch.gemini_cli_again, ("anthropic", "responses", "chat")),
}
"""The clients, each with the upstreams that one conversation is led on, one after the other."""


@pytest.mark.parametrize("client", AGAIN)
def test_a_conversation_is_taken_up_again_on_other_upstreams(programs, stage, folder, client):
    tools, begin, go_on, upstreams = AGAIN[client]
    plot = Plot(tools, folder)
    others = {f"on-{upstream}": upstream for upstream in upstreams[1:]}
    sandbox = stage({"*": upstreams[0], **others}, plot)
    assert_used(plot, begin(sandbox, programs, PROMPT))
    for model in others:
        assert_used(plot, go_on(sandbox, programs, "Tell it again.", model))


def test_the_lock_names_no_registry():
    assert_no_registry_is_named(PACKAGES)
