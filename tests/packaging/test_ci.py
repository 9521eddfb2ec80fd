"""The time budget of CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(("until", "outcome"), [("1", "skipped"), ("", "passed")])
def test_tests_without_time_are_skipped_and_listed(until, outcome):
    file = "tests/simulator/test_faults.py"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", file, "-k", "an_invalid_time"]
    variables = {**os.environ, "DRAGOMAN_TESTS_UNTIL": until}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=variables)  # noqa: S603
    assert (done.returncode, f"3 {outcome}" in done.stdout) == (0, True), done.stdout
    assert (f"not run: {file}: 3" in done.stdout) == bool(until)
