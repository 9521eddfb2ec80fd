"""The configuration of external MCP servers and of Dragoman as an MCP server. Nothing here needs the SDK.

An entry with a command is code that will run here, so entries come from whoever runs the gateway, in the file or in an
environment variable, and never out of a request.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from dragoman.http.addresses import parse_destination

_LOG = logging.getLogger("dragoman.mcp")
SERVERS_VARIABLE = "GEMINI_MCP_SERVERS"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,30}(?<!_)")
_TRANSPORTS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamable_http": "url"}
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_ERROR_LOCATION = re.compile(r" - at `\$(.*?)`$")
SYSTEM_PROMPT_VARIABLE = "GEMINI_SYSTEM_PROMPT"
"""The variable with the system prompt, where the file has none."""


class SettingsError(ValueError):
    """An entry cannot be used."""

    def __init__(self, key: str, message: str, source: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.source = source
        """Where the key stands, if not in the file."""


class OAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to sign in with credentials of our own (OAuth's grant `client_credentials`)."""

    issuer: str
    """The authorization server that the credentials are for, as it names itself: they go to no other."""
    client_id: str
    client_secret: str


class ToolServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An external server, and what it is trusted with."""

    command: str = ""
    """What to run, to be talked to over its standard input and output."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """What its environment has beside the few variables that every program needs."""
    cwd: str = ""
    """Where it runs; an empty directory of its own if not said."""
    url: str = ""
    """Where it is reached over streamable HTTP, instead of a command."""
    headers: dict[str, str] = {}
    oauth: OAuth | None = None
    """How to sign in there, where a token in `headers` does not do."""
    protocol: Literal["auto", "2025-11-25"] = "auto"
    """The older revision, where finding out which one it speaks does not work."""
    trusted: bool = False
    """What it says of its tools is believed, what they return is no stranger's word, and they may be given anything."""
    local: bool = False
    """What its tools are given stays on this machine."""
    allow: tuple[str, ...] = ()
    """Patterns of its tools that are offered; all of them without one."""
    deny: tuple[str, ...] = ()
    """Patterns of its tools that are not."""
    pinned: dict[str, str] = {}
    """Tools by the hash of what they were looked at as: anything else under that name is blocked."""
    timeout: float = 30.0
    """Seconds a call may take."""
    connect: float = 30.0
    """Seconds it has to start, or to be reached, and to list its tools."""

    @property
    def secrets(self) -> frozenset[str]:
        """What must not be read anywhere: its headers, and what its environment calls a secret."""
        named = [value for name, value in self.env.items() if _SECRET.search(name)]
        named += [] if self.oauth is None else [self.oauth.client_secret]
        return frozenset(word for value in (*self.headers.values(), *named) for word in (value, value.split(" ")[-1]))


def read_servers(
    tables: Mapping[str, Any],
    environment: Mapping[str, str],
    convert: Callable[[str, Any, type[ToolServer]], ToolServer],
    resolve: Callable[[str, str], str],
) -> dict[str, ToolServer]:
    """Return the servers of the file's tables and of the variable; a `SettingsError` says what is wrong with one.

    `convert` reads a table, and `follow` a reference to the environment; both are given the key, to name it.
    """
    try:
        found = parse_variable(environment.get(SERVERS_VARIABLE, ""))
    except SettingsError as error:
        raise SettingsError(SERVERS_VARIABLE + error.key, str(error), "the environment") from None
    for name, table in tables.items():
        key = f"tools.{name}"
        server = convert(key, table, ToolServer)
        try:
            check_server(name, server)
        except SettingsError as error:
            raise SettingsError(f"{key}.{error.key}".removesuffix("."), str(error)) from None
        if name in found:
            raise SettingsError(key, f"{SERVERS_VARIABLE} has a server of this name too: rename one of them")
        env = _resolve_references(f"{key}.env", server.env, resolve)
        headers, oauth = _resolve_references(f"{key}.headers", server.headers, resolve), server.oauth
        if oauth is not None:
            secret = resolve(f"{key}.oauth.client_secret", oauth.client_secret)
            oauth = structs.replace(oauth, client_secret=secret)
        found[name] = structs.replace(server, env=env, headers=headers, oauth=oauth)
    return found


def _resolve_references(key: str, values: Mapping[str, str], resolve: Callable[[str, str], str]) -> dict[str, str]:
    """Follow references to the environment; one may also be the last word, behind `Bearer`."""
    parted = {name: value.rpartition(" ") for name, value in values.items()}
    return {name: first + gap + resolve(f"{key}.{name}", last) for name, (first, gap, last) in parted.items()}


