"""Settings of external servers in the file and in the variable, and the errors for invalid entries."""

import json

import pytest

from dragoman.config import ConfigError, load
from dragoman.mcp.client.tool_list import make_tool_name

VARIABLE = "GEMINI_MCP_SERVERS"
FILE = """
[tools.files]
command = "serve-files"
args = ["--root", "/srv"]
env = { TOKEN = "env:FILES_TOKEN", LEVEL = "debug" }
allow = ["read_*"]
[tools.far]
url = "https://far.test/mcp"
headers = { authorization = "Bearer env:FAR_TOKEN", x-team = "blue" }
trusted = true
"""


def read(tmp_path, text, **environment):
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    return load(file, environment)


def entries(*servers):
    return {VARIABLE: json.dumps(servers)}


def test_servers_are_configured_in_the_file_and_their_secrets_in_the_environment(tmp_path):
    config = read(tmp_path, FILE, FILES_TOKEN="f-secret", FAR_TOKEN="r-secret")  # noqa: S106
    files, far = config.tools["files"], config.tools["far"]
    assert (files.command, files.args) == ("serve-files", ("--root", "/srv"))
    assert files.env == {"TOKEN": "f-secret", "LEVEL": "debug"}
    assert (files.timeout, files.trusted, files.cwd) == (30.0, False, "")
    assert far.headers == {"authorization": "Bearer r-secret", "x-team": "blue"}
    assert {"f-secret", "r-secret", "Bearer r-secret"} <= config.secrets
    assert "debug" not in config.secrets


def test_the_variable_names_servers_with_a_file_and_without(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = entries(
        {"name": "clock", "transport": "stdio", "command": "clock", "args": ["--utc"], "env": {"A": "env:B"}},
        {"name": "web", "transport": "http", "url": "http://127.0.0.1:1/mcp"},
        {"name": "short", "command": "short"},
    )
    for config in (load(environment=output), read(tmp_path, "[server]\n", **output)):
        assert list(config.tools) == ["clock", "web", "short"]
        assert config.tools["clock"].env == {"A": "env:B"}
        assert (config.tools["clock"].cwd, config.tools["web"].cwd) == (".", "")
        assert not config.tools["web"].trusted
    assert list(read(tmp_path, FILE.partition("[tools.far]")[0], FILES_TOKEN="x", **output).tools) == [  # noqa: S106
        *config.tools,
        "files",
    ]


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("tools = 1\n", "tools", "must be a table"),
        ("[tools.a]\n", "tools.a", "either `command`, to start a server, or `url`"),
        ('[tools.a]\ncommand = "x"\nurl = "http://x"\n', "tools.a", "either `command`"),
        ('[tools.a]\nurl = "x"\n', "tools.a.url", "http:// or https://"),
        ('[tools.a]\nurl = "http://x"\nargs = ["y"]\n', "tools.a.args", "cannot be combined with `url`"),
        ('[tools.a]\nurl = "http://x"\nmax_message_bytes = 20_000\n', "tools.a.max_message_bytes", "with `url`"),
        ('[tools.a]\ncommand = "x"\nmax_message_bytes = 9\n', "tools.a.max_message_bytes", "at least 1000 bytes"),
        ('[tools.a]\ncommand = "x"\nheaders = { a = "b" }\n', "tools.a.headers", "cannot be combined with `command`"),
        ('[tools.a]\ncommand = "x"\ntimeout = 0\n', "tools.a.timeout", "more than 0"),
        ('[tools.a]\ncomand = "x"\n', "tools.a", "did you mean `command`?"),
        ('[tools.a]\ncommand = "x"\nargs = "y"\n', "tools.a.args", "Expected `array`"),
        ('[tools.a]\ncommand = "x"\nenv = { K = "env:NONE" }\n', "tools.a.env.K", "NONE is not set; set it"),
        (
            '[tools.a]\nurl = "http://x"\nheaders = { k = "Bearer env:NONE" }\n',
            "tools.a.headers.k",
            "NONE is not set; set it",
        ),
        ('[tools.a__b]\ncommand = "x"\n', "tools.a__b", "NAME__TOOL"),
        ('[tools.a_]\ncommand = "x"\n', "tools.a_", "NAME__TOOL"),
        ('[tools."a b"]\ncommand = "x"\n', "tools.a b", "letters, digits"),
        (f'[tools.{"a" * 33}]\ncommand = "x"\n', f"tools.{'a' * 33}", "1 to 32"),
    ],
)
def test_an_error_in_the_file_names_it_the_key_and_what_would_be_right(tmp_path, text, key, words):
    with pytest.raises(ConfigError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'dragoman.toml'}: {key}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("output", "key", "words"),
    [
        ("nonsense", "", "is not a JSON array of servers"),
        ('{"name": "a"}', "", "Expected `array`"),
        ('[{"command": "x"}]', "[0]", "missing required field `name`"),
        ('[{"name": "a", "comand": "x"}]', "[0]", "either `command`"),
        ('[{"name": "a", "command": 1}]', "[0].command", "Expected `str`"),
        ('[{"name": "a"}]', "[0]", "either `command`"),
        ('[{"name": "a", "transport": "sse", "url": "http://x"}]', "[0].transport", "use one of stdio, http"),
        ('[{"name": "a", "transport": "stdio", "url": "http://x"}]', "[0].command", "requires this field"),
        ('[{"name": "a", "command": "x"}, {"name": "a", "command": "y"}]', "[1].name", "twice"),
    ],
)
def test_an_error_in_the_variable_names_it_and_the_place_in_it(output, key, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        load(environment={VARIABLE: output})
    assert str(error.value).startswith(f"the environment: {VARIABLE}{key}: ")
    assert words in str(error.value)


def test_one_name_in_the_file_and_in_the_variable_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"tools.a: GEMINI_MCP_SERVERS also has a server with this name"):
        read(tmp_path, '[tools.a]\ncommand = "x"\n', **entries({"name": "a", "command": "y"}))


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("files", "read", "files__read"),
        ("files", "read-all_2", "files__read-all_2"),
        ("files", "a.b", "files__a_b_9640ca39"),
        ("files", "a/b", "files__a_b_a350328b"),
        ("files", "x" * 57, "files__" + "x" * 57),
        ("files", "x" * 58, "files__" + "x" * 48 + "_efd8a93d"),
    ],
)
def test_a_tool_is_named_after_its_server_in_letters_that_every_vendor_takes(server, tool, name):
    assert make_tool_name(server, tool) == name
    assert len(name) <= 64


def test_unknown_server_fields_of_other_programs_are_ignored_and_reported(caplog):
    output = entries(
        {"name": "a", "type": "stdio", "command": "x", "autoApprove": ["*"], "disabled": False},
        {"name": "b", "command": "y", "disabled": True},
    )
    assert list(load(environment=output).tools) == ["a"]
    assert [record.getMessage() for record in caplog.records] == [
        "GEMINI_MCP_SERVERS[0].autoApprove is unknown and ignored",
        "GEMINI_MCP_SERVERS[0].type is unknown and ignored",
    ]
