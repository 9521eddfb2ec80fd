"""What the gateway says when it starts, and where it listens."""

import io
import json

import pytest

from dragoman.cli import main
from dragoman.cli.provenance import describe_start, write_first_config
from dragoman.cli.serve import announce
from dragoman.config import load

FILE = """
[server]
log_format = "{form}"
keys = [{{ key = "env:CI_KEY", name = "ci" }}]
[upstreams.google]
kind = "gemini"
api_key = "env:MY_KEY"
[upstreams.local]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
[models]
fast = "google/gemini-3-flash"
"""
VARIABLES = {"CI_KEY": "sixteen-characters", "MY_KEY": "secret-of-google"}


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self):
        return True


def describe(file, environment, *, is_terminal: bool = True) -> str:
    out = Terminal() if is_terminal else io.StringIO()
    return describe_start(load(file, environment), "http://127.0.0.1:8741", out=out, environment=environment)


def start(tmp_path, form: str, *, is_terminal: bool) -> str:
    file = tmp_path / "dragoman.toml"
    file.write_text(FILE.format(form=form))
    return describe(file, VARIABLES, is_terminal=is_terminal)


def test_a_terminal_gets_a_line_for_each_thing_that_runs(tmp_path):
    printed = start(tmp_path, "auto", is_terminal=True)
    assert printed.splitlines()[1:] == [
        f"configuration: {tmp_path}/dragoman.toml",
        "upstream google: gemini, key from the variable MY_KEY",
        "upstream local: openai, http://127.0.0.1:1/v1, no key",
        "models: fast, and the names that an upstream knows",
        "client keys: ci",
    ]


@pytest.mark.parametrize(("form", "is_terminal"), [("auto", False), ("json", True), ("json", False)])
def test_elsewhere_it_is_one_json_line(tmp_path, form, is_terminal):
    (line,) = start(tmp_path, form, is_terminal=is_terminal).splitlines()
    fields = json.loads(line)
    assert (fields["event"], fields["models"], fields["keys"]) == ("start", ["fast"], ["ci"])
    assert fields["upstreams"]["google"] == {"kind": "gemini", "key": "key from the variable MY_KEY"}
    assert fields["simulated"] is False


def test_no_secret_is_printed(tmp_path):
    for is_terminal in (False, True):
        assert not [
            secret for secret in VARIABLES.values() if secret in start(tmp_path, "auto", is_terminal=is_terminal)
        ]


def test_the_simulator_is_announced_only_when_it_stands_in_for_missing_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    printed = describe(None, {})
    assert "configuration: no file, only the environment; `dragoman config init` writes one\n" in printed
    assert "\x1b[33mthe simulator answers, which is not a model: set GEMINI_API_KEY" in printed
    assert "models: the names that an upstream knows\n" in printed
    assert "client keys: none, every program of this machine may use it\n" in printed
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in describe(None, {})
    assert json.loads(describe(None, {}, is_terminal=False))["config"] is None
    (tmp_path / "wanted.toml").write_text('[upstreams.sim]\nkind = "simulator"\n')
    printed = describe(tmp_path / "wanted.toml", {})
    assert "upstream sim: simulator, no key needed\n" in printed
    assert "is not a model" not in printed


@pytest.mark.parametrize(
    ("table", "environment", "line"),
    [
        (None, {"OPENAI_API_KEY": "o"}, "openai: openai-responses, key from the variable OPENAI_API_KEY"),
        (None, {"GOOGLE_CLOUD_PROJECT": "p"}, "vertex: vertex-gemini, Google's application default credentials"),
        ('kind = "gemini"\napi_key = "g"', {}, "a: gemini, key from the file"),
        ('kind = "code-assist"\ncredentials = "grant.json"', {}, "a: code-assist, credentials file grant.json"),
        (
            'kind = "code-assist"\naccess_token = "env:T"',
            {"T": "t"},
            "a: code-assist, access token from the variable T",
        ),
    ],
)
def test_each_upstream_says_where_its_credentials_come_from(tmp_path, monkeypatch, table, environment, line):
    monkeypatch.chdir(tmp_path)
    if table is not None:
        (tmp_path / "dragoman.toml").write_text(f"[upstreams.a]\n{table}\n")
    assert f"upstream {line}\n" in describe(None, environment)


