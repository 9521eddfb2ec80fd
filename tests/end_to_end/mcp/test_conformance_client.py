"""Dragoman's MCP client passes the official conformance suite."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_peers import PEERS
from npm import NODE, assert_no_registry_is_named

REQUIRED = {"2025-11-25": 18, "2026-07-28": 32}
_VERDICT = re.compile(r"^([✓✗]) (\S+): \d+ passed, \d+ failed", re.MULTILINE)


def test_packages_are_pinned_and_no_registry_is_named():
    assert_no_registry_is_named(Path(__file__).parent / "node")


@pytest.mark.slow
@pytest.mark.parametrize("revision", REQUIRED)
def test_all_required_scenarios_pass(modules, tmp_path, revision):
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    client = f"{sys.executable} {PEERS / 'conformance_client.py'}"
    command = [NODE, suite, "client", "--command", client, "--requirements", revision, "--timeout", "600000"]
    environment = {**os.environ, "NO_COLOR": "1", "CONFORMANCE_GATES": str(tmp_path)}
    done = subprocess.run(  # noqa: S603
        [*command, "-o", tmp_path], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    result, _, unscored = done.stdout.partition("Not scored")
    extra = set(re.findall(r"[✓✗] (\S+) \(", unscored))
    verdicts = {name: mark for mark, name in _VERDICT.findall(result) if name not in extra}
    assert not [name for name, mark in verdicts.items() if mark == "✗"], done.stdout + done.stderr
    assert len(verdicts) == REQUIRED[revision], done.stdout + done.stderr
    assert done.returncode == 0
