"""Claude Code, Codex, Gemini CLI and opencode use their own tools for a model that speaks another language.

Each is started as the README says, for one task and without questions.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from npm import assert_no_registry_is_named
from real_clients.conftest import PACKAGES, Programs
from real_clients.plot import PROMPT, Plot, Tools
from real_clients.runs import OPENCODE as OPENCODE_RUNS
from real_clients.runs import RUNS
from real_clients.settings import block, shell
from real_clients.stage import Stage

pytestmark = pytest.mark.slow
CLAUDE = Tools("Read", "file_path", "Bash", "command")
CODEX = Tools("exec_command", "cmd", "exec_command", "cmd", reads_by_command=True)
GEMINI = Tools("read_file", "file_path", "run_shell_command", "command")
OPENCODE = Tools("read", "filePath", "bash", "command")
SELECTED = {"gemini-cli": "gemini-api-key"}
"""How Gemini CLI shows who it is, by the block of the README."""
Start = Callable[..., Stage]


@pytest.fixture
def plot(tmp_path: Path) -> Callable[[Tools], Plot]:
    folder = tmp_path / "work"
    folder.mkdir()
    return lambda tools: Plot(tools, folder)


def assert_used(plot: Plot, printed: str) -> None:
    """What only the tools could tell came to the model, and from there to who asked."""
    told = [result.text for result in plot.told]
    assert len(told) == 3
    for word, text in zip((plot.note, plot.rest, "No such file"), told, strict=True):
        assert word in text
        assert word in printed


@pytest.mark.parametrize("model", ["gemini-3-flash", "claude-opus-4-8"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("upstream", RUNS["Claude Code"])
def test_claude_code(programs: Programs, stage: Start, plot, upstream, model):
    story = plot(CLAUDE)
    here = stage({"*": upstream}, story)
    variables, (name,) = shell("claude-code", here.base_url)
    variables |= {"ANTHROPIC_MODEL": model}
    printed = here.run([*programs[name], "-p", PROMPT, "--allowedTools", "Bash,Read"], variables)
    assert_used(story, printed)
    assert here.outside.asked == set()


@pytest.mark.parametrize("model", ["gemini-3-flash", "gpt-5.5"], ids=["unknown-name", "known-name"])
@pytest.mark.parametrize("upstream", RUNS["Codex"])
def test_codex(programs: Programs, stage: Start, plot, upstream, model):
    story = plot(CODEX)
    here = stage({"*": upstream}, story)
    settings = block("toml", "codex", here.base_url).replace("gemini-3-flash", model)
    home = here.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text("features.plugins = false\n" + settings, encoding="utf-8")
    free = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    printed = here.run([*programs["codex"], "exec", *free, PROMPT], {"DRAGOMAN_KEY": "any"})
    assert_used(story, printed)
    assert here.outside.asked <= {"ab.chatgpt.com"}


@pytest.mark.parametrize("mode", SELECTED)
@pytest.mark.parametrize("upstream", RUNS["Gemini CLI, API key"])
def test_gemini_cli(programs: Programs, stage: Start, plot, upstream, mode):
    story = plot(GEMINI)
    here = stage({"*": upstream}, story)
    variables, (name, *options) = shell(mode, here.base_url)
    home = here.home / ".gemini"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps({"security": {"auth": {"selectedType": SELECTED[mode]}}}))
    variables |= {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    printed = here.run([*programs[name], *options, "--approval-mode", "yolo", "-p", PROMPT], variables)
    assert_used(story, printed)
    assert here.outside.asked <= {"play.googleapis.com", "www.googleapis.com"}


@pytest.mark.parametrize(("provider", "upstream"), OPENCODE_RUNS.items())
def test_opencode(programs: Programs, stage: Start, plot, provider, upstream):
    story = plot(OPENCODE)
    here = stage({"*": upstream}, story)
    settings = json.loads(block("json", "opencode", here.base_url))
    ours = settings["provider"]["dragoman"]
    ours["npm"] = f"@ai-sdk/{provider}"
    if provider == "google":
        ours["options"]["baseURL"] = f"{here.base_url}/v1beta"
    settings["permission"] = {"*": "allow"}
    (here.folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    printed = here.run([*programs["opencode"], "run", "--model", "dragoman/gemini-3-flash", PROMPT], {})
    assert_used(story, printed)
    assert {host.partition(".")[0] for host in here.outside.asked} <= {"models", "registry"}


def test_the_lock_names_no_registry():
    assert_no_registry_is_named(PACKAGES)
