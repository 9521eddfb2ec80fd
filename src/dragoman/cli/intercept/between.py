"""`dragoman intercept -- COMMAND`: a gateway, a proxy and a command, one within the other, and gone with it."""

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from secrets import token_urlsafe
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from dragoman.cli.intercept import roots
from dragoman.cli.intercept.child import run_child
from dragoman.cli.intercept.mitmdump import Proxy, Way, proxying
from dragoman.cli.intercept.variables import proxied, proxy_before
from dragoman.config import Config, ConfigError, KeyTable
from dragoman.server import log
from dragoman.server.serving import running

_GRACE = 1.0
"""Seconds for open answers: what waits for a command that has ended waits for nothing."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_EVERYWHERE = {"//0.0.0.0": "//127.0.0.1", "//[::]": "//[::1]"}
_KEY = "DRAGOMAN_KEY"
_HEADER = "x-dragoman-key"


class Plan(Struct, frozen=True, kw_only=True):
    """What is to be done."""

    config: Config
    routes: dict[str, str]
    program: Path
    """mitmdump."""
    command: Sequence[str]
    gateway: str = ""
    """Where a gateway listens already; without one, it is started."""


async def stand_between(plan: Plan) -> int:
    """Run a command whose requests to the listed hosts go through the surface; return its exit code."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="dragoman-intercept-", ignore_cleanup_errors=True)))
        before = proxy_before(os.environ)
        base_url, key = await stack.enter_async_context(_gateway(plan))
        parts = urlsplit(base_url)
        shown = {_HEADER: key} if key else {}
        way = Way(host=parts.hostname or "", port=parts.port or 80, routes=plan.routes, headers=shown)
        proxy = await stack.enter_async_context(proxying(plan.program, way, before, folder))
        environment = _environment(proxy, plan, folder)
        sys.stderr.write(f"dragoman: {base_url} stands between {plan.command[0]} and {', '.join(plan.routes)}\n")
        proxy.ended.add_done_callback(lambda task: None if task.cancelled() else _warn("the proxy has ended"))
        return await run_child(plan.command, environment)


def _environment(proxy: Proxy, plan: Plan, folder: Path) -> dict[str, str]:
    found, taken = proxied(proxy.url, os.environ, plan.routes)
    if taken:
        _warn(f"NO_PROXY of the command is without {', '.join(taken)}: its requests would go past")
    return {**os.environ, **found, **roots.trusting(proxy.authority, os.environ, folder)}


@asynccontextmanager
async def _gateway(plan: Plan) -> AsyncGenerator[tuple[str, str]]:
    """Give the address of a gateway and the key that is shown there."""
    shown = os.environ.get(_KEY, "")
    if plan.gateway:
        yield _on_loopback(plan.gateway), shown
        return
    config = plan.config
    if config.keys and not shown:
        # Only the proxy knows it, and it is gone with this process.
        shown = token_urlsafe(24)
        config = replace(config, keys=(*config.keys, KeyTable(key=shown, name="intercept")))
    if config.server.log == "stderr":
        config = replace(config, server=replace(config.server, log=str(_log_file())))
    with log.opened(config, None) as lines:
        async with running(config, observers=[lines.ended], grace=_GRACE) as gateway:
            yield _on_loopback(gateway.base_url), shown


def _log_file() -> Path:
    """Return where the log goes while a command has the terminal."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(state) / "dragoman"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "intercept.log"


def _on_loopback(base_url: str) -> str:
    for everywhere, here in _EVERYWHERE.items():
        base_url = base_url.replace(everywhere, here)
    parts = urlsplit(base_url)
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise ConfigError(
            "intercept", "", f"{base_url} is not on this machine: what is read must not leave it unprotected"
        )
    return base_url.rstrip("/")


def _warn(words: str) -> None:
    sys.stderr.write(f"dragoman: {words}\n")
