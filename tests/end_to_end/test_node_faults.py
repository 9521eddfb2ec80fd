"""The fault matrix in the vendors' Node SDKs: the same cells, and the same answer in each."""

import json
import shutil
from pathlib import Path

import pytest

from end_to_end.fault_rows import CELLS, fail
from npm import install, nodejs

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parent / "simulator" / "node"


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """What the Node SDKs received in every cell; they run once."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node_modules").symlink_to(install(SOURCES, request.config.cache.mkdir("node-sdks")) / "node_modules")
    shutil.copy(SOURCES / "faults.mjs", folder)
    cells = [
        {"name": name, "client": cell.client, "model": cell.model, "streamed": cell.streamed}
        for name, cell in CELLS.items()
    ]
    (folder / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
    with fail() as gateway:
        command = ["faults.mjs", gateway.base_url, "cells.json"]
        options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 120}
        done = nodejs.node(command, return_completed_process=True, **options)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CELLS)
def test_a_fault_is_the_sdks_own_error_and_never_a_success(outcomes, name):
    cell, received = CELLS[name], outcomes[name]
    assert received["error"] is not None, received
    assert received["error"]["typed"], received
    if cell.status:
        assert (received["error"]["status"], received["text"]) == (cell.status, "")
    else:
        # A fault that comes in one packet with the first words has its true status: nothing was sent before it.
        # A reset may even destroy the words that were on their way; Gemini calls a lost connection 503.
        true = {502, 503} if cell.client == "gemini" else {502}
        assert received["text"] or received["error"]["status"] in true, received
        assert received["finish"] in {"", "failed"}
