"""`dragoman intercept -- COMMAND`: run a gateway, a proxy and a command, which end together.

The command runs in the foreground, with the terminal, its signals and its exit code. Ctrl-C at the terminal reaches it
directly; other signals are forwarded. It trusts the same certificate authorities as before, and the proxy's authority:
some variables add an authority, others replace all of them, and for those a file with both is written. The system's
certificate store is never changed.
"""

import asyncio
import errno
import os
import re
import signal
import ssl
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from dragoman.cli.intercept.mitmproxy import (
    FolderError,
    InterceptProxy,
    MitmproxyMissingError,
    ProxyFailedError,
    RouteTable,
    UserProxyError,
    build_proxy_variables,
    find_user_proxy,
    run_proxy,
)
from dragoman.config import Config, ConfigError, KeyTable
from dragoman.server import log
from dragoman.server.auth import LOOPBACK_HOSTS
from dragoman.server.runner import running

_FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
_KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
_NOT_FOUND = 127
_NOT_STARTED = 126
_SIGNALLED = 128
_REPLACING = (
    ("SSL_CERT_FILE", ()),
    ("CURL_CA_BUNDLE", ("SSL_CERT_FILE",)),
    ("REQUESTS_CA_BUNDLE", ("CURL_CA_BUNDLE",)),
)
"""Variables that replace all authorities, each with the variables that its readers use if it is not set."""
_ADDING = "NODE_EXTRA_CA_CERTS"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_GRACE = 1.0
"""Seconds that open responses have to finish; short, because the command that would read them has ended."""
_WILDCARD_HOSTS = {"//0.0.0.0": "//127.0.0.1", "//[::]": "//[::1]"}
_KEY = "DRAGOMAN_KEY"
_HEADER = "x-dragoman-key"
_ADDRESS_IN_USE = (
    "another process already listens on the gateway's address: use that gateway with --gateway URL, or another address "
    "with --listen"
)


async def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command and return its exit code as a shell does: 128 plus the number of the signal that ended it."""
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if process is None:
            early.append(number)
        elif number not in _KEYBOARD_SIGNALS or not _is_in_foreground():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    # The child inherits ignored signals (nohup), unless a handler is installed here.
    forwarded = [number for number in _FORWARDED_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in forwarded:
        loop.add_signal_handler(number, partial(on_signal, number))
    try:
        try:
            process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
        except FileNotFoundError:
            return _report_failure(command[0], "command not found", _NOT_FOUND)
        except OSError as error:
            return _report_failure(command[0], error.strerror or "cannot start the command", _NOT_STARTED)
        for number in early:
            process.send_signal(number)
        code = await process.wait()
    finally:
        for number in forwarded:
            loop.remove_signal_handler(number)
    return code if code >= 0 else _SIGNALLED - code


def _is_in_foreground() -> bool:
    """Return whether this process and its child are in the terminal's foreground group and both get its signals."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123  a device, not a file
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _report_failure(name: str, message: str, code: int) -> int:
    sys.stderr.write(f"dragoman: {name}: {message}\n")
    return code


class CertificateError(Exception):
    """A certificate file that the user has configured cannot be read."""


def build_trust_variables(authority: str, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return variables that make a child also trust the proxy's authority; their files are written to `folder`."""
    variables: dict[str, str] = {}
    for variable, others in _REPLACING:
        source = next((name for name in (variable, *others) if environment.get(name)), "")
        trusted = _read_named_file(source, environment[source]) if source else read_system_certificates()
        variables[variable] = _write_certificates(folder / f"{variable.lower()}.pem", [*trusted, authority])
    added = environment.get(_ADDING, "")
    variables[_ADDING] = _write_certificates(
        folder / f"{_ADDING.lower()}.pem", [*(_read_named_file(_ADDING, added) if added else ()), authority]
    )
    return variables


def read_system_certificates() -> list[str]:
    """Return the certificates of the system's authorities."""
    context = ssl.create_default_context()
    found = [ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True)]
    if not found and (directory := ssl.get_default_verify_paths().capath):
        found = _read_certificates(Path(directory))
    return found


