"""Find or install mitmproxy, in its own virtual environment, and run it on loopback for one child process.

The proxy has a password that only the child gets, and it stops with the child. Only the proxy and trust variables of
the child's environment are changed. Files are in the user's data directory, readable only by the user.
"""

import asyncio
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import venv
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from dragoman.cli.intercept.addon import READY, REFUSED, ROUTES, RUN
from dragoman.cli.intercept.hosts import drop_bypassed_hosts, host_expression
from dragoman.tasks import start_task, stop_tasks

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_BYPASS = ("NO_PROXY", "no_proxy")
_PROXY = ("HTTPS_PROXY", "https_proxy")
REQUIREMENT = "mitmproxy>=11.0.2,<13"
_PROGRAM = "mitmdump"
_READY = "ready"
_REMEDY = "dragoman intercept --install"
_MAX_ERROR_OUTPUT = 2000
_KEY_FILES = ("mitmproxy-ca.pem", "mitmproxy-ca.p12")
_CERTIFICATE = "mitmproxy-ca-cert.pem"
_INHERITED_VARIABLES = ("HOME", "PATH", "TMPDIR", "LANG", "LC_ALL")
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0
_LAST_LINES = 20
_USER = "dragoman"


class FolderError(Exception):
    """A file or folder is not safe for keys; the message says why."""


def data_folder() -> Path:
    """Return the folder of the files that are kept between runs."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "dragoman" / "intercept"


def make_private(folder: Path) -> Path:
    """Create a folder with mode 0700, or set that mode on an existing one; raises `FolderError`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise FolderError(f"{folder} is not a folder that you own, so it is not safe for keys: remove it")
    if stat.S_IMODE(found.st_mode) & 0o077:
        folder.chmod(0o700)
    return folder


class UserProxyError(Exception):
    """mitmproxy does not support the user's own proxy."""


class UserProxy(Struct, frozen=True):
    """The user's own HTTP proxy, in the format of mitmproxy's options."""

    mode: str = ""
    credentials: str = ""


def find_user_proxy(environment: Mapping[str, str]) -> UserProxy:
    """Return the user's own proxy from HTTPS_PROXY or ALL_PROXY; empty if none is set."""
    names = (*reversed(_PROXY), "all_proxy", "ALL_PROXY")
    url = next((environment[name] for name in names if environment.get(name)), "")
    if not url:
        return UserProxy()
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UserProxyError(f"mitmproxy does not support your proxy: its scheme is {parts.scheme}, not http or https")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 80)
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return UserProxy(f"upstream:{parts.scheme}://{host}:{port}", credentials)


def build_proxy_variables(
    url: str, environment: Mapping[str, str], hosts: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Return the proxy variables for a child, and the entries that were removed from its NO_PROXY."""
    listed = list(hosts)
    current = next((environment[name] for name in _BYPASS if environment.get(name)), "")
    kept, taken = drop_bypassed_hosts(current, listed)
    bypass = ",".join(dict.fromkeys([*filter(None, kept.split(",")), *_LOCAL_HOSTS]))
    # Node's built-in fetch uses these variables only with NODE_USE_ENV_PROXY.
    return {**dict.fromkeys(_PROXY, url), **dict.fromkeys(_BYPASS, bypass), "NODE_USE_ENV_PROXY": "1"}, taken


class MitmproxyMissingError(Exception):
    """mitmproxy is not installed; the message says what to do."""


def find_mitmdump(confirm: Callable[[str], bool]) -> Path:
    """Return the path of mitmdump; call `confirm` with a question before it is installed."""
    found = _find_installed()
    if found is not None:
        return found
    folder = data_folder() / "mitmproxy"
    if not confirm(f"mitmproxy is required but not installed. Install it ({REQUIREMENT}) with pip into {folder}?"):
        raise MitmproxyMissingError(f"mitmproxy is not installed: run `{_REMEDY}`, or put mitmdump on the PATH")
    return _install(folder)


def _find_installed() -> Path | None:
    on_path = shutil.which(_PROGRAM)
    if on_path is not None:
        return Path(on_path)
    own = data_folder() / "mitmproxy"
    return own / "bin" / _PROGRAM if (own / _READY).is_file() else None


def _install(folder: Path) -> Path:
    make_private(data_folder())
    sys.stderr.write(f"dragoman: installing {REQUIREMENT} into {folder}\n")
    venv.create(folder, clear=True, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*command, REQUIREMENT], capture_output=True, text=True, check=False)  # noqa: S603  # no shell
    if done.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        raise MitmproxyMissingError(f"pip could not install {REQUIREMENT}:\n{done.stderr.strip()[-_MAX_ERROR_OUTPUT:]}")
    (folder / _READY).touch()
    return folder / "bin" / _PROGRAM


_ADDON = Path(__file__).with_name("addon.py")


class ProxyFailedError(Exception):
    """The proxy did not start; the message is its output."""


class RouteTable(Struct, frozen=True, kw_only=True):
    """The gateway's address, and the gateway path for each host pattern."""

    host: str
    port: int
    routes: Mapping[str, str]
    headers: Mapping[str, str] = {}


class InterceptProxy(Struct, frozen=True, kw_only=True):
    """A running proxy."""

    url: str
    authority: str
    """The certificate of its authority, as PEM."""
    ended: "asyncio.Task[None]"
    """Done when the proxy process has exited."""


@asynccontextmanager
async def run_proxy(
    program: Path, route_table: RouteTable, user_proxy: UserProxy, folder: Path
) -> AsyncGenerator[InterceptProxy]:
    """Run the proxy while the block runs; `folder` is the private folder of this run."""
    authority = make_private(data_folder() / "authority")
    password = secrets.token_urlsafe(24)
    _write_json(
        folder / ROUTES,
        {
            "host": route_table.host,
            "port": route_table.port,
            "headers": route_table.headers,
            "routes": _build_expressions(route_table),
        },
    )
    _write_json(folder / "config.yaml", _build_options(route_table, user_proxy, authority, password))
    async with AsyncExitStack() as stack:
        async with _lock_authority(authority):
            process = await _start_proxy(program, folder)
            stack.push_async_callback(_stop_process, process)
            port = await _wait_for_port(process)
        ended = start_task(_drain_output(process), "output of mitmdump")
        stack.push_async_callback(stop_tasks, ended)
        url = f"http://{_USER}:{password}@127.0.0.1:{port}"
        yield InterceptProxy(url=url, authority=_read_certificate(authority), ended=ended)


@asynccontextmanager
async def _lock_authority(authority: Path) -> AsyncGenerator[None]:
    """Hold a file lock while a proxy starts: of two authorities created at once, one would be lost and not trusted."""
    with (authority / "lock").open("w") as lock:
        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
        yield


async def _start_proxy(program: Path, folder: Path) -> asyncio.subprocess.Process:
    kept = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return await asyncio.create_subprocess_exec(
        str(program),
        "--set",
        f"confdir={folder}",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**kept, RUN: str(folder)},
        # Ctrl-C at the terminal must not reach the proxy, which serves the child until that ends.
        start_new_session=True,
    )


