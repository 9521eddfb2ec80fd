"""Load and validate the configuration, from a TOML file or, without one, from environment variables.

Every error names the file, the key in it and what to write there instead.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from dragoman.config_hints import keys_of, list_choices, suggest_key
from dragoman.gateway.agents.settings import AgentTable, PriceTable
from dragoman.gateway.search_settings import SearchTable
from dragoman.http.admission import ClientLimits
from dragoman.intercept.settings import InterceptSettingsError, InterceptTable, read_intercepts
from dragoman.mcp.settings import McpTable, SettingsError, ToolServer, add_system_prompt, read_servers
from dragoman.plugins import load_plugins
from dragoman.tools.web.fetch import WebTable
from dragoman.upstreams.environment import read_upstreams
from dragoman.upstreams.kind import UpstreamKind, UpstreamTable
from dragoman.upstreams.registry import KINDS, list_apis

T = TypeVar("T")
_KEY_HASH = re.compile(r"sha256:[0-9a-f]{64}")
LISTEN = "127.0.0.1:8741"
_DEFAULT_FILE = "dragoman.toml"
HASH_PREFIX = "sha256:"
ANONYMOUS_NAME = "local"
"""Caller name of every request when `[server] keys` is empty."""
_PATH_VARIABLE = "DRAGOMAN_CONFIG"
_NATIVE_CALLS_VARIABLE = "GEMINI_USE_NATIVE_FUNCTION_CALLING"
_BOOLEANS = {"": True, "true": True, "1": True, "yes": True, "on": True} | dict.fromkeys(
    ("false", "0", "no", "off"), False
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*)`")
_PATH_IN_ERROR = re.compile(r" - at `\$?(.*?)`$")


class ConfigError(ValueError):
    """The configuration is invalid."""

    def __init__(self, file: str, key: str, message: str) -> None:
        super().__init__(f"{file}: {key}: {message}" if key else f"{file}: {message}")


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the configuration tables; an unknown key is an error, so that a typing mistake is not ignored."""


class KeyTable(Table, frozen=True):
    """A client API key of `[server] keys`, with the models and tools it may use and its concurrency limit."""

    key: str
    name: str = ""
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    concurrency: int = 0


class RetriesTable(Table, frozen=True):
    """`[server.retries]`: how many times a failed upstream request is retried, and the delays in seconds."""

    most: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_asked: float = 20.0


class ServerTable(Table, frozen=True):
    """`[server]`: the listen address, client authentication, streaming and logging."""

    listen: str = LISTEN
    keys: tuple[str | KeyTable, ...] = ()
    hosts: tuple[str, ...] = ()
    """Host names that clients may use in addition to the listen address and loopback names."""
    origins: tuple[str, ...] = ()
    """Patterns of the web origins whose pages may send requests, in addition to the server's own origins."""
    strict: bool | Literal["all"] = False
    """Reject material losses, or with "all" every loss."""
    limits: ClientLimits = ClientLimits()
    retries: RetriesTable = RetriesTable()
    hold: float = 10.0
    """Seconds to wait for the first event of a stream before the headers are sent; until then it can be retried."""
    heartbeat: float = 15.0
    drain: float = 0.0
    """Seconds for which connections are still accepted after `/ready` has turned false."""
    grace: float = 20.0
    """Seconds that open responses have to finish when the server shuts down."""
    max_choices: Annotated[int, Meta(ge=1)] = 8
    """How many choices (`n`, `candidateCount`) a request may ask for at a target that generates one per request."""
    translate: bool = False
    """Serve `POST /v1/translate`, which translates documents without an upstream."""
    log: str = "stderr"
    """Where the log line of each exchange is written: "stderr", "off", or a file path."""
    log_format: Literal["auto", "json", "text"] = "auto"
    use_native_function_calling: bool = True
    """Use the native tool calling of the models; if false, tools are described in the prompt of every model and calls
    are parsed from its text."""


class MediaTable(Table, frozen=True):
    """`[media]`: how the gateway downloads linked media for upstreams that do not fetch links themselves."""

    fetch: bool = True
    max_bytes: int = 20 << 20
    """Maximum total bytes of all links of a request."""
    max_links: int = 20
    seconds: float = 20.0
    allow: tuple[str, ...] = ()
    """Host patterns and networks that may be contacted although their addresses are not public."""