def _read_named_file(variable: str, path: str) -> list[str]:
    try:
        return _read_certificates(Path(path))
    except OSError as error:
        raise CertificateError(f"cannot read {path}, which {variable} points to: {error.strerror}") from None


def _read_certificates(path: Path) -> list[str]:
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    return list(dict.fromkeys(found for text in texts for found in _CERTIFICATE.findall(text)))


def _write_certificates(file: Path, certificates: list[str]) -> str:
    text = "".join(f"{certificate.strip()}\n" for certificate in certificates)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.write(text)
    return str(file)


class InterceptionPlan(Struct, frozen=True, kw_only=True):
    """The command to run, and the hosts to intercept."""

    config: Config
    routes: dict[str, str]
    program: Path
    """Path of mitmdump."""
    command: Sequence[str]
    gateway: str = ""
    """URL of a running gateway; "" to start one."""


async def run_intercepted(plan: InterceptionPlan) -> int:
    """Run a command whose requests to the listed hosts go through the gateway; return its exit code."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-intercept-", ignore_cleanup_errors=True)))
        user_proxy = find_user_proxy(os.environ)
        base_url, key = await stack.enter_async_context(_open_gateway(plan))
        parts = urlsplit(base_url)
        headers = {_HEADER: key} if key else {}
        table = RouteTable(host=parts.hostname or "", port=parts.port or 80, routes=plan.routes, headers=headers)
        proxy = await stack.enter_async_context(run_proxy(plan.program, table, user_proxy, folder))
        environment = _build_environment(proxy, plan, folder)
        sys.stderr.write(
            f"dragoman: {base_url} intercepts the requests of {plan.command[0]} to {', '.join(plan.routes)}\n"
        )
        proxy.ended.add_done_callback(lambda task: None if task.cancelled() else _warn("the proxy has stopped"))
        return await run_child(plan.command, environment)


def _build_environment(proxy: InterceptProxy, plan: InterceptionPlan, folder: Path) -> dict[str, str]:
    found, taken = build_proxy_variables(proxy.url, os.environ, plan.routes)
    if taken:
        _warn(f"removed {', '.join(taken)} from NO_PROXY of the command: its requests would bypass the proxy")
    return {**os.environ, **found, **build_trust_variables(proxy.authority, os.environ, folder)}


@asynccontextmanager
async def _open_gateway(plan: InterceptionPlan) -> AsyncGenerator[tuple[str, str]]:
    """Start a gateway, or use a running one, and yield its URL and the client key to send."""
    key = os.environ.get(_KEY, "")
    if plan.gateway:
        yield _require_loopback(plan.gateway), key
        return
    config = plan.config
    if config.keys and not key:
        # A temporary key: only the proxy has it, and it is valid as long as this process runs.
        key = token_urlsafe(24)
        config = replace(config, keys=(*config.keys, KeyTable(key=key, name="intercept")))
    if config.server.log == "stderr":
        config = replace(config, server=replace(config.server, log=str(_find_log_file())))
    with log.open_log(config, None) as lines:
        async with running(config, observers=[lines.on_end], grace=_GRACE) as gateway:
            yield _require_loopback(gateway.base_url), key


def _find_log_file() -> Path:
    """Return the log file to use while the command has the terminal."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(state) / "dragoman"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "intercept.log"


def _require_loopback(base_url: str) -> str:
    for wildcard, loopback in _WILDCARD_HOSTS.items():
        base_url = base_url.replace(wildcard, loopback)
    parts = urlsplit(base_url)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK_HOSTS:
        raise ConfigError(
            "intercept",
            "",
            f"{base_url} is not on loopback: the decrypted requests must not leave this machine without TLS",
        )
    return base_url.rstrip("/")


def _warn(message: str) -> None:
    sys.stderr.write(f"dragoman: {message}\n")


_ERRORS = (ConfigError, FolderError, MitmproxyMissingError, UserProxyError, ProxyFailedError, CertificateError)


def report_errors(work: Callable[[], int]) -> int:
    """Run `work` and return its exit code; print a known error as one line and return 2."""
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except _ERRORS as error:
        sys.stderr.write(f"dragoman: {error}\n")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        sys.stderr.write(f"dragoman: {_ADDRESS_IN_USE}\n")
    return 2
