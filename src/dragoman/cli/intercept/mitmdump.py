"""A mitmdump of ours: started on loopback for one child, with a password that only it knows, and ended with it.

Rules: nothing secret stands on its command line, where other users of the machine could read it. Certificates of other
servers are checked as ever; listed hosts are not reached from there at all. The key of its authority stays in a folder
of ours, for its owner alone.
"""

import asyncio
import json
import os
import re
import secrets
import stat
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec import Struct

from dragoman.cli.intercept.addon import READY, ROUTES, RUN
from dragoman.cli.intercept.folders import FolderError, home, private
from dragoman.cli.intercept.hosts import expression
from dragoman.cli.intercept.variables import Before

_ADDON = Path(__file__).with_name("addon.py")
_KEY_FILES = ("mitmproxy-ca.pem", "mitmproxy-ca.p12")
_CERTIFICATE = "mitmproxy-ca-cert.pem"
_KEPT = ("HOME", "PATH", "TMPDIR", "LANG", "LC_ALL")
_STARTING = 60.0
_ENDING = 5.0
_LAST_LINES = 20
_USER = "dragoman"


class ProxyFailedError(Exception):
    """The proxy did not start; the words are its own."""


class Way(Struct, frozen=True, kw_only=True):
    """Where requests for listed hosts go: for each pattern of hosts the path of the surface, at a port of loopback."""

    port: int
    routes: Mapping[str, str]
    headers: Mapping[str, str] = {}


class Proxy(Struct, frozen=True, kw_only=True):
    """A proxy that listens."""

    url: str
    authority: str
    """The certificate of its authority."""
    ended: "asyncio.Task[None]"
    """Is done when the proxy is gone."""


@asynccontextmanager
async def proxying(program: Path, way: Way, before: Before, folder: Path) -> AsyncGenerator[Proxy]:
    """Run the proxy as long as the block does; `folder` is that of this run, and private."""
    authority = private(home() / "authority")
    password = secrets.token_urlsafe(24)
    _write(folder / ROUTES, {"port": way.port, "headers": way.headers, "routes": _expressions(way)})
    _write(folder / "config.yaml", _options(way, before, authority, password))
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        str(program),
        "--set",
        f"confdir={folder}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**kept, RUN: str(folder)},
        # An interrupt at the terminal is for the child; the proxy serves it to its end.
        start_new_session=True,
    )
    said: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        port = await _listening(process, said)
        ended = asyncio.create_task(_drained(process, said))
        try:
            url = f"http://{_USER}:{password}@127.0.0.1:{port}"
            yield Proxy(url=url, authority=_certificate(authority), ended=ended)
        finally:
            ended.cancel()
    finally:
        await _end(process)


def _expressions(way: Way) -> list[tuple[str, str]]:
    return [(expression(pattern), prefix) for pattern, prefix in way.routes.items()]


def _options(way: Way, before: Before, authority: Path, password: str) -> dict[str, object]:
    """Return mitmproxy's options; JSON is YAML too."""
    options: dict[str, object] = {
        "confdir": str(authority),
        "listen_host": "127.0.0.1",
        "listen_port": 0,
        "proxyauth": f"{_USER}:{password}",
        "allow_hosts": [f"^{words}$" for words, _ in _expressions(way)],
        "scripts": [str(_ADDON)],
        # The surface reaches the hosts, not the proxy: it need not know them.
        "connection_strategy": "lazy",
        "upstream_cert": False,
        "onboarding": False,
        "flow_detail": 0,
        "termlog_verbosity": "error",
    }
    if before.mode:
        options["mode"] = [before.mode]
    if before.credentials:
        options["upstream_auth"] = before.credentials
    return options


def _write(file: Path, value: object) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        json.dump(value, opened)


async def _listening(process: asyncio.subprocess.Process, said: "deque[str]") -> int:
    """Wait until the proxy tells its port."""
    try:
        async with asyncio.timeout(_STARTING):
            while line := await _line(process):
                if found := re.fullmatch(rf"{READY}(\d+)", line):
                    return int(found[1])
                said.append(line)
    except TimeoutError:
        said.append(f"it did not listen within {_STARTING:g} seconds")
    raise ProxyFailedError("mitmdump did not start:\n" + "\n".join(said))


async def _line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        return ""
    line = await process.stdout.readline()
    return line.decode("utf-8", "replace").rstrip() or (" " if line else "")


async def _drained(process: asyncio.subprocess.Process, said: "deque[str]") -> None:
    while line := await _line(process):
        said.append(line)
    await process.wait()


def _certificate(authority: Path) -> str:
    """Return the authority's certificate, and see to it that nobody else can read its key."""
    for name in _KEY_FILES:
        file = authority / name
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise FolderError(f"{file} is not a file of yours: it would hold a key")
        if stat.S_IMODE(found.st_mode) != 0o600:
            file.chmod(0o600)
    return (authority / _CERTIFICATE).read_text(encoding="ascii")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the proxy: at first by letting go of its input, at last without asking."""
    if process.stdin is not None:
        process.stdin.close()
    for end in (process.terminate, process.kill):
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _ENDING)
            return
        with suppress(ProcessLookupError):
            end()
    await process.wait()
