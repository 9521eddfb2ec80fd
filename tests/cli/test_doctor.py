"""`dragoman doctor`: what works, what does not, and what to do about it."""

import json
import re
import socket
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.simulator.runner import in_thread
from dragoman.simulator.script import read_script

KINDS = {
    "gem": 'kind = "gemini"\napi_key = "k"\n',
    "claude": 'kind = "anthropic"\napi_key = "k"\n',
    "resp": 'kind = "openai-responses"\napi_key = "k"\n',
    "gpt": 'kind = "openai"\napi_key = "k"\n',
    "vertex": 'kind = "vertex-gemini"\nproject = "p"\naccess_token = "t"\n',
    "vertex-claude": 'kind = "vertex-anthropic"\nproject = "p"\naccess_token = "t"\n',
    "assist": 'kind = "code-assist"\naccess_token = "t"\n',
    "sim": 'kind = "simulator"\n',
}
OPENAI = ("resp", "gpt")


def write(tmp_path, base_url, names, models=""):
    tables = []
    for name in names:
        base = f"{base_url}/v1" if name in OPENAI else base_url
        tables.append(f'[upstreams.{name}]\n{KINDS[name]}base_url = "{base}"\n')
    file = tmp_path / "dragoman.toml"
    file.write_text("\n".join([*tables, models]))
    return str(file)


@contextmanager
def reject_all(body):
    """Run a server that rejects every request; yield its URL."""

    class Rejecting(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"] or 0))
            self.send_response(400)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815  the name that http.server calls

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Rejecting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run_doctor(capsys, *arguments):
    code = main(["doctor", "--json", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_kind_of_upstream_is_tried_with_a_tool(tmp_path, capsys):
    with in_thread() as simulator:
        code, checks = run_doctor(capsys, "--config", write(tmp_path, simulator.base_url, KINDS))
    assert not [check for check in checks if not check["ok"]]
    assert code == 0
    tried = {check["upstream"]: check for check in checks if check["check"] == "tool round trip"}
    assert set(tried) == set(KINDS)
    assert all("21" in check["detail"] for check in tried.values())
    assert tried["gpt"]["model"] == "gpt-6-luna"  # the first that the server lists
    assert {check["check"] for check in checks} == {"configuration", "credentials", "reachable", "tool round trip"}


def test_the_configured_models_are_tried_each_once_and_only_the_named_one_if_one_is_named(tmp_path, capsys):
    models = (
        '[models]\na = "gem/gemini-2.5-flash"\nb = ["gem/gemini-2.5-flash", "gem/gemini-3-flash"]\n"c-*" = "gem/*"\n'
    )
    with in_thread() as simulator:
        file = write(tmp_path, simulator.base_url, ["gem", "claude"], models)
        _, checks = run_doctor(capsys, "--config", file)
        tried = [check["model"] for check in checks if check["upstream"] == "gem" and check["model"]]
        assert tried == ["gemini-2.5-flash", "gemini-3-flash"]
        _, checks = run_doctor(capsys, "--config", file, "--model", "claude/claude-opus-4-8")
        assert {check["upstream"] for check in checks} == {"", "claude"}
        assert checks[-1]["model"] == "claude-opus-4-8"


@pytest.mark.parametrize("name", ["gem", "claude", "resp"])
def test_a_rejected_key_is_reported_with_advice_and_without_the_key(tmp_path, capsys, name):
    with in_thread(key="another") as simulator:
        file = write(tmp_path, simulator.base_url, [name])
        code, checks = run_doctor(capsys, "--config", file)
    assert code == 1
    assert not checks[-1]["ok"]
    assert "rejected the gateway's credentials" in checks[-1]["detail"]
    assert checks[-1]["remedy"] == f"check the key or credentials in [upstreams.{name}]"


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gem/gemini-3-flash~404", "use a model that the upstream has"),
        ("gem/gemini-3-flash~429", "quota"),
        ("gem/gemini-3-flash~503", "overloaded"),
        ("gem/gemini-3-flash~bad-json", "check kind and base_url"),
        ("gem/gemini-3-flash~hang", "--timeout"),
    ],
)
def test_each_trouble_has_its_remedy(tmp_path, capsys, model, words):
    with in_thread() as simulator:
        file = write(tmp_path, simulator.base_url, ["gem"])
        code, checks = run_doctor(capsys, "--config", file, "--model", model, "--timeout", "0.5")
    assert code == 1
    assert words in checks[-1]["remedy"]


def test_a_model_that_does_not_call_the_tool_is_reported(tmp_path, capsys):
    script = tmp_path / "script.toml"
    script.write_text('[[step]]\ntext = "no tools for me"\n')
    with in_thread(script=read_script(script)) as simulator:
        code, checks = run_doctor(capsys, "--config", write(tmp_path, simulator.base_url, ["gem"]))
    assert code == 1
    assert "without calling the tool" in checks[-1]["detail"]
    assert checks[-1]["remedy"] == 'if the model has no tools, set text_calls = "json" in [upstreams.gem]'


def test_a_server_that_rejects_tools_is_reported_with_text_calls_as_the_remedy(tmp_path, capsys):
    body = b'{"error":{"message":"registry.ollama.ai/library/gemma3:4b does not support tools","type":"api_error"}}'
    with reject_all(body) as url:
        file = tmp_path / "dragoman.toml"
        file.write_text(f'[upstreams.local]\nkind = "openai"\nbase_url = "{url}/v1"\n[models]\nm = "local/gemma3:4b"\n')
        code, checks = run_doctor(capsys, "--config", str(file))
    assert code == 1
    assert 'text_calls = "json" in [upstreams.local]' in checks[-1]["remedy"]


def test_a_model_with_text_calls_is_tried_with_them(tmp_path, capsys):
    script = tmp_path / "script.toml"
    call = '<tool_call>\\n{\\"name\\": \\"get_weather\\", \\"arguments\\": {\\"city\\": \\"Tokyo\\"}}\\n</tool_call>'
    script.write_text(f'[[step]]\ntext = "{call}"\n[[step]]\ntext = "It is warm."\n')
    with in_thread(script=read_script(script)) as simulator:
        file = write(tmp_path, simulator.base_url, ["gem"])
        Path(file).write_text(Path(file).read_text().replace("api_key", 'text_calls = "json"\napi_key'))
        code, checks = run_doctor(capsys, "--config", file)
    assert (code, checks[-1]["detail"]) == (0, 'get_weather({"city":"Tokyo"}) -> It is warm.')


def test_a_missing_key_is_reported_readably(tmp_path, capsys):
    file = tmp_path / "dragoman.toml"
    file.write_text('[upstreams.a]\nkind = "gemini"\n')
    assert main(["doctor", "--config", str(file)]) == 2
    captured = capsys.readouterr().out
    assert "upstreams.a.api_key" in captured
    assert "env:GEMINI_API_KEY" in captured


def test_an_unreachable_upstream_is_reported_readably(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[upstreams.b]\nkind = "openai"\nbase_url = "http://127.0.0.1:{port}"\n')
    assert main(["doctor", "--config", str(file)]) == 1
    captured = capsys.readouterr().out.splitlines()
    assert captured[0].startswith("ok    configuration: ")
    assert captured[1] == "ok    b credentials: none are sent"
    assert captured[2].startswith(f"FAIL  b reachable: 127.0.0.1:{port} cannot be reached")
    assert captured[3] == "      what to do: check base_url in [upstreams.b], the network and HTTPS_PROXY"


def test_invalid_google_credentials_are_reported(tmp_path, capsys):
    grant = tmp_path / "grant.json"
    grant.write_text("{}")
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[upstreams.v]\nkind = "vertex-gemini"\nproject = "p"\ncredentials = "{grant}"\n')
    code, checks = run_doctor(capsys, "--config", str(file))
    assert code == 1
    assert checks[-1]["check"] == "credentials"
    assert "neither a service account key nor a refresh token" in checks[-1]["detail"]


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("[server]\nlistn = 1\n", (), "listn"),
        ('[server]\nlisten = "0.0.0.0:1"\n', (), "add a key"),
        ("", ("--model", "nobody/x"), "must be UPSTREAM/MODEL"),
    ],
)
def test_an_invalid_configuration_is_reported_first(tmp_path, capsys, text, arguments, words):
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    code, checks = run_doctor(capsys, "--config", str(file), *arguments)
    assert code == 2
    assert [check["check"] for check in checks] == ["configuration"]
    assert words in checks[0]["detail"]


