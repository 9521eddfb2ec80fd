"""The configuration of external MCP servers and of Dragoman's own MCP server; nothing here needs the SDK.

An entry with a command is code that runs on this machine, so entries come only from the operator, in the config file or
in an environment variable, and never from a request.
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, structs

from dragoman.http.addresses import parse_destination

_LOG = logging.getLogger("dragoman.mcp")
SERVERS_VARIABLE = "GEMINI_MCP_SERVERS"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,30}(?<!_)")
_TRANSPORTS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamable_http": "url"}
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_ERROR_LOCATION = re.compile(r" - at `\$(.*?)`$")
_MAX_MESSAGE_BYTES = 16_000_000
_MIN_MESSAGE_BYTES = 1000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
SYSTEM_PROMPT_VARIABLE = "GEMINI_SYSTEM_PROMPT"
"""The environment variable with the system prompt, used if the config file has none."""


class SettingsError(ValueError):
    """A configuration entry is invalid."""

    def __init__(self, key: str, message: str, source: str = "") -> None:
        super().__init__(message)
        self.key = key
        self.source = source
        """Where the key was read from, if not from the config file."""


class OAuth(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credentials for OAuth's `client_credentials` grant."""

    issuer: str
    """The issuer URL of the authorization server; the credentials are sent to no other server."""
    client_id: str
    client_secret: str


class UserSignIn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a user signs in; all are only for authorization servers that register no clients by themselves."""

    client_id: str = ""
    """A client that is registered already."""
    client_secret: str = ""
    client_metadata_url: str = ""
    """The address of a client id metadata document, used where the authorization server supports it."""
    redirect_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """The port of the redirect to this machine; 0 for any free one."""


class ToolServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An external MCP server, and how far it is trusted."""

    command: str = ""
    """The program to start; the gateway talks to it over standard input and output."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Environment variables, in addition to the few that every program needs."""
    cwd: str = ""
    """The working directory; a new empty directory if not set."""
    url: str = ""
    """The URL of a server that uses streamable HTTP, instead of a command."""
    headers: dict[str, str] = {}
    oauth: OAuth | None = None
    """OAuth credentials, for servers where a token in `headers` is not enough."""
    sign_in: bool | UserSignIn = False
    """A user signs in with `dragoman mcp login NAME`."""
    protocol: Literal["auto", "2025-11-25"] = "auto"
    """The protocol revision; set the older one where detecting it fails."""
    trusted: bool = False
    """Use its hints about tools, treat its results as trusted, and let its tools receive any data."""
    local: bool = False
    """Data passed to its tools stays on this machine."""
    allow: tuple[str, ...] = ()
    """Patterns of the tools to offer; without any, all tools are offered."""
    deny: tuple[str, ...] = ()
    """Patterns of the tools not to offer."""
    pinned: dict[str, str] = {}
    """Definition hashes of reviewed tools by name; a tool with another definition is blocked."""
    timeout: float = 30.0
    """The timeout of a call in seconds."""
    connect: float = 30.0
    """The timeout in seconds for starting or reaching the server, listing its tools, and its answer to a ping."""
    max_message_bytes: int = _MAX_MESSAGE_BYTES
    """The maximum size in bytes of a message from a server that is started with `command`."""

    @property
    def user_sign_in(self) -> UserSignIn:
        """How a user signs in."""
        return self.sign_in if isinstance(self.sign_in, UserSignIn) else UserSignIn()

    @property
    def secrets(self) -> frozenset[str]:
        """Values that must never be logged: headers, the OAuth secret, and variables whose name suggests a secret."""
        named = [value for name, value in self.env.items() if _SECRET.search(name)]
        named += [] if self.oauth is None else [self.oauth.client_secret]
        named += [self.user_sign_in.client_secret]
        return frozenset(word for value in (*self.headers.values(), *named) for word in (value, value.split(" ")[-1]))


def read_servers(
    tables: Mapping[str, Any],
    environment: Mapping[str, str],
    convert: Callable[[str, Any, type[ToolServer]], ToolServer],
    resolve: Callable[[str, str], str],
) -> dict[str, ToolServer]:
    """Return the servers of the config tables and of the variable; raise `SettingsError` if one is invalid.

    `convert` decodes a table, and `resolve` looks up a reference to the environment; both get the key, for their
    errors.
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
            raise SettingsError(key, f"{SERVERS_VARIABLE} also has a server with this name; rename one of them")
        env = _resolve_references(f"{key}.env", server.env, resolve)
        headers, oauth = _resolve_references(f"{key}.headers", server.headers, resolve), server.oauth
        if oauth is not None:
            secret = resolve(f"{key}.oauth.client_secret", oauth.client_secret)
            oauth = structs.replace(oauth, client_secret=secret)
        sign_in = server.sign_in
        if isinstance(sign_in, UserSignIn) and sign_in.client_secret:
            secret = resolve(f"{key}.sign_in.client_secret", sign_in.client_secret)
            sign_in = structs.replace(sign_in, client_secret=secret)
        found[name] = structs.replace(server, env=env, headers=headers, oauth=oauth, sign_in=sign_in)
    return found


def _resolve_references(key: str, values: Mapping[str, str], resolve: Callable[[str, str], str]) -> dict[str, str]:
    """Look up references to the environment; a reference may also be the last word, after `Bearer`."""
    parted = {name: value.rpartition(" ") for name, value in values.items()}
    return {name: first + gap + resolve(f"{key}.{name}", last) for name, (first, gap, last) in parted.items()}


def check_server(name: str, server: ToolServer) -> None:
    """Raise `SettingsError` if a server's configuration is invalid."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            "", "a server name is 1 to 32 letters, digits, `-` and single `_`, because tools are named NAME__TOOL"
        )
    if bool(server.command) == bool(server.url):
        raise SettingsError("", "set either `command`, to start a server, or `url`, to connect to one")
    if server.url and not server.url.startswith(("http://", "https://")):
        raise SettingsError("url", f"{server.url!r} is not a URL that starts with http:// or https://")
    other = {"command": ("args", "env", "cwd"), "url": ("headers", "oauth", "sign_in")}[
        "url" if server.command else "command"
    ]
    for key in other:
        if getattr(server, key):
            raise SettingsError(key, f"cannot be combined with `{'command' if server.command else 'url'}`")
    if server.oauth is not None and not server.oauth.issuer.startswith(("http://", "https://")):
        raise SettingsError(
            "oauth.issuer", f"{server.oauth.issuer!r} is not a URL that starts with http:// or https://"
        )
    if server.sign_in:
        _check_sign_in(server)
    for key in ("timeout", "connect"):
        if not getattr(server, key) > 0:
            raise SettingsError(key, "must be more than 0 seconds")
    if server.max_message_bytes < _MIN_MESSAGE_BYTES:
        raise SettingsError("max_message_bytes", f"must be at least {_MIN_MESSAGE_BYTES} bytes")
    if server.url and server.max_message_bytes != _MAX_MESSAGE_BYTES:
        raise SettingsError("max_message_bytes", "cannot be combined with `url`")


