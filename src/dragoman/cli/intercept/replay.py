"""`dragoman intercept replay FILE`: send a saved exchange again and print the response unchanged.

Files contain no credentials: they come from the environment variables that the vendor's own clients use, or from
`--header`. By default the rewritten request is sent, without rules; with `--came` the program's original request is
sent and the current rules are applied.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dragoman.cli.chat.terminal import Screen
from dragoman.cli.intercept.hosts import find_entries, path_of
from dragoman.cli.intercept.show import format_exchange
from dragoman.config import Config, ConfigError, ServerTable
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.message import split_url
from dragoman.intercept.exchange import SavedExchange, decode_body, decode_exchange
from dragoman.intercept.settings import InterceptTable
from dragoman.server.runner import running

_TOKEN = "GOOGLE_CLOUD_ACCESS_TOKEN"  # noqa: S105  the name of a variable
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_CREDENTIALS = frozenset({"authorization", "x-goog-api-key"})
_DROPPED_HEADERS = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept-encoding", "content-encoding"}
)


class ReplayRequest(Struct, frozen=True, kw_only=True):
    """A saved exchange to send again, and how."""

    exchange: SavedExchange
    use_original: bool = False
    """Send the client's original request and apply the rules that are configured now."""
    headers: tuple[tuple[str, str], ...] = ()


def read_saved(file: Path) -> SavedExchange:
    """Read a saved exchange; raises `ConfigError`."""
    try:
        return decode_exchange(file.read_bytes())
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot read the file: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(str(file), "", str(error)) from None


def parse_headers(values: list[str]) -> tuple[tuple[str, str], ...]:
    """Parse NAME:VALUE headers; a value `env:VARIABLE` is read from the environment."""
    found: list[tuple[str, str]] = []
    for each in values:
        name, colon, value = each.partition(":")
        value = value.strip()
        if not colon or not name.strip():
            raise ConfigError("--header", "", f"{name!r} has no value: write NAME:VALUE")
        if value.startswith("env:"):
            variable = value.removeprefix("env:")
            if variable not in os.environ:
                raise ConfigError("--header", name, f"the environment variable {variable} is not set")
            value = os.environ[variable]
        found.append((name.strip().lower(), value))
    return tuple(found)


def show_saved(exchange: SavedExchange) -> None:
    """Print a saved exchange as `--log` does."""
    sys.stdout.write(format_exchange(exchange, Screen(sys.stdout, sys.stdout, pretty=sys.stdout.isatty())))


async def replay_exchange(replay: ReplayRequest, config: Config) -> int:
    """Send an exchange again; return 0 for a successful response, 1 otherwise."""
    exchange = replay.exchange
    table = find_entries(config, exchange.name if exchange.name in config.intercept else exchange.upstream)
    ((name, entry),) = table.items()
    if not replay.use_original:
        entry = InterceptTable(upstream=entry.upstream)
    # A minimal configuration, so that no tool server is started.
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
            return await _send(client, gateway.base_url + path_of(name, ""), replay)
        finally:
            await client.close()


async def _send(client: Client, base_url: str, replay: ReplayRequest) -> int:
    exchange = replay.exchange
    origin, prefix = split_url(base_url)
    target = exchange.target if replay.use_original else exchange.target_left or exchange.target
    body = decode_body(exchange.came if replay.use_original or exchange.left is None else exchange.left)
    headers = _build_headers(replay, os.environ)
    incoming = await client.send(Outgoing(origin, exchange.method, prefix + target, headers, body), Deadlines())
    sys.stderr.write(f"dragoman: {exchange.method} {target}: {incoming.status}\n")
    while piece := await incoming.read_chunk():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    return 0 if incoming.is_success else 1


def _build_headers(replay: ReplayRequest, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    given = {name for name, _ in replay.headers}
    kept = tuple(
        header for header in replay.exchange.headers if header[0] not in _DROPPED_HEADERS and header[0] not in given
    )
    found = () if given & _CREDENTIALS else _find_credentials(replay.exchange.target, environment)
    return (*kept, *found, *replay.headers)


def _find_credentials(target: str, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the credentials header that the vendor's own clients would send, from their environment variables."""
    key = next((environment[name] for name in _KEYS if environment.get(name)), "")
    if target.startswith("/v1internal") or "/projects/" in target or not key:
        token = environment.get(_TOKEN, "")
        return (("authorization", f"Bearer {token}"),) if token else ()
    return (("x-goog-api-key", key),)