def test_without_any_key_the_simulator_is_examined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("GEMINI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_CLOUD_PROJECT", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    code, checks = run_doctor(capsys)
    assert code == 0
    assert checks[-1]["upstream"] == "simulator"


def test_external_tool_servers_are_started_and_their_tools_listed_with_hashes(tmp_path, capsys):
    peer = Path(__file__).parents[1] / "mcp" / "peers" / "plain.py"
    tables = [
        '[upstreams.sim]\nkind = "simulator"\n',
        f'[tools.good]\ncommand = "{sys.executable}"\nargs = ["{peer}"]\nallow = ["c*"]\npinned = {{ calls = "{"0" * 32}" }}\n',
        f'[tools.bad]\ncommand = "{sys.executable}"\nargs = ["{peer}", "broken"]\nenv = {{ TOKEN = "t0ken-secret" }}\n',
    ]
    file = tmp_path / "dragoman.toml"
    agent = '[agents.a]\nmodel = "m"\ntools = ["good", "good__colours", "bad__x", "goood", "web_fetch"]\n'
    file.write_text("\n".join([*tables, agent]))
    code, checks = run_doctor(capsys, "--config", str(file))
    words = [(check["detail"], check["remedy"]) for check in checks if check["check"] == "agents.a.tools"]
    assert [detail for detail, _ in words] == [
        "unknown tool or server 'goood': did you mean good?",
        "'good__colours' matches no tool of its server",
    ]
    assert words[1][1] == "did you mean good__colour?"
    about = [check for check in checks if check["server"]]
    assert code == 1
    assert [(check["server"], check["check"], check["ok"]) for check in about] == [
        ("good", "tools", True),
        ("good", "definitions", True),
        ("good", "definitions", False),
        ("bad", "tools", False),
    ]
    assert about[0]["detail"] == "2 tools over stdio, 2025-11-25, plain 0"
    assert re.fullmatch(r'pinned = \{ "change" = "[0-9a-f]{32}", "colour" = "[0-9a-f]{32}" \}', about[1]["detail"])
    assert about[2]["detail"].startswith(f"calls is pinned to {'0' * 32}, but its definition now has the hash ")
    assert about[3]["detail"].endswith("there is no database at db.test, token [redacted]")
    assert "[tools.bad]" in about[3]["remedy"]
    code, checks = run_doctor(capsys, "--config", str(file), "--model", "sim/gemini-3-flash")
    assert (code, {check["server"] for check in checks}) == (0, {""})