def _check_sign_in(server: ToolServer) -> None:
    settings = server.user_sign_in
    if server.oauth is not None:
        raise SettingsError("sign_in", "cannot be combined with `oauth`")
    if urlsplit(server.url).scheme != "https" and urlsplit(server.url).hostname not in _LOOPBACK:
        raise SettingsError("sign_in", "needs a `url` with https, because it sends the tokens of a user")
    if settings.client_secret and not settings.client_id:
        raise SettingsError("sign_in.client_secret", "needs the `client_id` that it belongs to")
    document = urlsplit(settings.client_metadata_url)
    if settings.client_metadata_url and (document.scheme != "https" or document.path in ("", "/")):
        raise SettingsError("sign_in.client_metadata_url", "must start with https:// and have a path")


class _Entry(Struct, frozen=True, kw_only=True):
    """One server in the variable, in the format shared with other programs, which may add fields of their own."""

    name: str
    transport: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = "."
    """The current directory by default: entries written for other programs expect it."""
    url: str = ""
    headers: dict[str, str] = {}
    trusted: bool = False
    local: bool = False
    disabled: bool = False
    """The entry is skipped."""


def parse_variable(text: str) -> dict[str, ToolServer]:
    """Return the servers in the variable; raise `SettingsError` if one is invalid."""
    if not text.strip():
        return {}
    try:
        entries = msgspec.json.decode(text, type=tuple[_Entry, ...])
    except msgspec.ValidationError as error:
        place = _ERROR_LOCATION.search(str(error))
        raise SettingsError(place[1] if place else "", _ERROR_LOCATION.sub("", str(error))) from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise SettingsError("", f"is not a JSON array of servers: {error}") from None
    _warn_unknown_fields(text)
    found: dict[str, ToolServer] = {}
    for at, entry in enumerate(entries):
        if entry.disabled:
            continue
        if entry.name in found:
            raise SettingsError(f"[{at}].name", f"{entry.name!r} is used twice; give each server its own name")
        try:
            found[entry.name] = _build_server(entry)
        except SettingsError as error:
            raise SettingsError(f"[{at}].{error.key}".removesuffix("."), str(error)) from None
    return found


def _warn_unknown_fields(text: str) -> None:
    """Log a warning for unknown fields; they are no errors, because such arrays are shared between programs."""
    known = {field.encode_name for field in structs.fields(_Entry)}
    for at, entry in enumerate(msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])):
        for field in sorted(entry.keys() - known):
            _LOG.warning("%s[%d].%s is unknown and ignored", SERVERS_VARIABLE, at, field)


def _build_server(entry: _Entry) -> ToolServer:
    required = _TRANSPORTS.get(entry.transport, "")
    if entry.transport and not required:
        raise SettingsError(
            "transport", f"{entry.transport!r} is not a known transport; use one of {', '.join(_TRANSPORTS)}"
        )
    if required and not getattr(entry, required):
        raise SettingsError(required, f"the transport {entry.transport!r} requires this field")
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
    """Settings of the MCP tools `query`, `search` and `fetch`."""

    model: str = ""
    """The model of `query` unless a call names another; if empty, the first configured model."""
    search_model: str = ""
    """The model of `search`; if empty, `model`."""
    system_prompt: str = ""
    max_turns: int = 10
    """The maximum number of turns with tools in a `query`."""
    seconds: float = 600.0
    """The time limit of a `query` in seconds."""
    temperature: Annotated[float, Meta(ge=0)] | None = None
    """The temperature of a `query` that does not set one; if unset, the model's own default."""
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    """The maximum number of tokens of each answer of the model in a `query` that does not set one."""
    destinations: tuple[str, ...] = ()
    """Hosts to which tools may send data even after untrusted content was read."""
    session_hours: float = 24.0
    """Hours until an unused session expires; 0 keeps it as long as conversations are kept."""
    session_messages: int = 200
    """The maximum number of earlier messages of a session sent to the model again; 0 for all."""
    fixtures: bool = False
    """Also offer the tools of MCP's conformance suite; only for testing."""

    def __post_init__(self) -> None:
        for entry in self.destinations:
            parse_destination(entry)


def add_system_prompt(table: McpTable, environment: Mapping[str, str]) -> McpTable:
    """Return the table with the system prompt from the environment, unless it sets its own."""
    return structs.replace(table, system_prompt=table.system_prompt or environment.get(SYSTEM_PROMPT_VARIABLE, ""))
