"""Wrong command lines: one clear line, the right exit code, never a traceback."""

import io
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.wrong_inputs import WRONG_INPUTS
from dragoman.cli import main

FULL = Path("/dev/full")
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


def test_the_troubleshooting_page_has_every_message_and_no_other():
    table = PAGE.read_text(encoding="utf-8").partition("\n## Wrong command lines and files\n")[2]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == [row_of(wrong) for wrong in WRONG_INPUTS]
    assert len(rows) >= 60


def row_of(wrong) -> str:
    """The row of a wrong input in the table."""
    given = {"standard input": wrong.given, **wrong.files}
    texts = [
        f"`{text.decode(errors='backslashreplace').strip().replace(chr(10), ' ⏎ ')}` in {name}"
        for name, text in given.items()
        if text.strip()
    ]
    what = ", ".join([f"`dragoman {wrong.command}`".replace(" `", "`"), *texts])
    return f"| {what} | {wrong.message} | {wrong.code} |"


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


def test_every_subcommand_has_examples_too(alone, monkeypatch):
    parsers = []
    monkeypatch.setattr("dragoman.cli.completion.run", lambda options: parsers.append(options.verbs.choices) or 0)
    assert main(["completion", "bash"]) == 0
    parts = {f"{verb} {name}": part for verb, each in parsers[0].items() for name, part in each.parts.items()}
    assert {"config init", "mcp login", "intercept replay"} <= {*parts}
    assert [name for name, part in parts.items() if f"\nexamples:\n  dragoman {name}" not in part.format_help()] == []


def test_an_interrupt_ends_a_command_without_a_traceback(alone, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dragoman.cli.configuration.example", interrupt)
    assert main(["config", "example"]) == 130


def test_a_reader_that_has_seen_enough_is_no_error(alone, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as out:  # noqa: PTH123  a descriptor
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["config", "example"]) == 0


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [["config", "example"], ["completion", "bash"], ["--help"], ["config", "show"]])
def test_a_full_disk_is_one_line(alone, monkeypatch, capsys, words):
    with FULL.open("w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(words) == 2
    assert capsys.readouterr().err == "dragoman: No space left on device\n"


def test_an_encoding_without_a_character_gets_an_escape(alone, monkeypatch):
    written = io.BytesIO()
    out = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["config", "example"]) == 0
    assert b"sha256:\\u2026" in written.getvalue()


def test_a_closed_standard_input_is_an_empty_one(alone):
    command = 'exec "$0" -m dragoman translate request --from chat --to gemini <&- >&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)  # noqa: S603, S607
    assert (done.returncode, done.stderr) == (
        1,
        "dragoman: invalid_request: the request is empty: standard input has no text\n",
    )


@pytest.mark.parametrize(("module", "code"), [("argparse", -signal.SIGINT), ("msgspec", 130)])
def test_an_interrupt_while_modules_load_prints_nothing(alone, module, code):
    # `argparse` is loaded with the command, `msgspec` by the verb; the working directory has these instead.
    (alone / f"{module}.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    command = [sys.executable, "-m", "dragoman", "config", "check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=alone)  # noqa: S603
    assert (done.returncode, done.stderr) == (code, "")


def test_colours_are_for_terminals(alone, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    for no_colour, expected in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_colour)
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert main(["config", "check", "--config", "missing.toml"]) == 2
        with pytest.raises(SystemExit):
            main(["serve", "--prt"])
        assert sys.stderr.getvalue().count("\x1b[31mdragoman") == (2 if expected else 0)