class SessionsTable(Table, frozen=True):
    """`[sessions]`: where conversations are stored and for how long."""

    url: str = ""
    """`sqlite:///file` or `postgresql://…`; empty for an SQLite file in the user's state directory."""
    state: Literal["gateway", "upstream"] = "gateway"
    """Who stores the responses and conversations of the Responses API (`store`): the gateway or the upstream."""
    keep_days: float = 30.0
    """Days after its last use that a conversation is kept; 0 keeps it for ever."""


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration, with every `env:NAME` reference resolved."""

    server: ServerTable = ServerTable()
    keys: tuple[KeyTable, ...] = ()
    """The keys of `[server] keys`, each with a unique name."""
    upstreams: Mapping[str, UpstreamTable] = {}
    models: Mapping[str, tuple[str, ...]] = {}
    sessions: SessionsTable = SessionsTable()
    media: MediaTable = MediaTable()
    tools: Mapping[str, ToolServer] = {}
    """External MCP servers whose tools the gateway runs."""
    web: WebTable = WebTable()
    search: SearchTable = SearchTable()
    mcp: McpTable = McpTable()
    agents: Mapping[str, AgentTable] = {}
    prices: Mapping[str, PriceTable] = {}
    intercept: Mapping[str, InterceptTable] = {}
    source: str = "the environment"

    @property
    def secrets(self) -> frozenset[str]:
        """Return all values that must not appear in any output: credentials of upstreams, tool servers and clients."""
        upstreams = self.upstreams.values()
        upstream_secrets = {
            secret for each in upstreams for secret in (each.api_key, each.access_token, each.client_secret)
        }
        tool_secrets = {secret for each in self.tools.values() for secret in each.secrets}
        return frozenset({*upstream_secrets, *tool_secrets, self.search.key, *(key.key for key in self.keys)} - {""})


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ, *, listen: str = "") -> Config:
    """Load the configuration from `path`, $DRAGOMAN_CONFIG or ./dragoman.toml, or from the environment alone.

    `listen` replaces `[server] listen`.
    """
    load_plugins()
    file = find_file(path, environment)
    if file is None:
        server = _apply_native_switch(ServerTable(listen=listen or LISTEN), environment)
        tools = _ConfigReader("", environment).read_tools({})
        mcp = add_system_prompt(McpTable(), environment)
        return Config(server=server, upstreams=_find_upstreams(environment, server), tools=tools, mcp=mcp)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot read the file: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), "", f"not valid TOML: {error}") from None
    return _ConfigReader(str(file), environment).read(document, listen)


def _apply_native_switch(server: ServerTable, environment: Mapping[str, str]) -> ServerTable:
    """Turn native tool calling off if the environment variable says so; it overrides the file."""
    value = environment.get(_NATIVE_CALLS_VARIABLE, "").strip().lower()
    if value not in _BOOLEANS:
        raise ConfigError(
            "the environment", _NATIVE_CALLS_VARIABLE, f"{value!r} is not a boolean; set it to true or false"
        )
    return server if _BOOLEANS[value] else msgspec.structs.replace(server, use_native_function_calling=False)


def find_file(path: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return `path`, else $DRAGOMAN_CONFIG, else ./dragoman.toml or the user's own file if one exists, else None."""
    named = path or (Path(environment[_PATH_VARIABLE]) if environment.get(_PATH_VARIABLE) else None)
    home = environment.get("XDG_CONFIG_HOME") or (f"{environment['HOME']}/.config" if environment.get("HOME") else "")
    usual = (Path(_DEFAULT_FILE), *((Path(home, "dragoman", _DEFAULT_FILE),) if home else ()))
    return named or next((file for file in usual if file.is_file()), None)


def _find_upstreams(environment: Mapping[str, str], server: ServerTable) -> dict[str, UpstreamTable]:
    try:
        return read_upstreams(environment, server.listen)
    except ValueError as error:
        raise ConfigError("the environment", "", str(error)) from None


def _fingerprint(secret: str) -> str:
    """Return a name for a key that does not reveal it, the same for the key and for its configured hash."""
    hashed = (
        secret.removeprefix(HASH_PREFIX)
        if secret.startswith(HASH_PREFIX)
        else hashlib.sha256(secret.encode()).hexdigest()
    )
    return hashed[:12]