def test_google_credentials_without_their_extra_are_announced(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dragoman.upstreams.google_tokens.find_spec", lambda name: None)
    assert 'default credentials, which need: pip install "dragoman[google]"\n' in describe(
        None, {"GOOGLE_CLOUD_PROJECT": "p"}
    )


def test_scripts_find_the_address_on_standard_output_and_a_log_that_is_off_says_nothing(tmp_path, monkeypatch, capsys):
    file = tmp_path / "c.toml"
    file.write_text('[server]\nlog = "off"\n')
    announce(load(file, {}), "http://127.0.0.1:5")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("dragoman listening on http://127.0.0.1:5\n", "")


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"GEMINI_API_KEY": "k"},
        {"GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"},
        {"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
        {"GOOGLE_CLOUD_PROJECT": "p"},
    ],
)
def test_the_first_configuration_works_at_once(tmp_path, monkeypatch, environment):
    monkeypatch.chdir(tmp_path)
    lines = "\n".join(write_first_config(environment))
    assert not [value for name, value in environment.items() if name.endswith("_KEY") and f'"{value}"' in lines]
    file = tmp_path / "dragoman.toml"
    file.write_text(lines)
    written = load(file, environment)
    file.unlink()
    assert load(None, environment).upstreams == written.upstreams


def test_the_users_own_file_is_read_where_there_is_no_other(tmp_path, monkeypatch):
    folder, own = tmp_path / "here", tmp_path / "home" / ".config" / "dragoman"
    folder.mkdir()
    own.mkdir(parents=True)
    monkeypatch.chdir(folder)
    (own / "dragoman.toml").write_text('[models]\nmine = "simulator/m"\n')
    environment = {"HOME": str(tmp_path / "home")}
    assert [*load(None, environment).models] == ["mine"]
    elsewhere = {**environment, "XDG_CONFIG_HOME": str(tmp_path / "elsewhere")}
    assert [*load(None, elsewhere).models] == []
    (folder / "dragoman.toml").write_text('[models]\nlocal = "simulator/m"\n')
    assert [*load(None, environment).models] == ["local"]


@pytest.mark.parametrize("command", ["serve --port 0", "serve --port 0 --workers 2", "config check", "doctor"])
@pytest.mark.parametrize(
    "needs", [("[tools.x]\ncommand", "tools.x", "mcp"), ("[sessions]\nurl", "sessions.url", "postgres")]
)
def test_a_missing_extra_is_named_before_anything_starts(tmp_path, monkeypatch, capsys, command, needs):
    text, key, extra = needs
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    monkeypatch.setattr("dragoman.server.runner.find_spec", lambda name: None)
    (tmp_path / "dragoman.toml").write_text(f"{text} = 'postgresql://db/x'\n")
    assert main(command.split()) == 2
    printed = "".join(capsys.readouterr())
    assert (
        f'{key}: needs the extra `{extra}`, which is not installed; run: pip install "dragoman[{extra}]"\n' in printed
    )


def test_a_port_replaces_only_the_configured_port(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    (tmp_path / "dragoman.toml").write_text('[server]\nlisten = "[::1]:1"\nkeys = ["a-key-of-16-characters"]\n')
    served = []
    monkeypatch.setattr("dragoman.http.server.choose_runner", lambda: served.append)
    monkeypatch.setattr("dragoman.server.runner.serve", lambda config, **_: config.server.listen)
    assert main(["serve", "--port", "9000"]) == 0
    assert served == ["[::1]:9000"]
