"""What the gateway says when it starts, and where it listens."""

import json

import pytest

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


def start(tmp_path, form: str, *, is_terminal: bool) -> str:
    file = tmp_path / "dragoman.toml"
    file.write_text(FILE.format(form=form))
    config = load(file, VARIABLES)
    return describe_start(config, "http://127.0.0.1:8741", is_terminal=is_terminal, environment=VARIABLES)


def test_a_terminal_gets_a_line_for_each_thing_that_runs(tmp_path):
    printed = start(tmp_path, "auto", is_terminal=True)
    assert printed.splitlines()[1:] == [
        f"configuration: {tmp_path}/dragoman.toml",
        "upstream google: gemini, key from MY_KEY",
        "upstream local: openai, no key",
        "models: fast, and the names that an upstream knows",
        "client keys: ci",
    ]


@pytest.mark.parametrize(("form", "is_terminal"), [("auto", False), ("json", True), ("json", False)])
def test_elsewhere_it_is_one_json_line(tmp_path, form, is_terminal):
    (line,) = start(tmp_path, form, is_terminal=is_terminal).splitlines()
    fields = json.loads(line)
    assert (fields["event"], fields["models"], fields["keys"]) == ("start", ["fast"], ["ci"])
    assert fields["upstreams"]["google"] == {"kind": "gemini", "key": "key from MY_KEY"}
    assert fields["simulated"] is False


def test_no_secret_is_printed(tmp_path):
    for is_terminal in (False, True):
        assert not [
            secret for secret in VARIABLES.values() if secret in start(tmp_path, "auto", is_terminal=is_terminal)
        ]


def test_the_simulator_is_announced_only_when_it_stands_in_for_missing_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = describe_start(load(None, {}), "http://127.0.0.1:1", is_terminal=True, environment={})
    assert "configuration: the environment" in printed
    assert "the simulator answers, which is not a model: set GEMINI_API_KEY" in printed
    (tmp_path / "wanted.toml").write_text('[upstreams.sim]\nkind = "simulator"\n')
    printed = describe_start(load(tmp_path / "wanted.toml", {}), "http://127.0.0.1:1", is_terminal=True, environment={})
    assert "stands" not in printed
    assert "is not a model" not in printed


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
