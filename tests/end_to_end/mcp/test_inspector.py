"""The MCP Inspector from npm as a client of the gateway: over stdio and HTTP, in both protocol revisions.

Packages that only its page in a browser needs are left out, by `overrides` in package.json: they are not for every machine.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import Config, KeyTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.http.server import run_in_thread
from dragoman.server.runner import running
from npm import NODE

COMMAND = (sys.executable, "-c", "import sys; from dragoman.cli import main; sys.exit(main())", "mcp")
QUERY = ("--method", "tools/call", "--tool-name", "query", "--tool-args-json")
NO_TOOL_ERROR, TOOL_ERROR, NO_KEY = 0, 5, 3


class Inspector:
    """Runs the inspector without a browser."""

    def __init__(self, modules: Path, folder: Path) -> None:
        self._program = modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
        self._folder = folder
        (folder / "dragoman.toml").write_text(
            f'[upstreams.simulator]\nkind = "simulator"\n[server]\nlog = "off"\n'
            f'[sessions]\nurl = "sqlite:///{folder}/sessions.db"\n'
        )

    def run(self, *arguments: str, code: int = 0) -> Any:
        """Return the first document it prints; the rest is about that."""
        known = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        environment = {**known, "HOME": str(self._folder), "XDG_STATE_HOME": str(self._folder)}
        passed = [word for name in ("PYTHONPATH",) if name in known for word in ("-e", f"{name}={known[name]}")]
        done = subprocess.run(  # noqa: S603
            [NODE, self._program, "--cli", *passed, *arguments, "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=self._folder,
            env=environment,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[0]) if done.stdout.strip() else None


@pytest.fixture
def inspector(modules, tmp_path):
    return Inspector(modules, tmp_path)


@pytest.mark.slow
def test_on_a_pipe_it_finds_portable_tools_and_calls_them(inspector):
    listed = inspector.run(*COMMAND, "--method", "tools/list", "--strict")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["query", "search", "fetch"]
    answered = inspector.run(*COMMAND, *QUERY, '{"prompt": "Who are you?"}')
    assert "simulator" in answered["result"]["structuredContent"]["answer"]
    failed = inspector.run(*COMMAND, *QUERY, '{"prompt": "x", "parts": [{}]}', code=TOOL_ERROR)
    assert failed["result"]["isError"] is True


@pytest.mark.slow
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_over_http_it_shows_its_key_and_calls_tools(inspector, tmp_path, era):
    config = Config(
        server=ServerTable(log="off"),
        keys=(KeyTable(key="secret", name="ann"),),
        upstreams={"simulator": UpstreamTable(kind="simulator")},
        sessions=SessionsTable(url=f"sqlite:///{tmp_path}/http.db"),
    )
    with run_in_thread(lambda: running(config, port=0, grace=1.0), "gateway") as gateway:
        endpoint = (f"{gateway.base_url}/mcp", "--transport", "http", "--protocol-era", era)
        key = ("--header", "Authorization: Bearer secret")
        answered = inspector.run(*endpoint, *key, *QUERY, '{"prompt": "Who are you?"}')
        assert "simulator" in answered["result"]["structuredContent"]["answer"]
        inspector.run(*endpoint, "--method", "tools/list", code=NO_KEY)
