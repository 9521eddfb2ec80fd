"""The definition of an upstream kind: its settings, its dialects, and how to open an upstream of that kind."""

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from dragoman.dialects.record import ServerRow
from dragoman.dialects.registry import dialect_named
from dragoman.http.client import Outgoing
from dragoman.upstreams.upstream import UpstreamSelector

TextForm = Literal["json", "legacy"]
Send = Callable[[Outgoing], Awaitable[dict[str, Any]]]
"""Send a setup request to an upstream and return the JSON object of the reply; raises `Problem` on an error."""


class UpstreamTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `[upstreams.NAME]` table of the configuration."""

    kind: str
    base_url: str = ""
    api_key: str = ""
    project: str = ""
    """The Google Cloud project, for kinds that run there."""
    location: str = "global"
    credentials: str = ""
    """A file with Google credentials; without one the application default credentials are used."""
    client_id: str = ""
    client_secret: str = ""
    """The OAuth client for a refresh token that comes without one."""
    access_token: str = ""
    """A Google access token that the user keeps fresh, used instead of credentials."""
    links: bool | None = None
    """Whether the server fetches media from URLs; Claude on Vertex AI does not."""
    apis: tuple[str, ...] | None = None
    """The APIs that the server has, by dialect; None for all of the vendor at the vendor's own server, else one."""
    text_calls: TextForm | dict[str, TextForm] | None = None
    """Use text calls for models without tool support: for all of them, or for those that match a pattern."""
    cache_marks: Literal["auto", "off"] = "auto"
    """Whether requests of clients without cache marks get some, where the model caches only what is marked."""
    passthrough: Literal["adapt", "exact"] = "adapt"
    """Whether requests in its own dialect are adapted to another model, or only get its name."""
    server: str = ""
    """The server program or vendor behind a compatible API, if the base URL does not say it."""
    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


class UpstreamKind(Struct, frozen=True, kw_only=True):
    """One kind of upstream."""

    name: str
    """The value of `kind` in the configuration."""
    dialects: tuple[str, ...]
    """The dialects it uses. They define its model names and its default model."""
    open: Callable[[str, UpstreamTable, str, Send], UpstreamSelector]
    """Open an upstream from its name, its settings, the user agent and a function that sends setup requests."""
    base_url: str = ""
    """The vendor's server; "" if it depends on the settings."""
    variables: Mapping[str, str] = {}
    """The environment variables that settings are read from by default, by setting. The first setting is required."""
    found_as: str = ""
    """The name of the upstream that exists without a configuration file if its first variable is set; "" for none."""
    links: bool = True
    """Whether the server fetches media from URLs."""
    compatible: bool = False
    """Whether other vendors' servers use this kind, so that the models behind another base URL are unknown."""
    other_kind: str = ""
    """The kind for another API of the same server, for models that take some requests only there; "" for none."""
    client_variables: tuple[str, ...] = ()
    """The environment variables that set another base URL in the vendor's clients."""
    client_urls: Callable[[UpstreamTable], tuple[str, ...]] | None = None
    """The base URLs that the vendor's clients use; only needed for clients that can be intercepted."""

    describe_credentials: Callable[[UpstreamTable], str] | None = None
    """Say where credentials come from if the settings have neither a key nor a token; only for kinds that have some."""

    @property
    def servers(self) -> dict[str, ServerRow]:
        """The servers that `server` can name, from the dialects of this kind."""
        return {name: row for dialect in self.dialects for name, row in dialect_named(dialect).servers.items()}

    def find_server(self, table: UpstreamTable) -> str:
        """Return the name of an upstream's server, from its settings or the host of its base URL; "" if unknown."""
        if table.server:
            return table.server
        site = urlsplit(table.base_url or self.base_url)
        places = ((site.hostname or "").lower(), site.netloc.lower())
        for name, row in self.servers.items():
            if any(fnmatchcase(place, pattern) for pattern in row.hosts for place in places):
                return name
        return ""

    @property
    def key_variable(self) -> str:
        """The environment variable of the API key that the vendor's server requires; "" if it requires none."""
        return self.variables.get("api_key", "")

    def is_vendors_server(self, table: UpstreamTable) -> bool:
        """Return whether an upstream is the vendor's own server."""
        vendor = urlsplit(self.base_url).hostname
        return vendor is not None and (not table.base_url or urlsplit(table.base_url).hostname == vendor)

    @property
    def needs_project(self) -> bool:
        """Whether a Google Cloud project is required."""
        return "project" in self.variables
