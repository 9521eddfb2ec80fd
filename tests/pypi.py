"""Programs from a package index, each set in an environment of its own: once for each set of versions.

Only what says that there is no index to install from lets a test be skipped.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_NO_INDEX = re.compile(
    r"No matching distribution found|Could not find a version|Connection refused|Name or service not known"
    r"|Temporary failure in name resolution|Network is unreachable|timed out|40[137] Client Error|50\d Server Error"
)


def install(cache: Path, *requirements: str) -> Path:
    """Return the folder of the programs of some packages; who finds it missing installs, and others wait."""
    name = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    final = cache / name
    with (cache / f"{name}.lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not (final / "ready").exists():
            _install(final, requirements)
    return final / "bin"


def _install(final: Path, requirements: tuple[str, ...]) -> None:
    shutil.rmtree(final, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(final)], check=True)  # noqa: S603
    command = [str(final / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        output = _NO_INDEX.search(done.stderr)
        assert output, done.stderr
        pytest.skip(f"there is no index to install from: {output[0]}")
    (final / "ready").touch()
