"""Gemini CLI without any configuration: its requests to Google's hosts reach the gateway through a real mitmproxy."""

import json
import os
import sys
from pathlib import Path

import pytest

from end_to_end.interception import MITMPROXY
from npm import NODE
from pypi import install
from real_clients.plot import PROMPT, Plot
from real_clients.stage import SOURCE
from real_clients.test_command_line_agents import GEMINI_CLI, assert_used

pytestmark = pytest.mark.slow

INTERCEPT = "import sys; from dragoman.cli import main; sys.exit(main(['intercept', *sys.argv[1:]]))"
KEY = ("gemini-api-key", {"GEMINI_API_KEY": "any"})
ACCOUNT = ("oauth-personal", {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "any"})


@pytest.fixture
def mitmproxy(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache is not None
    return install(request.config.cache.mkdir("mitmproxy"), MITMPROXY)


@pytest.mark.parametrize("account", [KEY, ACCOUNT], ids=["key", "code-assist"])
def test_gemini_cli_uses_its_tools_through_the_proxy(programs, stage, folder, mitmproxy, account):
    selected, shown = account
    plot = Plot(GEMINI_CLI, folder)
    sandbox = stage({"*": "gemini"}, plot)
    (sandbox.home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": selected}}}
    (sandbox.home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    # What the gateway calls this upstream; the command reads all hosts of Google's for a simulator.
    hosts = folder.parent / "hosts.toml"
    hosts.write_text('[upstreams.gemini]\nkind = "simulator"\n', encoding="utf-8")
    between = [sys.executable, "-c", INTERCEPT, "--config", hosts, "--gateway", sandbox.base_url, "--"]
    path = os.pathsep.join([str(mitmproxy), str(NODE.parent), os.environ["PATH"]])
    variables = {**shown, "PATH": path, "PYTHONPATH": str(SOURCE), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    command = [*between, *programs["gemini"], "--approval-mode", "yolo", "-m", "gemini-3-flash", "-p", PROMPT]
    assert_used(plot, sandbox.run(command, variables))
    assert sandbox.outside.asked <= {"play.googleapis.com", "www.googleapis.com"}
