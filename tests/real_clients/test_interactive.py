"""Claude Code, Codex and Gemini CLI at a terminal with a fresh home, set up as the how-to page says, as a person uses them:
the dialogs of the first start, a task, the question whether a command may run, its result, the answer, the exit command.
"""

import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from dragoman.simulator import Answer, Call, Received
from real_clients.conftest import Programs
from real_clients.settings import CONNECT, block, shell
from real_clients.stage import Stage
from real_clients.terminal import Terminal, terminal

pytestmark = pytest.mark.slow
TASK = "Copy the note, and tell me its word backwards."
COMMAND = "tee copy.txt < note.txt"
"""Writes a file, so that every program asks before it runs the command."""
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "May I copy the note?"}
"""Codex runs commands in a sandbox without asking, and asks when the model wants one to run outside of it."""


class CopyTask:
    """A model that copies a note with the client's shell, and answers with a word that only the result holds, reversed."""

    def __init__(self, folder: Path, tool: str, argument: str, more: Mapping[str, str] | None = None) -> None:
        self._call = Call(id="1", name=tool, arguments={argument: COMMAND, **(more or {})})
        self._folder = folder
        self.word = secrets.token_hex(8)
        self.text = f"The word is {self.word}.\n"
        self.results: list[str] = []
        (folder / "note.txt").write_text(self.text, encoding="utf-8")

    def __call__(self, received: Received) -> Answer | None:
        """Answer a request with the tool; the simulator answers others, such as one for a title."""
        if self._call.name not in {tool.name for tool in received.request.tools}:
            return None
        self.results = [result.text for turn in received.request.turns for result in turn.results]
        if not self.results:
            return Answer(calls=(self._call,), end="calls")
        _, found, rest = self.results[-1].partition("The word is ")
        return Answer(text=f"Backwards: {rest[:16][::-1]}." if found else "There is no word.")

    def run(self, screen: Terminal, question: str, yes: str, *, waits_for_command: bool = False) -> None:
        """Give the task, allow the command when the program asks, and wait for the answer.

        With `waits_for_command` the command ends only after the screen has shown its output.
        """
        screen.type(TASK)
        screen.wait_for(question, COMMAND)
        assert not (self._folder / "copy.txt").exists()
        with self._hold_note(screen) if waits_for_command else nullcontext():
            screen.choose(yes)
        screen.wait_for(f"Backwards: {self.word[::-1]}.")
        assert (self._folder / "copy.txt").read_text(encoding="utf-8") == self.text
        assert len(self.results) == 1

    @contextmanager
    def _hold_note(self, screen: Terminal) -> Generator[None]:
        """Make the note a pipe that ends when the screen shows its text."""
        note = self._folder / "note.txt"
        note.unlink()
        os.mkfifo(note)
        pipe = os.open(note, os.O_RDWR)  # for writing only, this would wait for the command
        try:
            os.write(pipe, self.text.encode())
            yield
            screen.wait_for(self.text)
        finally:
            os.close(pipe)


@contextmanager
def claude_code(stage: Stage, programs: Programs, *mode: str, **variables: str | None) -> Generator[Terminal]:
    """Start Claude Code as the how-to page says, in another permission mode or with other variables; None removes one."""
    exported, (name, *options) = shell("claude-code", stage.base_url, CONNECT)
    changed = {key: value for key, value in {**stage.environment, **exported, **variables}.items() if value is not None}
    with terminal([*programs[name], *(mode or options)], stage.folder, changed) as screen:
        yield screen


@contextmanager
def codex(stage: Stage, programs: Programs, settings: str) -> Generator[Terminal]:
    """Start Codex as the how-to page says."""
    home = stage.home / ".codex"
    home.mkdir()
    (home / "config.toml").write_text(settings, encoding="utf-8")
    variables, (name, *options) = shell("codex", stage.base_url, CONNECT)
    try:
        with terminal([*programs[name], *options], stage.folder, {**stage.environment, **variables}) as screen:
            yield screen
    finally:
        shutil.rmtree(home / "packages", ignore_errors=True)  # its background server is a copy of 400 MB


def answer_first_questions(screen: Terminal) -> None:
    """Answer what Claude Code asks on its first start with a token: theme, security notes, trust."""
    screen.choose("Dark mode")
    screen.wait_for("Security notes", "Press Enter to continue")
    screen.press("enter")
    screen.choose("Yes, I trust this folder")
    screen.wait_for("mode on")


def leave(screen: Terminal, command: str) -> None:
    screen.type(command)
    assert screen.wait_for_end() == 0


