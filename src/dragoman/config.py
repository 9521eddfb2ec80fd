"""The configuration: a file, or else the environment, and what is wrong with it.

Every error names the file, the key in it and what would be right there.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from dragoman.config_hints import keys_of, list_choices, suggest_key
from dragoman.gateway.agents.settings import AgentTable, PriceTable
from dragoman.intercept.settings import InterceptSettingsError, InterceptTable, read_intercepts
from dragoman.mcp.settings import McpTable, SettingsError, ToolServer, add_system_prompt, read_servers
from dragoman.plugins import load_plugins
from dragoman.upstreams.kind import UpstreamTable
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.web_settings import WebTable

T = TypeVar("T")
_KEY_HASH = re.compile(r"sha256:[0-9a-f]{64}")
LISTEN = "127.0.0.1:8741"
_DEFAULT_FILE = "dragoman.toml"
HASH_PREFIX = "sha256:"
ANONYMOUS_NAME = "local"
"""Who asks where no key is configured."""
_PATH_VARIABLE = "DRAGOMAN_CONFIG"
_NATIVE_CALLS_VARIABLE = "GEMINI_USE_NATIVE_FUNCTION_CALLING"
_BOOLEAN_WORDS = {"": True, "true": True, "1": True, "yes": True, "on": True} | dict.fromkeys(
    ("false", "0", "no", "off"), False
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*)`")
_KEY_IN_ERROR = re.compile(r" - at `\$?(.*?)`$")


class ConfigError(ValueError):
    """The configuration cannot be used as it is."""

    def __init__(self, file: str, key: str, message: str) -> None:
        super().__init__(f"{file}: {key}: {message}" if key else f"{file}: {message}")


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: a key nobody reads is an error, not a surprise."""


class KeyTable(Table, frozen=True):
    """A key that is let in, and what it may do."""

    key: str
    name: str = ""
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    concurrency: int = 0


class LimitsTable(Table, frozen=True):
    """How much of a client is borne."""

    body: int = 64 << 20
    head: int = 64 << 10
    idle: float = 75.0
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    write_seconds: float = 60.0


class RetriesTable(Table, frozen=True):
    """How often what may pass is tried again, and how long the waits before are."""

    most: int = 2
    first_wait: float = 0.5
    longest_wait: float = 8.0
    longest_asked: float = 20.0


class ServerTable(Table, frozen=True):
    """Where to listen, who may come in."""

    listen: str = LISTEN
    keys: tuple[str | KeyTable, ...] = ()
    hosts: tuple[str, ...] = ()
    """Names by which clients may call the server, beside its own."""
    origins: tuple[str, ...] = ()
    """Patterns of the web origins whose pages may ask, beside those of its own names."""
    strict: bool = False
    limits: LimitsTable = LimitsTable()
    retries: RetriesTable = RetriesTable()
    hold: float = 10.0
    """Seconds a stream waits for its first event before the client is told that it begins."""
    heartbeat: float = 15.0
    grace: float = 20.0
    """Seconds that open answers are given to end when the server stops."""
    log: str = "stderr"
    """Where a line for each exchange goes: "stderr", "off", or a file."""
    log_format: Literal["json", "text"] = "json"
    use_native_function_calling: bool = True
    """Models have tools of their own; if not, all are told of them in words and call them in their text."""


class MediaTable(Table, frozen=True):
    """How linked media is fetched that an upstream does not fetch itself."""

    fetch: bool = True
    max_bytes: int = 20 << 20
    """For all links of a request together."""
    max_links: int = 20
    seconds: float = 20.0
    allow: tuple[str, ...] = ()
    """Hosts by pattern, and networks, that may be asked though they are not public."""


class SessionsTable(Table, frozen=True):
    """What is kept of conversations, and where."""

    url: str = ""
    """`sqlite:///file` or `postgresql://…`; empty for a file among the user's state."""
    state: Literal["gateway", "upstream"] = "gateway"
    """Who keeps what a Responses request asks to be kept."""
    keep_days: float = 30.0
    """How long a conversation that nobody goes on with is kept; 0 for ever."""