class _ConfigReader:
    """Validates one parsed configuration file and resolves its references."""

    def __init__(self, file: str, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def read(self, document: dict[str, Any], listen: str) -> Config:
        known = {field.name for field in msgspec.structs.fields(Config)} - {"keys", "source"}
        for name in document:
            if name not in known:
                raise self._build_error(name, f"unknown table{suggest_key(name, known)}")
        server = self._convert_table("server", document.get("server", {}), ServerTable)
        server = msgspec.structs.replace(server, listen=listen or server.listen)
        upstreams = {
            name: self._read_upstream(name, table) for name, table in self._read_tables(document, "upstreams").items()
        } or _find_upstreams(self._environment, server)
        models = {
            name: self._read_targets(name, each, upstreams)
            for name, each in self._read_tables(document, "models").items()
        }
        taken: set[str] = set()
        keys = tuple(self._read_key(at, each, taken) for at, each in enumerate(server.keys))
        sessions = self._convert_table("sessions", document.get("sessions", {}), SessionsTable)
        sessions = msgspec.structs.replace(sessions, url=self._resolve_secret("sessions.url", sessions.url))
        search = self._convert_table("search", document.get("search", {}), SearchTable)
        return Config(
            server=_apply_native_switch(server, self._environment),
            keys=keys,
            upstreams=upstreams,
            models=models,
            sessions=sessions,
            media=self._convert_table("media", document.get("media", {}), MediaTable),
            tools=self.read_tools(self._read_tables(document, "tools")),
            web=self._convert_table("web", document.get("web", {}), WebTable),
            search=msgspec.structs.replace(search, key=self._resolve_secret("search.key", search.key)),
            mcp=add_system_prompt(self._convert_table("mcp", document.get("mcp", {}), McpTable), self._environment),
            agents=self._read_agents(self._read_tables(document, "agents"), models),
            prices={
                name: self._convert_table(f'prices."{name}"', table, PriceTable)
                for name, table in self._read_tables(document, "prices").items()
            },
            intercept=self._read_intercepts(self._read_tables(document, "intercept"), upstreams),
            source=self._file,
        )

    def _read_tables(self, document: dict[str, Any], name: str) -> dict[str, Any]:
        try:
            return msgspec.convert(document.get(name, {}), dict[str, Any])
        except msgspec.ValidationError:
            raise self._build_error(name, "must be a table") from None

    def _convert_table(self, key: str, table: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            message = str(error)
            found = _PATH_IN_ERROR.search(message)
            path = found.group(1) if found else ""
            message = _PATH_IN_ERROR.sub("", message)
            unknown = _UNKNOWN_FIELD.search(message)
            suggestion = suggest_key(unknown.group(1), keys_of(kind)) if unknown else list_choices(kind, path)
            raise self._build_error(key + path, message + suggestion) from None

    def _read_upstream(self, name: str, table: Any) -> UpstreamTable:
        key = f"upstreams.{name}"
        if not _NAME.fullmatch(name):
            raise self._build_error(key, "the name of an upstream may contain only letters, digits, `_`, `.` and `-`")
        read = self._convert_table(key, table, UpstreamTable)
        kind = KINDS.get(read.kind)
        if kind is None:
            raise self._build_error(f"{key}.kind", f"unknown kind {read.kind!r}; use one of {', '.join(KINDS)}")
        if kind.needs_project and not read.project:
            raise self._build_error(f"{key}.project", "required for this kind: set it to a Google Cloud project ID")
        self._check_apis(f"{key}.apis", read, kind)
        vendor, variable = urlsplit(kind.base_url).hostname, kind.key_variable
        if variable and not read.api_key and kind.is_vendors_server(read):
            raise self._build_error(
                f"{key}.api_key",
                f'{vendor} requires a key: set api_key = "env:{variable}", or set base_url to a server that needs none',
            )
        if read.server and read.server not in kind.servers:
            hint = (
                suggest_key(read.server, kind.servers) if kind.servers else f"; kind {read.kind!r} has no such setting"
            )
            raise self._build_error(f"{key}.server", f"unknown server {read.server!r}{hint}")
        return msgspec.structs.replace(
            read,
            api_key=self._resolve_secret(f"{key}.api_key", read.api_key),
            access_token=self._resolve_secret(f"{key}.access_token", read.access_token),
            client_secret=self._resolve_secret(f"{key}.client_secret", read.client_secret),
        )

    def _check_apis(self, key: str, table: UpstreamTable, kind: UpstreamKind) -> None:
        possible, apis = list_apis(kind), table.apis
        if apis is None:
            return
        if not set(kind.dialects) <= set(apis) <= set(possible):
            required = ", ".join(map(repr, kind.dialects))
            optional = ", ".join(repr(api) for api in possible if api not in kind.dialects)
            more = f", and {optional} if the server has it" if optional else ""
            raise self._build_error(key, f"an upstream of kind {kind.name!r} has {required}{more}; got {list(apis)}")

    def _read_key(self, index: int, configured: str | KeyTable, taken: set[str]) -> KeyTable:
        key = f"server.keys[{index}]"
        table = KeyTable(key=configured) if isinstance(configured, str) else configured
        secret = self._resolve_secret(key, table.key)
        if not secret:
            raise self._build_error(
                key, "the key is empty, which would authorise every client; set a key or remove the entry"
            )
        if secret.startswith(HASH_PREFIX):
            secret = secret.lower()
            if not _KEY_HASH.fullmatch(secret):
                raise self._build_error(
                    key, "a sha256 hash has 64 hexadecimal digits; create one with `dragoman config hash-key`"
                )
        # Stored conversations belong to the key's name: a name that depended on the order of the keys would, after a
        # change of that order, give the conversations of one key to another.
        name = table.name or f"key-{_fingerprint(secret)}"
        if name in taken or name == ANONYMOUS_NAME:
            raise self._build_error(
                key, f"the name {name!r} is already used; names must be unique, because stored data belongs to a name"
            )
        taken.add(name)
        return msgspec.structs.replace(table, key=secret, name=name)

    def _resolve_secret(self, key: str, value: str) -> str:
        """Return a value, with `env:NAME` replaced by that environment variable."""
        if not value.startswith("env:"):
            return value
        variable = value.removeprefix("env:")
        if not self._environment.get(variable):
            raise self._build_error(
                key, f"the environment variable {variable} is not set; set it, or write the value here"
            )
        return self._environment[variable]

    def _read_targets(self, name: str, value: Any, upstreams: Mapping[str, UpstreamTable]) -> tuple[str, ...]:
        key = f'models."{name}"'
        try:
            read = msgspec.convert(value, str | tuple[str, ...])
        except msgspec.ValidationError:
            read = ()
        targets = (read,) if isinstance(read, str) else read
        if not targets:
            raise self._build_error(key, 'must be "upstream/model", or a list of such strings')
        if name.count("*") > 1:
            raise self._build_error(key, "a pattern may contain only one `*`")
        for target in targets:
            upstream, slash, model = target.partition("/")
            if not slash or not model:
                raise self._build_error(key, f'{target!r} must be "upstream/model"')
            if upstream not in upstreams:
                raise self._build_error(key, f"unknown upstream {upstream!r}{suggest_key(upstream, upstreams)}")
            if "*" in model and "*" not in name:
                raise self._build_error(key, "the target contains `*`, so the model name must contain one too")
        return targets

    def _read_agents(self, tables: dict[str, Any], models: Mapping[str, object]) -> dict[str, AgentTable]:
        for name in models.keys() & tables.keys():
            raise self._build_error(f"agents.{name}", f"[models] already has {name!r}; rename the agent or the model")
        return {name: self._convert_table(f"agents.{name}", table, AgentTable) for name, table in tables.items()}

    def _read_intercepts(
        self, tables: dict[str, Any], upstreams: Mapping[str, UpstreamTable]
    ) -> dict[str, InterceptTable]:
        dialects = {name: KINDS[table.kind].dialects for name, table in upstreams.items()}
        try:
            return read_intercepts(tables, dialects, self._convert_table, self._resolve_secret)
        except InterceptSettingsError as error:
            raise self._build_error(error.key, str(error)) from None

    def read_tools(self, tables: dict[str, Any]) -> dict[str, ToolServer]:
        try:
            return read_servers(tables, self._environment, self._convert_table, self._resolve_secret)
        except SettingsError as error:
            raise ConfigError(error.source or self._file, error.key, str(error)) from None

    def _build_error(self, key: str, message: str) -> ConfigError:
        return ConfigError(self._file, key, message)