def test_claude_code_with_a_token(programs, stage, folder):
    task = CopyTask(folder, "Bash", "command")
    sandbox = stage({"*": "gemini"}, task)
    with claude_code(sandbox, programs) as screen:
        answer_first_questions(screen)
        screen.wait_for("manual mode on")
        assert "isn't recognized" not in screen.text
        task.run(screen, "Do you want to proceed?", "Yes")
        screen.wait_for("Ran 1 shell command")
        screen.wait_until_still()
        screen.press("ctrl-o")
        screen.wait_for(f"The word is {task.word}.")
        screen.wait_until_still()
        screen.press("ctrl-o")
        leave(screen, "/exit")
    assert sandbox.outside.asked <= {"downloads.claude.ai", "github.com"}


def test_claude_code_with_an_api_key_asks_for_more(programs, stage, folder):
    """The page recommends a token: a key needs Anthropic's own host on the first start, and a confirmation later."""
    task = CopyTask(folder, "Bash", "command")
    sandbox = stage({"*": "gemini"}, task)
    key = {"ANTHROPIC_AUTH_TOKEN": None, "ANTHROPIC_API_KEY": "any"}
    with claude_code(sandbox, programs, **key) as screen:
        screen.wait_for("Unable to connect to Anthropic services", "Failed to connect to api.anthropic.com")
        assert screen.wait_for_end() == 1
    assert "api.anthropic.com" in sandbox.outside.asked
    with claude_code(sandbox, programs) as screen:
        answer_first_questions(screen)
        leave(screen, "/exit")
    with claude_code(sandbox, programs, **key) as screen:
        screen.wait_for("Do you want to use this API key?")
        screen.wait_until_still()
        assert screen.selected == ["No (recommended)"]
        screen.choose("Yes")
        screen.wait_for("manual mode on")
        task.run(screen, "Do you want to proceed?", "Yes")
        leave(screen, "/exit")


def test_claude_code_in_auto_mode_asks_since_nothing_pretends_to_check(programs, stage, folder):
    task = CopyTask(folder, "Bash", "command")
    sandbox = stage({"*": "gemini"}, task)
    with claude_code(sandbox, programs, "--permission-mode", "auto", CLAUDE_CODE_MAX_CONTEXT_TOKENS="150000") as screen:
        answer_first_questions(screen)
        screen.wait_for("auto mode on")
        screen.type(TASK)
        screen.wait_for("Auto mode can't check actions in this session", "Enter to stay in auto mode")
        screen.wait_until_still()
        screen.press("enter")
        screen.choose("Yes")
        screen.wait_for(f"Backwards: {task.word[::-1]}.")
        screen.type("/context")
        screen.wait_for("/150k tokens")
        leave(screen, "/exit")


@pytest.mark.parametrize(("upstream", "window"), [("gemini", "258K"), ("anthropic", "122K")])
def test_codex(programs, stage, folder, upstream, window):
    task = CopyTask(folder, "exec_command", "cmd", ESCALATED)
    sandbox = stage({"*": upstream}, task)
    settings = block("toml", "codex", sandbox.base_url, CONNECT)
    if window == "122K":
        settings = settings.replace("#model_context_window", "model_context_window")
    sandbox.run(["git", "init", "-q"], {})  # Codex asks for trust in repositories
    with codex(sandbox, programs, settings) as screen:
        screen.choose("Trust and continue")
        screen.wait_for("Ask Codex to do anything")
        task.run(screen, "Would you like to run the following command?", "Yes, proceed")
        screen.wait_for("You approved codex to run", f"└ The word is {task.word}.")
        screen.type("/status")
        screen.wait_for("Model provider: dragoman", f"/ {window})")
        leave(screen, "/quit")
    owners = {".".join(host.split(".")[-2:]) for host in sandbox.outside.asked}
    assert owners <= {"chatgpt.com", "github.com", "githubusercontent.com"}


@pytest.mark.parametrize(("mode", "upstream"), [("gemini-cli", "anthropic"), ("gemini-cli-code-assist", "chat")])
def test_gemini_cli(programs, stage, folder, mode, upstream):
    task = CopyTask(folder, "run_shell_command", "command")
    sandbox = stage({"*": upstream}, task)
    (sandbox.home / ".gemini").mkdir()
    settings = block("json", mode, sandbox.base_url, CONNECT)
    (sandbox.home / ".gemini" / "settings.json").write_text(settings, encoding="utf-8")
    variables, (name, *options) = shell(mode, sandbox.base_url, CONNECT)
    with terminal([*programs[name], *options], folder, {**sandbox.environment, **variables}) as screen:
        screen.wait_for("Do you trust the files in this folder?")
        screen.choose("Trust folder")
        screen.wait_for("Type your message")  # after a restart of its own, or without
        # It drops what it has not read when a command exits, so the command of this test waits for it.
        task.run(screen, "Allow execution of [Shell]?", "Allow once", waits_for_command=True)
        screen.wait_for("✓ Shell", f"The word is {task.word}.")
        leave(screen, "/quit")
    owners = {host.rpartition(".")[0].rpartition(".")[2] for host in sandbox.outside.asked}
    assert owners <= {"googleapis", "npmjs"}
