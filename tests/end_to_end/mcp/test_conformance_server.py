"""Dragoman's MCP server passes the official conformance suite, tasks included."""

import os
import re
import subprocess

import pytest

from dragoman.config import Config, ServerTable, SessionsTable, UpstreamTable
from dragoman.http.server import run_in_thread
from dragoman.mcp.settings import McpTable
from dragoman.server.runner import running
from npm import NODE

REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
TASKS = 10
"""Scenarios of the extension for tasks, all in the newer revision."""
_VERDICT = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed", re.MULTILINE)


@pytest.fixture
def endpoint(tmp_path):
    config = Config(
        server=ServerTable(log="off"),
        upstreams={"simulator": UpstreamTable(kind="simulator")},
        sessions=SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db"),
        mcp=McpTable(fixtures=True),
    )
    with run_in_thread(lambda: running(config, port=0, grace=1.0), "gateway") as gateway:
        yield f"{gateway.base_url}/mcp"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*deprecated as of 2026-07-28")  # the suite asks for what the older era had
@pytest.mark.parametrize("revision", REQUIRED)
def test_all_scenarios_pass(modules, tmp_path, endpoint, revision):
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [NODE, suite, "server", "--url", endpoint, "--requirements", revision, "-o", tmp_path / "checks"]
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "NO_COLOR": "1"}
    )
    result, _, unscored = done.stdout.partition("Not scored")
    verdicts = dict(map(reversed, _VERDICT.findall(result)))
    extra = set(re.findall(r"[✓✗] (\S+) \(", unscored))
    assert not [name for name, mark in verdicts.items() if mark == "✗"], done.stdout + done.stderr
    assert len(verdicts.keys() - extra) == REQUIRED[revision], done.stdout + done.stderr
    assert len([name for name in verdicts if name.startswith("tasks-")]) == (TASKS if revision > "2026" else 0)
    assert done.returncode == 0
