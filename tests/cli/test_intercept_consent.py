"""Nothing is installed without the user's word, and what can be done without mitmproxy is done without it."""

import tempfile
from pathlib import Path

import pytest
from msgspec import Struct

from cli.terminal import terminal
from dragoman.cli import main

CONFIG = """
[server]
listen = "127.0.0.1:8799"
[upstreams.google]
kind = "simulator"
[upstreams.studio]
kind = "gemini"
api_key = "k"
[upstreams.cloud]
kind = "vertex-gemini"
project = "p"
location = "europe-west1"
[upstreams.assist]
kind = "code-assist"
[upstreams.claude]
kind = "anthropic"
api_key = "k"
"""
ENTRIES = '[intercept.one]\nupstream = "studio"\n[intercept.two]\nupstream = "assist"\n'


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A folder with a configuration, from where no mitmproxy is found."""
    (tmp_path / "dragoman.toml").write_text(CONFIG)
    (tmp_path / "bin").mkdir()
    return tmp_path


def find(folder: Path) -> dict[str, str]:
    return {"PATH": str(folder / "bin"), "XDG_DATA_HOME": str(folder / "data"), "TMPDIR": str(folder)}


class Done(Struct):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(alone, monkeypatch, capsys):
    """The command in this process, without a terminal."""
    for name, value in find(alone).items():
        monkeypatch.setenv(name, value)
    for name in ("GEMINI_API_KEY", "DRAGOMAN_CONFIG", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(alone)
    monkeypatch.setattr(tempfile, "tempdir", str(alone))

    def run(*arguments: str) -> Done:
        try:
            code = main(["intercept", *arguments])
        except SystemExit as error:
            code = error.code
        return Done(code, *capsys.readouterr())

    return run


def test_without_a_terminal_nothing_is_installed_and_advice_is_printed(alone, run):
    done = run("--name", "google", "--", "true")
    assert done.returncode == 2
    assert "run `dragoman intercept --install`, or put mitmdump on the PATH" in done.stderr
    assert not (alone / "data").exists()


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["n\n", "\n"])
def test_at_a_terminal_a_question_comes_first_and_anything_but_yes_is_no(alone, typed):
    with terminal(alone, "intercept", "--name", "google", "--", "true", **find(alone)) as seen:
        seen.expect("Install it (mitmproxy>=")
        seen.expect("[y/N] ")
        seen.type(typed)
        seen.expect("run `dragoman intercept --install`")
        assert seen.ended() == 2
    assert not (alone / "data").exists()


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("studio", ["GOOGLE_GEMINI_BASE_URL"]),
        ("cloud", ["GOOGLE_VERTEX_BASE_URL"]),
        ("assist", ["CODE_ASSIST_ENDPOINT"]),
        ("google", ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT"]),
    ],
)
def test_variables_that_send_a_client_here_are_printed_without_mitmproxy(run, name, printed):
    done = run("--print-env", "--name", name)
    lines = [f"export {variable}=http://127.0.0.1:8799/intercept/{name}" for variable in printed]
    assert (done.returncode, done.stdout.splitlines()) == (0, lines)


def test_all_entries_are_printed_and_a_second_value_of_a_variable_is_a_comment(run):
    lines = run("--print-env").stdout.splitlines()
    base = "http://127.0.0.1:8799/intercept"
    assert f"export GOOGLE_GEMINI_BASE_URL={base}/google" in lines
    assert f"#export GOOGLE_GEMINI_BASE_URL={base}/studio   # or only this entry, with --name studio" in lines
    assert f"#export CODE_ASSIST_ENDPOINT={base}/assist   # or only this entry, with --name assist" in lines
    exported = [line.partition("=")[0] for line in lines if not line.startswith("#")]
    assert len(exported) == len(set(exported)) == 3


def test_each_entry_has_the_variable_of_its_upstream(alone, run):
    (alone / "dragoman.toml").write_text(CONFIG + ENTRIES)
    done = run("--print-env", "--session", "s 1;$(x)", "--gateway", "http://127.0.0.1:1/")
    assert done.stdout.splitlines() == [
        "export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:1/intercept/one@s%201%3B%24%28x%29",
        "export CODE_ASSIST_ENDPOINT=http://127.0.0.1:1/intercept/two@s%201%3B%24%28x%29",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--print-env", "--name", "claude"],
            "no entry or Gemini upstream 'claude'; known names are google, studio, cloud, assist",
        ),
        (["--name", "nobody", "--", "true"], "no entry or Gemini upstream 'nobody'"),
        ([], "usage: dragoman intercept"),
        (["replay", "missing.json"], "missing.json: cannot read the file"),
        (["replay", "dragoman.toml"], "not a saved exchange"),
    ],
)
def test_impossible_options_get_a_readable_error(run, arguments, words):
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gateway_on_another_machine_is_not_used(alone, run):
    (alone / "bin" / "mitmdump").write_text("#!/bin/sh\nexit 1\n")
    (alone / "bin" / "mitmdump").chmod(0o755)
    done = run("--name", "studio", "--gateway", "http://gateway.example:8741", "--", "true")
    assert done.returncode == 2
    assert "is not on loopback" in done.stderr


def test_a_proxy_that_does_not_start_is_reported_with_its_own_output(alone, run):
    (alone / "bin" / "mitmdump").write_text("#!/bin/sh\necho it is broken >&2\nexit 3\n")
    (alone / "bin" / "mitmdump").chmod(0o755)
    done = run("--name", "studio", "--gateway", "http://127.0.0.1:1", "--", "true")
    assert done.returncode == 2
    assert "mitmdump did not start:\nit is broken" in done.stderr
    assert not [*alone.glob("dragoman-intercept-*")]


def test_arguments_after_two_dashes_are_only_for_commands(capsys):
    with pytest.raises(SystemExit):
        main(["config", "--", "check"])
    assert "this subcommand runs no other command; remove: -- check" in capsys.readouterr().err
