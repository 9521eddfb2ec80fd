"""`dragoman config`: what holds and why, whether it can be used, an example, and hashed keys."""

import io
import re
import sys
import tomllib
from importlib.resources import files

import pytest
from msgspec import Struct, structs

from dragoman.cli import main
from dragoman.config import ConfigError, KeyTable, MediaTable, ServerTable, SessionsTable, UpstreamTable, load
from dragoman.gateway.search_settings import SearchTable
from dragoman.http.message import Request
from dragoman.intercept.settings import InterceptTable
from dragoman.mcp.settings import ToolServer
from dragoman.server.auth import Access, Key
from dragoman.tools.web.fetch import WebTable

EXAMPLE = files("dragoman").joinpath("example.toml").read_text(encoding="utf-8")
ENVIRONMENT = {
    "GEMINI_API_KEY": "g-secret-key",
    "ANTHROPIC_API_KEY": "a-secret-key",
    "OPENAI_API_KEY": "o-secret-key",
    "TRACKER_TOKEN": "t-secret-key",
}
FILE = """
[server]
strict = true
keys = ["env:OURS", "plain-secret", { key = "sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", name = "ci", models = ["gemini-*"], concurrency = 2 }]
limits.body = 1000
[sessions]
url = "postgresql://me:hush-hush@db/x"
[upstreams.gemini]
kind = "gemini"
api_key = "env:GEMINI_API_KEY"
[upstreams.other]
kind = "openai"
base_url = "https://host.test/v1"
api_key = "literal-secret"
text_calls = { "gemma*" = "json" }
[tools.files]
command = "serve-files"
env = { TOKEN = "env:OURS" }
[tools.far]
url = "https://host.test/mcp"
headers = { authorization = "Bearer literal-secret" }
[models]
a = "gemini/x"
b = ["gemini/x", "other/y"]
"""


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A directory without a configuration, and an environment without keys."""
    monkeypatch.chdir(tmp_path)
    for name in (*ENVIRONMENT, "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(capsys, *arguments):
    code = main(["config", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_effective_values_are_shown_with_their_source_and_without_secrets(alone, monkeypatch, capsys):
    (alone / "dragoman.toml").write_text(FILE)
    monkeypatch.setenv("GEMINI_API_KEY", "g-secret-key")
    monkeypatch.setenv("OURS", "our-secret-key")
    monkeypatch.setenv("GEMINI_USE_NATIVE_FUNCTION_CALLING", "false")
    code, captured, _ = run(capsys)
    assert code == 0
    lines = captured.splitlines()
    assert lines[0] == "# dragoman.toml"
    for line in (
        "strict = true  # the file",
        'listen = "127.0.0.1:8741"  # default',
        "limits.body = 1000  # the file",
        "limits.head = 65536  # default",
        'api_key = "[redacted]"  # the variable GEMINI_API_KEY',
        'api_key = "[redacted]"  # the file',
        '  { key = "env:OURS", name = "key-b1a7c6f569a3" },',
        '  { key = "[redacted]", name = "key-cc0e7608b73e" },',
        '  { key = "sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", name = "ci", models = ["gemini-*"], concurrency = 2 },',
        'text_calls = { "gemma*" = "json" }  # the file',
        "use_native_function_calling = false  # the variable GEMINI_USE_NATIVE_FUNCTION_CALLING",
        'env = { "TOKEN" = "[redacted]" }  # the file',
        'headers = { "authorization" = "[redacted]" }  # the file',
        '"b" = ["gemini/x", "other/y"]  # dragoman.toml',
    ):
        assert line in lines
    for secret in ("g-secret", "our-secret", "plain-secret", "literal-secret", "hush-hush"):
        assert secret not in captured


def test_the_shown_configuration_is_a_file_with_the_same_meaning(alone, monkeypatch, capsys):
    (alone / "dragoman.toml").write_text(FILE)
    environment = {"GEMINI_API_KEY": "g-secret-key", "OURS": "our-secret-key"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    _, captured, _ = run(capsys, "show")
    (alone / "shown.toml").write_text(captured)
    shown, real = load(alone / "shown.toml"), load(alone / "dragoman.toml")
    assert structs.replace(shown.server, keys=()) == structs.replace(real.server, keys=())
    assert (shown.models, list(shown.upstreams)) == (real.models, list(real.upstreams))
    assert shown.tools["files"].command == real.tools["files"].command
    assert [key.name for key in shown.keys] == [key.name for key in real.keys]


def test_the_file_of_the_store_is_shown_for_backups(alone, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(alone))
    assert f'url = "sqlite:///{alone}/dragoman/sessions.sqlite3"  # default' in run(capsys)[1].splitlines()


def test_automatic_upstreams_show_their_reason(alone, monkeypatch, capsys):
    assert 'kind = "simulator"  # no key is set' in run(capsys)[1]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-secret-key")
    captured = run(capsys)[1]
    assert 'api_key = "[redacted]"  # the variable ANTHROPIC_API_KEY' in captured
    assert "[upstreams.simulator]" not in captured


def test_external_servers_from_the_variable_show_their_source(alone, monkeypatch, capsys):
    monkeypatch.setenv("GEMINI_MCP_SERVERS", '[{"name": "clock", "command": "tick", "env": {"TOKEN": "t-secret"}}]')
    captured = run(capsys)[1]
    table = captured.partition("[tools.clock]\n")[2].splitlines()
    for line in (
        'command = "tick"  # the variable GEMINI_MCP_SERVERS',
        'env = { "TOKEN" = "[redacted]" }  # the variable GEMINI_MCP_SERVERS',
        "pinned = {}  # default",
        "timeout = 30.0  # default",
    ):
        assert line in table
    assert "t-secret" not in captured


@pytest.mark.parametrize("place", [("--config", "FILE", "check"), ("check", "--config", "FILE")])
def test_a_file_is_checked(alone, capsys, place):
    file = alone / "other.toml"
    file.write_text("[server]\nstrict = true\n")
    arguments = [str(file) if word == "FILE" else word for word in place]
    assert run(capsys, *arguments)[:2] == (
        0,
        f"{file}: the configuration is valid; to test the upstreams, run `dragoman doctor`\n",
    )
    file.write_text('[server]\nlisten = "0.0.0.0:80"\n')
    code, _, captured = run(capsys, *arguments)
    assert (code, captured.startswith(f"dragoman: {file}: server.keys: ")) == (2, True)


def test_an_unknown_tool_of_an_agent_is_reported(alone, capsys):
    (alone / "dragoman.toml").write_text(
        '[tools.files]\ncommand = "x"\n[agents.a]\nmodel = "m"\n'
        'tools = ["files", "files__read", "file*", "*", "web_fetch", "web_*", "fils", "fils__read", "other_*"]\n'
    )
    code, _, captured = run(capsys, "check")
    assert code == 0
    assert [line.partition("agents.a.tools: ")[2] for line in captured.splitlines()] == [
        "unknown tool or server 'fils': did you mean files?",
        "unknown tool or server 'fils__read': did you mean files?",
        "unknown tool or server 'other_*'; known names are files, web_fetch, read_artifact",
    ]


def test_a_wrong_file_is_not_shown(alone, capsys):
    (alone / "dragoman.toml").write_text("[server]\nlistn = 1\n")
    code, captured, error = run(capsys)
    assert (code, captured) == (2, "")
    assert "did you mean `listen`?" in error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sever]\n", "did you mean `server`?"),
        (
            "[wholly]\n",
            "known names are agents, intercept, mcp, media, models, prices, search, server, sessions, tools, upstreams, web",
        ),
        ("[server]\nhartbeat = 1\n", "did you mean `heartbeat`?"),
        ("[server.limits]\nbdy = 1\n", "did you mean `body`?"),
        ("[server.retries]\nmst = 1\n", "did you mean `most`?"),
        ('[server]\nkeys = [{ key = "k", modles = [] }]\n', "did you mean `models`?"),
        ('[upstreams.a]\nkind = "gemini"\napikey = "x"\n', "did you mean `api_key`?"),
        ("[sessions]\nkeepdays = 1\n", "did you mean `keep_days`?"),
        ('[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\n[models]\nm = "gemni/x"\n', "did you mean `gemini`?"),
    ],
)
def test_an_unknown_key_is_reported_with_the_nearest_known_one(tmp_path, text, words):
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(words)):
        load(file, {})


def test_the_example_can_be_used_as_it_is(alone, capsys):
    code, captured, _ = run(capsys, "example")
    assert (code, captured) == (0, EXAMPLE)
    (alone / "dragoman.toml").write_text(captured)
    config = load(alone / "dragoman.toml", ENVIRONMENT)
    assert {table.kind for table in config.upstreams.values()} >= {"gemini", "anthropic", "openai", "code-assist"}


def test_what_the_example_leaves_out_is_what_holds_without_it(alone):
    (alone / "as-it-is.toml").write_text(EXAMPLE)
    (alone / "in-full.toml").write_text(re.sub(r"^#(?=\w)", "", EXAMPLE, flags=re.MULTILINE))
    as_it_is, in_full = (load(alone / name, ENVIRONMENT) for name in ("as-it-is.toml", "in-full.toml"))
    assert structs.replace(as_it_is, source="") == structs.replace(in_full, source="")


TABLES = [
    ServerTable,
    SessionsTable,
    MediaTable,
    WebTable,
    SearchTable,
    UpstreamTable,
    KeyTable,
    ToolServer,
    InterceptTable,
]


@pytest.mark.parametrize("table", TABLES)
def test_the_example_has_every_key(table):
    document = tomllib.loads(re.sub(r"^#(?=\w)", "", EXAMPLE, flags=re.MULTILINE))
    assert document
    for field in structs.fields(table):
        inner = structs.fields(field.type) if isinstance(field.type, type) and issubclass(field.type, Struct) else ()
        for name in [each.name for each in inner] or [field.name]:
            assert re.search(rf"(?<!\w){name} = ", EXAMPLE), name


def test_a_hashed_key_lets_its_key_in(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("my-key\n"))
    code, captured, _ = run(capsys, "hash-key")
    assert code == 0
    access = Access([Key(hash=captured.strip().removeprefix("sha256:"), name="me")])
    request = Request("GET", "/", (("host", "x"), ("x-api-key", "my-key")))
    assert access.authorize(request).name == "me"


def test_a_new_key_is_made_with_its_hash(monkeypatch, capsys):
    _, captured, _ = run(capsys, "hash-key", "--new")
    key, hashed = captured.split()
    assert len(key) > 40
    monkeypatch.setattr(sys, "stdin", io.StringIO(key))
    assert run(capsys, "hash-key")[1].strip() == hashed


def test_no_key_is_hashed_from_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert run(capsys, "hash-key")[0] == 2