class Config(Struct, frozen=True, kw_only=True):
    """What is configured, with every reference to the environment followed."""

    server: ServerTable = ServerTable()
    keys: tuple[KeyTable, ...] = ()
    """Those of the server, each with a name."""
    upstreams: Mapping[str, UpstreamTable] = {}
    models: Mapping[str, tuple[str, ...]] = {}
    sessions: SessionsTable = SessionsTable()
    media: MediaTable = MediaTable()
    tools: Mapping[str, ToolServer] = {}
    """External servers whose tools we run."""
    web: WebTable = WebTable()
    mcp: McpTable = McpTable()
    agents: Mapping[str, AgentTable] = {}
    prices: Mapping[str, PriceTable] = {}
    intercept: Mapping[str, InterceptTable] = {}
    source: str = "the environment"

    @property
    def secrets(self) -> frozenset[str]:
        """Whatever must not be read anywhere: keys of upstreams and of clients."""
        upstreams = self.upstreams.values()
        shown = {secret for each in upstreams for secret in (each.api_key, each.access_token, each.client_secret)}
        given = {secret for each in self.tools.values() for secret in each.secrets}
        return frozenset({*shown, *given, *(key.key for key in self.keys)} - {""})


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read the configuration: the file that is named, or the one that lies here, or none."""
    load_plugins()
    file = find_file(path, environment)
    if file is None:
        server, tools = _apply_environment(ServerTable(), environment), _ConfigReader("", environment).read_tools({})
        mcp = add_system_prompt(McpTable(), environment)
        return Config(server=server, upstreams=found_in(environment), tools=tools, mcp=mcp)
    try:
        document = tomllib.loads(file.read_text())
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), "", f"is no TOML: {error}") from None
    return _ConfigReader(str(file), environment).read(document)


def _apply_environment(server: ServerTable, environment: Mapping[str, str]) -> ServerTable:
    """Let the environment say that no model uses tools of its own, whatever the file says."""
    said = environment.get(_NATIVE_CALLS_VARIABLE, "").strip().lower()
    if said not in _BOOLEAN_WORDS:
        raise ConfigError("the environment", _NATIVE_CALLS_VARIABLE, f"{said!r} is neither true nor false")
    return server if _BOOLEAN_WORDS[said] else msgspec.structs.replace(server, use_native_function_calling=False)


def find_file(path: Path | None, environment: Mapping[str, str]) -> Path | None:
    """Return the file that is named, or else the one that lies here; None if there is none."""
    named = path or (Path(environment[_PATH_VARIABLE]) if environment.get(_PATH_VARIABLE) else None)
    return named or (Path(_DEFAULT_FILE) if Path(_DEFAULT_FILE).is_file() else None)


def found_in(environment: Mapping[str, str]) -> dict[str, UpstreamTable]:
    """Return the upstreams whose usual keys are set; the simulator where there is none."""
    found: dict[str, UpstreamTable] = {}
    # Keys go before projects: a key names one vendor, a project several.
    for kind in sorted(KINDS.values(), key=attrgetter("needs_project")):
        if kind.found_as and environment.get(next(iter(kind.variables.values()), "")):
            settings = {name: environment.get(variable) for name, variable in kind.variables.items()}
            given = {name: value for name, value in settings.items() if value}
            found[kind.found_as] = msgspec.convert({"kind": kind.name, **given}, UpstreamTable)
    return found or {SIMULATOR.name: UpstreamTable(kind=SIMULATOR.name)}


def _fingerprint(secret: str) -> str:
    """Return a name for a key that says nothing of it, the same for the key and for its hash."""
    hashed = (
        secret.removeprefix(HASH_PREFIX)
        if secret.startswith(HASH_PREFIX)
        else hashlib.sha256(secret.encode()).hexdigest()
    )
    return hashed[:12]


class _ConfigReader:
    """Reads one file."""

    def __init__(self, file: str, environment: Mapping[str, str]) -> None:
        self._file = file
        self._environment = environment

    def read(self, document: dict[str, Any]) -> Config:
        known = {field.name for field in msgspec.structs.fields(Config)} - {"keys", "source"}
        for name in document:
            if name not in known:
                raise self._build_error(name, f"there is no such table{suggest_key(name, known)}")
        server = self._convert_table("server", document.get("server", {}), ServerTable)
        upstreams = {
            name: self._read_upstream(name, table) for name, table in self._read_tables(document, "upstreams").items()
        } or found_in(self._environment)
        models = {
            name: self._read_targets(name, said, upstreams)
            for name, said in self._read_tables(document, "models").items()
        }
        taken: set[str] = set()
        keys = tuple(self._read_key(at, said, taken) for at, said in enumerate(server.keys))
        sessions = self._convert_table("sessions", document.get("sessions", {}), SessionsTable)
        sessions = msgspec.structs.replace(sessions, url=self._resolve_secret("sessions.url", sessions.url))
        return Config(
            server=_apply_environment(server, self._environment),
            keys=keys,
            upstreams=upstreams,
            models=models,
            sessions=sessions,
            media=self._convert_table("media", document.get("media", {}), MediaTable),
            tools=self.read_tools(self._read_tables(document, "tools")),
            web=self._convert_table("web", document.get("web", {}), WebTable),
            mcp=add_system_prompt(self._convert_table("mcp", document.get("mcp", {}), McpTable), self._environment),
            agents=self._read_agents(self._read_tables(document, "agents"), models),
            prices={
                name: self._convert_table(f'prices."{name}"', said, PriceTable)
                for name, said in self._read_tables(document, "prices").items()
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
            words = str(error)
            place = _KEY_IN_ERROR.search(words)
            inner = place.group(1) if place else ""
            words = _KEY_IN_ERROR.sub("", words)
            unknown = _UNKNOWN_FIELD.search(words)
            told = suggest_key(unknown.group(1), keys_of(kind)) if unknown else list_choices(kind, inner)
            raise self._build_error(key + inner, words + told) from None

    def _read_upstream(self, name: str, table: Any) -> UpstreamTable:
        key = f"upstreams.{name}"
        if not _NAME.fullmatch(name):
            raise self._build_error(key, "a name has letters, digits, `_`, `.` and `-` only")
        read = self._convert_table(key, table, UpstreamTable)
        kind = KINDS.get(read.kind)
        if kind is None:
            raise self._build_error(f"{key}.kind", f"Invalid enum value {read.kind!r}; there are {', '.join(KINDS)}")
        if kind.needs_project and not read.project:
            raise self._build_error(f"{key}.project", "a Google Cloud project must be named")
        vendor, variable = urlsplit(kind.base_url).hostname, kind.key_variable
        is_vendors = not read.base_url or urlsplit(read.base_url).hostname == vendor
        if vendor and variable and not read.api_key and is_vendors:
            raise self._build_error(
                f"{key}.api_key",
                f'{vendor} wants a key: write api_key = "env:{variable}", or a base_url of a server that wants none',
            )
        return msgspec.structs.replace(
            read,
            api_key=self._resolve_secret(f"{key}.api_key", read.api_key),
            access_token=self._resolve_secret(f"{key}.access_token", read.access_token),
            client_secret=self._resolve_secret(f"{key}.client_secret", read.client_secret),
        )

    def _read_key(self, index: int, entry: str | KeyTable, taken: set[str]) -> KeyTable:
        key = f"server.keys[{index}]"
        table = KeyTable(key=entry) if isinstance(entry, str) else entry
        secret = self._resolve_secret(key, table.key)
        if not secret:
            raise self._build_error(key, "an empty key would let everybody in")
        if secret.startswith("sha256:"):
            secret = secret.lower()
            if not _KEY_HASH.fullmatch(secret):
                raise self._build_error(key, "a hash has 64 hexadecimal digits: `dragoman config hash-key` prints one")
        # What a key keeps is kept under its name: one that depends on the order of keys would give it to another.
        name = table.name or f"key-{_fingerprint(secret)}"
        if name in taken or name == ANONYMOUS_NAME:
            raise self._build_error(key, f"the name {name!r} is taken: what one key keeps, another must not see")
        taken.add(name)
        return msgspec.structs.replace(table, key=secret, name=name)

    def _resolve_secret(self, key: str, value: str) -> str:
        """Follow a reference to the environment."""
        if not value.startswith("env:"):
            return value
        variable = value.removeprefix("env:")
        if not self._environment.get(variable):
            raise self._build_error(key, f"the environment has no {variable}: set it, or write the value here")
        return self._environment[variable]

    def _read_targets(self, name: str, value: Any, upstreams: Mapping[str, UpstreamTable]) -> tuple[str, ...]:
        key = f'models."{name}"'
        try:
            read = msgspec.convert(value, str | tuple[str, ...])
        except msgspec.ValidationError:
            read = ()
        targets = (read,) if isinstance(read, str) else read
        if not targets:
            raise self._build_error(key, 'must be "upstream/model", or a list of such')
        if name.count("*") > 1:
            raise self._build_error(key, "a pattern has one `*` only")
        for target in targets:
            place, slash, model = target.partition("/")
            if not slash or not model:
                raise self._build_error(key, f'{target!r} must be "upstream/model"')
            if place not in upstreams:
                raise self._build_error(key, f"there is no upstream {place!r}{suggest_key(place, upstreams)}")
            if "*" in model and "*" not in name:
                raise self._build_error(key, "a `*` in the target needs one in the name")
        return targets

    def _read_agents(self, tables: dict[str, Any], models: Mapping[str, object]) -> dict[str, AgentTable]:
        for name in models.keys() & tables.keys():
            raise self._build_error(
                f"agents.{name}", "a model of that name is configured: only one of them can be asked for"
            )
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
