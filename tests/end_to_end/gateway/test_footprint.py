"""What the gateway takes: time until it answers, memory while it waits, packages when it is installed."""

import os
import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import httpx2
import pytest

from server.processes import serve

ASKED = {"model": "gemini-3-flash", "messages": [{"role": "user", "content": "hello"}]}
MEMORY = 80 << 20
WORK = 10.0
"""Maximum seconds of CPU time until the first answer. It finds what runs away; it is no measure of speed."""


def used(pid: int) -> tuple[float, int]:
    """Seconds of work and bytes of memory of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(fields[21]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="what a process uses is not told here")
@pytest.mark.parametrize("key", ["", "a-key"], ids=["simulator", "key"])
def test_it_starts_with_little_work_and_waits_in_little_memory(tmp_path, key):
    compiled = {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    for compiling in (True, False):
        with serve(tmp_path, GEMINI_API_KEY=key, **compiled) as command:
            path, body = ("/v1/messages/count_tokens", {}) if key else ("/v1/chat/completions", ASKED)
            reply = httpx2.post(command.base_url + path, json=body)
            assert reply.status_code == (400 if key else 200)
            seconds, memory = used(command.process.pid)
        assert memory < MEMORY
        assert compiling or seconds < WORK


def list_needed(name: str, found: set[str]) -> set[str]:
    """The packages that a package needs here, without extras."""
    for line in requires(name) or []:
        other = re.match(r"[\w.-]+", line)[0].lower()
        marker = line.partition(";")[2]
        if "extra ==" in marker or ("win32" in marker and sys.platform == "win32") or other in found:
            continue
        found.add(other)
        try:
            list_needed(other, found)
        except PackageNotFoundError:
            found.discard(other)  # for another system
    return found


def test_the_package_needs_few_others():
    found = list_needed("dragoman", set())
    assert {"msgspec", "httptools", "prometheus-client"} <= found
    assert len(found) < 25