def check_server(name: str, server: ToolServer) -> None:
    """Raise a `SettingsError` for what cannot be used."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "", "a name has 1 to 32 letters, digits, `-` and single `_` only, for tools are named NAME__TOOL"
        )
    if bool(server.command) == bool(server.url):
        raise SettingsError("", "write either `command`, to run a server here, or `url`, to reach one")
    if server.url and not server.url.startswith(("http://", "https://")):
        raise SettingsError("url", f"{server.url!r} is no address: it begins with http:// or https://")
    other = {"command": ("args", "env", "cwd"), "url": ("headers", "oauth")}["url" if server.command else "command"]
    for key in other:
        if getattr(server, key):
            raise SettingsError(key, f"means nothing beside `{'command' if server.command else 'url'}`")
    if server.oauth is not None and not server.oauth.issuer.startswith(("http://", "https://")):
        raise SettingsError(
            "oauth.issuer", f"{server.oauth.issuer!r} is no address: it begins with http:// or https://"
        )
    for key in ("timeout", "connect"):
        if not getattr(server, key) > 0:
            raise SettingsError(key, "must be more than 0 seconds")


class _Entry(Struct, frozen=True, kw_only=True):
    """One server in the variable, in the form that other programs use for it too, with words of their own in it."""

    name: str
    transport: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = "."
    """Entries for other programs rely on running where those run."""
    url: str = ""
    headers: dict[str, str] = {}
    trusted: bool = False
    local: bool = False
    disabled: bool = False
    """It is meant for another day, or for another program."""


def parse_variable(text: str) -> dict[str, ToolServer]:
    """Return the servers that the variable names; a `SettingsError` says what is wrong with them."""
    if not text.strip():
        return {}
    try:
        entries = msgspec.json.decode(text, type=tuple[_Entry, ...])
    except msgspec.ValidationError as error:
        place = _ERROR_LOCATION.search(str(error))
        raise SettingsError(place[1] if place else "", _ERROR_LOCATION.sub("", str(error))) from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise SettingsError("", f"is no JSON array of servers: {error}") from None
    _warn_unknown_fields(text)
    found: dict[str, ToolServer] = {}
    for at, entry in enumerate(entries):
        if entry.disabled:
            continue
        if entry.name in found:
            raise SettingsError(f"[{at}].name", f"{entry.name!r} is there twice: each server needs a name of its own")
        try:
            found[entry.name] = _build_server(entry)
        except SettingsError as error:
            raise SettingsError(f"[{at}].{error.key}".removesuffix("."), str(error)) from None
    return found


def _warn_unknown_fields(text: str) -> None:
    """Tell of words that mean nothing here: such arrays are shared between programs, and no reason to stop."""
    known = {field.encode_name for field in structs.fields(_Entry)}
    for at, entry in enumerate(msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])):
        for field in sorted(entry.keys() - known):
            _LOG.warning("%s[%d].%s is not known here, and left aside", SERVERS_VARIABLE, at, field)


def _build_server(entry: _Entry) -> ToolServer:
    wanted = _TRANSPORTS.get(entry.transport, "")
    if entry.transport and not wanted:
        raise SettingsError("transport", f"{entry.transport!r} is not known; there are {', '.join(_TRANSPORTS)}")
    if wanted and not getattr(entry, wanted):
        raise SettingsError(wanted, f"the transport {entry.transport!r} needs one")
    server = ToolServer(
        command=entry.command,
        args=entry.args,
        env=entry.env,
        cwd=entry.cwd if entry.command else "",
        url=entry.url,
        headers=entry.headers,
        trusted=entry.trusted,
        local=entry.local,
    )
    check_server(entry.name, server)
    return server


class McpTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls of `query`, `search` and `fetch` are answered."""

    model: str = ""
    """Asked by `query` unless a call names another; empty for the first that is configured."""
    search_model: str = ""
    """Asked by `search`; empty for `model`."""
    system_prompt: str = ""
    max_turns: int = 10
    """Turns with tools that a `query` has at most."""
    seconds: float = 600.0
    """Time that a `query` has."""
    destinations: tuple[str, ...] = ()
    """Hosts to which tools may send something also after what anybody may have written was read."""
    session_hours: float = 24.0
    """How long a session is remembered that nobody goes on with; 0 as long as conversations are kept."""
    session_messages: int = 200
    """How many messages of a session the model is told again; 0 for all."""
    fixtures: bool = False
    """Offer the tools of MCP's conformance suite too; only for testing."""

    def __post_init__(self) -> None:
        for entry in self.destinations:
            parse_destination(entry)


def add_system_prompt(table: McpTable, environment: Mapping[str, str]) -> McpTable:
    """Return the table with the system prompt of the environment, if it has none of its own."""
    return structs.replace(table, system_prompt=table.system_prompt or environment.get(SYSTEM_PROMPT_VARIABLE, ""))
