"""What `web_fetch` may do."""

from typing import Literal

from msgspec import Struct

Redirects = Literal["site", "anywhere"]
"""Which redirects are followed: those that stay with a host, or all."""


class Settings(Struct, frozen=True, kw_only=True):
    """How far it goes, and how much it takes."""

    allow: tuple[str, ...] = ()
    """Domains that may be asked, each with all below it; none for all."""
    deny: tuple[str, ...] = ()
    """Domains that must not be asked, each with all below it."""
    private: tuple[str, ...] = ()
    """Places, `host:port`, that may be asked though their addresses are not public."""
    files: tuple[str, ...] = ()
    """Directories whose files may be read as `file://`."""
    redirects: Redirects = "site"
    """Whether a redirect to another host is followed, or told to the model, who then has to ask for it."""
    max_bytes: int = 5 << 20
    """Of a page, packed and unpacked."""
    seconds: float = 20.0
    cache_seconds: float = 300.0
    """How long a page is kept; 0 to fetch it anew for each call."""
    agent: str = "dragoman"
    """How it calls itself."""
