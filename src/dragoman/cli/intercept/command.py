"""`dragoman intercept -- COMMAND`: a gateway, a proxy and a command, which end together.

The command runs in the foreground, with its terminal, signals and exit code. An interrupt typed at a terminal reaches
it directly; other signals are forwarded. It trusts everybody it trusted before, and our authority: some variables add
one, others replace all, and for these a file is made of both. The system's own store is never changed.
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
from dragoman.server.serving import running

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
"""Variables that name all authorities, and whose word holds for their readers where they are not set."""
_ADDING = "NODE_EXTRA_CA_CERTS"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_GRACE = 1.0
"""Seconds for open answers: what waits for a command that has ended waits for nothing."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_WILDCARD_HOSTS = {"//0.0.0.0": "//127.0.0.1", "//[::]": "//[::1]"}
_KEY = "DRAGOMAN_KEY"
_HEADER = "x-dragoman-key"
_ADDRESS_IN_USE = (
    "the gateway's address is taken: name the one that listens there with --gateway, or another with --listen"
)


async def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the exit code of a command, by a shell's rules."""
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if process is None:
            early.append(number)
        elif number not in _KEYBOARD_SIGNALS or not _is_in_foreground():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    # What is ignored here (nohup) is ignored by the child too, as long as we leave it alone.
    handed_on = [number for number in _FORWARDED_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in handed_on:
        loop.add_signal_handler(number, partial(on_signal, number))
    try:
        try:
            process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
        except FileNotFoundError:
            return _report_failure(command[0], "there is no such command", _NOT_FOUND)
        except OSError as error:
            return _report_failure(command[0], error.strerror or "it cannot be started", _NOT_STARTED)
        for number in early:
            process.send_signal(number)
        code = await process.wait()
    finally:
        for number in handed_on:
            loop.remove_signal_handler(number)
    return code if code >= 0 else _SIGNALLED - code


def _is_in_foreground() -> bool:
    """Tell whether what is typed at a terminal reaches us and the child alike."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123  a device, not a file
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _report_failure(name: str, why: str, code: int) -> int:
    sys.stderr.write(f"dragoman: {name}: {why}\n")
    return code


class CertificateError(Exception):
    """Authorities that the user names cannot be read."""


def build_trust_variables(authority: str, environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the variables by which a child trusts our authority too; the files they name are made in `folder`."""
    told: dict[str, str] = {}
    for variable, others in _REPLACING:
        said = next((name for name in (variable, *others) if environment.get(name)), "")
        held = _read_named_file(said, environment[said]) if said else read_system_certificates()
        told[variable] = _write_certificates(folder / f"{variable.lower()}.pem", [*held, authority])
    added = environment.get(_ADDING, "")
    told[_ADDING] = _write_certificates(
        folder / f"{_ADDING.lower()}.pem", [*(_read_named_file(_ADDING, added) if added else ()), authority]
    )
    return told


def read_system_certificates() -> list[str]:
    """Return the system's authorities."""
    context = ssl.create_default_context()
    found = [ssl.DER_cert_to_PEM_cert(der) for der in context.get_ca_certs(binary_form=True)]
    if not found and (directory := ssl.get_default_verify_paths().capath):
        found = _read_certificates(Path(directory))
    return found


def _read_named_file(variable: str, path: str) -> list[str]:
    try:
        return _read_certificates(Path(path))
    except OSError as error:
        raise CertificateError(f"{variable} names {path}, which cannot be read: {error.strerror}") from None


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
    """What is to be done."""

    config: Config
    routes: dict[str, str]
    program: Path
    """mitmdump."""
    command: Sequence[str]
    gateway: str = ""
    """Where a gateway listens already; without one, it is started."""


async def run_intercepted(plan: InterceptionPlan) -> int:
    """Run a command whose requests to the listed hosts go through the surface; return its exit code."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-intercept-", ignore_cleanup_errors=True)))
        before = find_user_proxy(os.environ)
        base_url, key = await stack.enter_async_context(_open_gateway(plan))
        parts = urlsplit(base_url)
        shown = {_HEADER: key} if key else {}
        way = RouteTable(host=parts.hostname or "", port=parts.port or 80, routes=plan.routes, headers=shown)
        proxy = await stack.enter_async_context(run_proxy(plan.program, way, before, folder))
        environment = _build_environment(proxy, plan, folder)
        sys.stderr.write(f"dragoman: {base_url} stands between {plan.command[0]} and {', '.join(plan.routes)}\n")
        proxy.ended.add_done_callback(lambda task: None if task.cancelled() else _warn("the proxy has ended"))
        return await run_child(plan.command, environment)


def _build_environment(proxy: InterceptProxy, plan: InterceptionPlan, folder: Path) -> dict[str, str]:
    found, taken = build_proxy_variables(proxy.url, os.environ, plan.routes)
    if taken:
        _warn(f"NO_PROXY of the command is without {', '.join(taken)}: its requests would go past")
    return {**os.environ, **found, **build_trust_variables(proxy.authority, os.environ, folder)}


@asynccontextmanager
async def _open_gateway(plan: InterceptionPlan) -> AsyncGenerator[tuple[str, str]]:
    """Give the address of a gateway and the key that is shown there."""
    shown = os.environ.get(_KEY, "")
    if plan.gateway:
        yield _require_loopback(plan.gateway), shown
        return
    config = plan.config
    if config.keys and not shown:
        # Only the proxy knows it, and it is gone with this process.
        shown = token_urlsafe(24)
        config = replace(config, keys=(*config.keys, KeyTable(key=shown, name="intercept")))
    if config.server.log == "stderr":
        config = replace(config, server=replace(config.server, log=str(_find_log_file())))
    with log.open_log(config, None) as lines:
        async with running(config, observers=[lines.on_end], grace=_GRACE) as gateway:
            yield _require_loopback(gateway.base_url), shown


def _find_log_file() -> Path:
    """Return where the log goes while a command has the terminal."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(state) / "dragoman"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "intercept.log"


def _require_loopback(base_url: str) -> str:
    for everywhere, here in _WILDCARD_HOSTS.items():
        base_url = base_url.replace(everywhere, here)
    parts = urlsplit(base_url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise ConfigError(
            "intercept", "", f"{base_url} is not on this machine: what is read must not leave it unprotected"
        )
    return base_url.rstrip("/")


def _warn(message: str) -> None:
    sys.stderr.write(f"dragoman: {message}\n")


_ERRORS = (ConfigError, FolderError, MitmproxyMissingError, OSError, UserProxyError, ProxyFailedError, CertificateError)


def report_errors(work: Callable[[], int]) -> int:
    """Do it, and return its exit code."""
    try:
        return work()
    except KeyboardInterrupt:
        return 130
    except _ERRORS as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        sys.stderr.write(f"dragoman: {_ADDRESS_IN_USE if taken else error}\n")
        return 2
