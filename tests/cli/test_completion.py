"""The completion scripts, run by the shells that are here."""

import shutil
import subprocess

import pytest

from dragoman.cli import main

ASK = 'COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _dragoman; printf "%s\\n" "${{COMPREPLY[@]}}"'


def script(capsys, shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dragoman ser", {"serve"}),
        ("dragoman serve --po", {"--port"}),
        ("dragoman config i", {"init"}),
        ("dragoman translate str", {"stream"}),
        ("dragoman intercept rep", {"replay"}),
    ],
)
def test_bash_completes_commands_parts_and_options(capsys, tmp_path, words, offered):
    done = subprocess.run(  # noqa: S603
        ["bash", "-c", script(capsys, "bash") + ASK.format(words=words)],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert {*done.stdout.split()} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_script(capsys, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script(capsys, shell), capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_has_every_command_and_option(capsys):
    text = script(capsys, "fish")
    assert "-a 'serve mcp translate" in text
    assert "complete -c dragoman -n '__fish_seen_subcommand_from doctor' -l timeout" in text
