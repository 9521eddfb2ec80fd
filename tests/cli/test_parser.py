"""Wrong command lines: one clear line, the right exit code, never a traceback."""

import io
import shlex
import sys
from pathlib import Path

import pytest

from cli.wrong_inputs import WRONG_INPUTS
from dragoman.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "troubleshooting.md"
ENVIRONMENT = ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG")


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """An empty working directory, and no key or configuration from outside."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def attempt(monkeypatch, folder: Path, words: list[str], given: bytes) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed on both outputs."""
    (folder / "stdin").write_bytes(given)
    printed = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with (folder / "stdin").open(encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        monkeypatch.setattr(sys, "stdout", printed)
        monkeypatch.setattr(sys, "stderr", printed)
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
    return code, printed.buffer.getvalue().decode()


@pytest.mark.parametrize("wrong", WRONG_INPUTS, ids=lambda wrong: wrong.command)
def test_a_wrong_input_gets_one_clear_message(alone, monkeypatch, wrong):
    for name, text in wrong.files.items():
        (alone / name).write_bytes(text)
    code, printed = attempt(monkeypatch, alone, shlex.split(wrong.command), wrong.given)
    assert (code, wrong.message in printed, "Traceback" in printed) == (wrong.code, True, False), printed
    assert len([line for line in printed.splitlines() if line.startswith("dragoman")]) <= 1


def test_the_troubleshooting_page_has_every_message():
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [wrong.command for wrong in WRONG_INPUTS if row_of(wrong) not in rows]
    assert missing == []


def row_of(wrong) -> str:
    """The row of a wrong input in the table."""
    texts = [
        f"`{text.decode().replace(chr(10), ' ⏎ ')}` in {name}" for name, text in wrong.files.items() if text.strip()
    ]
    what = ", ".join([f"`dragoman {wrong.command}`", *texts])
    return f"| {what} | {wrong.message} | {wrong.code} |".replace("dragoman `", "dragoman`")


def test_the_command_without_words_prints_its_help(alone, capsys):
    assert main([]) == 0
    assert "usage: dragoman" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_two_names(alone, capsys, option):
    with pytest.raises(SystemExit) as ended:
        main([option])
    assert (ended.value.code, capsys.readouterr().out.split()[0]) == (0, "dragoman")


@pytest.mark.parametrize(
    "verb", ["serve", "mcp", "translate", "chat", "intercept", "simulate", "doctor", "config", "completion"]
)
def test_every_help_has_examples(alone, capsys, verb):
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "\nexamples:\n" in capsys.readouterr().out


def test_an_unknown_option_shows_the_usage_of_its_command(alone, capsys):
    with pytest.raises(SystemExit):
        main(["doctor", "--modle", "x"])
    printed = capsys.readouterr().err
    assert printed.startswith("usage: dragoman doctor")
    assert "did you mean --model?" in printed


def test_an_interrupt_ends_a_command_without_a_traceback(alone, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.cli.configuration.example", interrupt)
    assert main(["config", "example"]) == 130
