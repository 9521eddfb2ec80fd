"""`dragoman intercept replay FILE`: send a saved exchange again and show what is answered, byte for byte.

Credentials are in no file: they come from the environment, as the vendor's own clients look for them, or by `--header`.
What left is sent as it left, past every rule; what came is sent through the rules as they are now.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dragoman.cli.chat.terminal import Screen
from dragoman.cli.intercept.hosts import entries, path_of
from dragoman.cli.intercept.show import shown
from dragoman.config import Config, ConfigError, ServerTable
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.message import split
from dragoman.intercept.exchange import Saved, content, read
from dragoman.intercept.settings import InterceptTable
from dragoman.server.serving import running

_TOKEN = "GOOGLE_CLOUD_ACCESS_TOKEN"  # noqa: S105  the name of a variable
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_CREDENTIALS = frozenset({"authorization", "x-goog-api-key"})
_LEFT_OUT = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "content-encoding"}
)


class Again(Struct, frozen=True, kw_only=True):
    """What is to be sent again."""

    exchange: Saved
    came: bool = False
    """Send what the client had sent, and let the rules that are configured now do their work."""
    headers: tuple[tuple[str, str], ...] = ()


def saved_in(file: Path) -> Saved:
    """Read a file."""
    try:
        return read(file.read_bytes())
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(str(file), "", str(error)) from None


def given(said: list[str]) -> tuple[tuple[str, str], ...]:
    """Read headers; one whose value begins with `env:` is found in the environment."""
    found: list[tuple[str, str]] = []
    for each in said:
        name, colon, value = each.partition(":")
        value = value.strip()
        if not colon or not name.strip():
            raise ConfigError("--header", "", f"{name!r} has no value: write NAME:VALUE")
        if value.startswith("env:"):
            variable = value.removeprefix("env:")
            if variable not in os.environ:
                raise ConfigError("--header", name, f"the environment has no {variable}")
            value = os.environ[variable]
        found.append((name.strip().lower(), value))
    return tuple(found)


def show(exchange: Saved) -> None:
    """Show a saved exchange as `--log` does."""
    sys.stdout.write(shown(exchange, Screen(sys.stdout, sys.stdout, pretty=sys.stdout.isatty())))


async def send_again(again: Again, config: Config) -> int:
    """Send an exchange again; return 0 if it was answered well, 1 if not."""
    exchange = again.exchange
    table = entries(config, exchange.name if exchange.name in config.intercept else exchange.upstream)
    ((name, entry),) = table.items()
    if not again.came:
        entry = InterceptTable(upstream=entry.upstream)
    # Nothing else of the configuration is needed, and none of its tools need be started.
    alone = Config(
        server=ServerTable(listen="127.0.0.1:0", log="off"),
        upstreams={entry.upstream: config.upstreams[entry.upstream]},
        intercept={name: entry},
        sessions=config.sessions,
        source=config.source,
    )
    async with running(alone) as gateway:
        client = Client()
        try:
            return await _asked(client, gateway.base_url + path_of(name, ""), again)
        finally:
            await client.close()


async def _asked(client: Client, base_url: str, again: Again) -> int:
    exchange = again.exchange
    origin, prefix = split(base_url)
    target = exchange.target if again.came else exchange.target_left or exchange.target
    body = content(exchange.came if again.came or exchange.left is None else exchange.left)
    headers = _headers(again, os.environ)
    incoming = await client.ask(Outgoing(origin, exchange.method, prefix + target, headers, body), Deadlines())
    sys.stderr.write(f"dragoman: {exchange.method} {target}: {incoming.status}\n")
    while piece := await incoming.piece():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    return 0 if incoming.good else 1


def _headers(again: Again, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    given = {name for name, _ in again.headers}
    kept = tuple(header for header in again.exchange.headers if header[0] not in _LEFT_OUT and header[0] not in given)
    found = () if given & _CREDENTIALS else _credentials(again.exchange.target, environment)
    return (*kept, *found, *again.headers)


def _credentials(target: str, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what the vendor's own clients would show, found where they look for it."""
    key = next((environment[name] for name in _KEYS if environment.get(name)), "")
    if target.startswith("/v1internal") or "/projects/" in target or not key:
        token = environment.get(_TOKEN, "")
        return (("authorization", f"Bearer {token}"),) if token else ()
    return (("x-goog-api-key", key),)
