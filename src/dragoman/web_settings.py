"""The table `[web]` of the configuration: how far the tool `web_fetch` goes, and how much it takes."""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from dragoman.http.addresses import LinkRefused, normalize_host, parse_host_port


class WebTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `web_fetch` may do."""

    allow: tuple[str, ...] = ()
    """Domains that may be asked, each with all below it; none for all."""
    deny: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Places, `host:port`, that may be asked though their addresses are not public."""
    files: tuple[str, ...] = ()
    """Directories whose files may be read as `file://`."""
    redirects: Literal["site", "anywhere"] = "site"
    max_bytes: int = 5 << 20
    seconds: float = 20.0
    cache_seconds: float = 300.0

    def __post_init__(self) -> None:
        for entry in (*self.allow, *self.deny):
            if not _is_domain(entry):
                raise ValueError(f'allow and deny hold domains like "example.com", and {entry!r} is none')
        for entry in self.private:
            if parse_host_port(entry) is None:
                raise ValueError(f'private holds places like "wiki.corp.example:443", and {entry!r} is none')
        for entry in self.files:
            if not Path(entry).is_absolute():
                raise ValueError(f"files holds whole paths of directories, and {entry!r} is none")
        if self.max_bytes < 1 or not self.seconds > 0:
            raise ValueError("max_bytes and seconds must be more than 0")


def _is_domain(entry: str) -> bool:
    bare = entry.strip().removeprefix("*.")
    if bare.startswith("["):
        return parse_host_port(f"{bare}:1") is not None
    try:
        normalize_host(bare)
    except LinkRefused:
        return False
    return True