def _build_expressions(route_table: RouteTable) -> list[tuple[str, str]]:
    return [(host_expression(pattern), prefix) for pattern, prefix in route_table.routes.items()]


def _build_options(route_table: RouteTable, user_proxy: UserProxy, authority: Path, password: str) -> dict[str, object]:
    """Return mitmproxy's options; they are written as JSON, which is valid YAML."""
    options: dict[str, object] = {
        "confdir": str(authority),
        "listen_host": "127.0.0.1",
        "listen_port": 0,
        "proxyauth": f"{_USER}:{password}",
        "allow_hosts": [f"^{expression}$" for expression, _ in _build_expressions(route_table)],
        "scripts": [str(_ADDON)],
        # The gateway contacts the vendor's hosts; the proxy itself does not connect to them.
        "connection_strategy": "lazy",
        "upstream_cert": False,
        "onboarding": False,
        "flow_detail": 0,
        "termlog_verbosity": "error",
    }
    if user_proxy.mode:
        options["mode"] = [user_proxy.mode]
    if user_proxy.credentials:
        options["upstream_auth"] = user_proxy.credentials
    return options


def _write_json(file: Path, value: object) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        json.dump(value, opened)


async def _wait_for_port(process: asyncio.subprocess.Process) -> int:
    """Wait until the proxy prints its port; raises `ProxyFailedError`."""
    output: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        async with asyncio.timeout(_START_SECONDS):
            while line := await _read_line(process):
                if found := re.fullmatch(rf"{READY}(\d+)", line):
                    return int(found[1])
                output.append(line)
    except TimeoutError:
        output.append(f"it did not listen within {_START_SECONDS:g} seconds")
    raise ProxyFailedError("mitmdump did not start:\n" + "\n".join(output))


async def _read_line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        return ""
    try:
        line = await process.stdout.readline()
    except ValueError:  # a line longer than the stream limit, which asyncio discards
        return " "
    return line.decode("utf-8", "replace").rstrip() or (" " if line else "")


async def _drain_output(process: asyncio.subprocess.Process) -> None:
    """Read the output of the proxy until it exits, and report each host with a rejected certificate once."""
    reported: set[str] = set()
    while line := await _read_line(process):
        if line.startswith(REFUSED) and line not in reported:
            reported.add(line)
            host = line.removeprefix(REFUSED)
            sys.stderr.write(
                f"dragoman: the command rejected the proxy's certificate for {host}: see docs/how-to/intercept.md\n"
            )
    await process.wait()


def _read_certificate(authority: Path) -> str:
    """Return the authority's certificate, after setting mode 0600 on its key files."""
    for name in _KEY_FILES:
        file = authority / name
        found = file.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise FolderError(f"{file} is not a regular file that you own, so it is not safe for a key: remove it")
        if stat.S_IMODE(found.st_mode) != 0o600:
            file.chmod(0o600)
    return (authority / _CERTIFICATE).read_text(encoding="ascii")


async def _stop_process(process: asyncio.subprocess.Process) -> None:
    """Stop the proxy: close its input, then SIGTERM, then SIGKILL."""
    if process.stdin is not None:
        process.stdin.close()
    for end in (process.terminate, process.kill):
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
            return
        with suppress(ProcessLookupError):
            end()
    await process.wait()
