"""What a kind of upstream is: the settings it takes, the dialects it speaks, and how one is opened."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from dragoman.http.client import Outgoing
from dragoman.upstreams.upstream import Place

TextForm = Literal["json", "legacy"]
Send = Callable[[Outgoing], Awaitable[dict[str, Any]]]
"""Send a request that sets an upstream up and return the JSON object of the reply; an error is a `Problem`."""


class UpstreamTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place where models live, as the configuration has it."""

    kind: str
    base_url: str = ""
    api_key: str = ""
    project: str = ""
    """Google Cloud's project, for what runs there."""
    location: str = "global"
    credentials: str = ""
    """A file with Google's credentials; without one the usual places are looked at."""
    client_id: str = ""
    client_secret: str = ""
    """The OAuth client of a grant that names none."""
    access_token: str = ""
    """A token of Google's that somebody else keeps fresh, instead of credentials."""
    links: bool | None = None
    """Its server fetches media by its address; Claude on Vertex does not."""
    text_calls: TextForm | dict[str, TextForm] | None = None
    """Its models have no tools of their own, all or those that a pattern names, and call them in their text."""
    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


class UpstreamKind(Struct, frozen=True, kw_only=True):
    """One kind of upstream."""

    name: str
    """What `kind` in the configuration says."""
    dialects: tuple[str, ...]
    """The dialects it speaks. Model names and the default model are those of these dialects."""
    open: Callable[[str, UpstreamTable, str, Send], Place]
    """Open an upstream by its name, its settings, our user agent and a function that sends requests to set it up."""
    base_url: str = ""
    """The vendor's own server; "" if that depends on the settings."""
    variables: Mapping[str, str] = {}
    """The environment variables that settings are usually read from, by setting. The first setting is required."""
    found_as: str = ""
    """The name of the upstream that exists without a configuration file if its first variable is set; "" for none."""
    links: bool = True
    """Its server fetches linked media."""
    compatible: bool = False
    """Other vendors' servers are of this kind too: the models behind another base URL are not known."""
    client_variables: tuple[str, ...] = ()
    """The environment variables by which the vendor's clients are given another base URL."""
    client_urls: Callable[[UpstreamTable], tuple[str, ...]] | None = None
    """The base URLs that the vendor's clients use; only needed where clients can be intercepted."""

    @property
    def key_variable(self) -> str:
        """The variable of the key that the vendor's own server demands; "" if it demands none."""
        return self.variables.get("api_key", "")

    @property
    def needs_project(self) -> bool:
        """Whether a Google Cloud project must be named."""
        return "project" in self.variables
