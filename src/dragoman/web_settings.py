"""The table `[web]` of the configuration: allowed hosts and limits of the tool `web_fetch`."""

from pathlib import Path
from typing import Literal

from msgspec import Struct

from dragoman.http.addresses import LinkRefused, normalize_host, parse_host_port


class WebTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[web]`: which hosts and files `web_fetch` may read, and its limits."""

    allow: tuple[str, ...] = ()
    """Domains that may be fetched, each with its subdomains; empty allows all domains."""
    deny: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    """Servers (`host:port`) that may be contacted although their addresses are not public."""
    files: tuple[str, ...] = ()
    """Directories whose files may be read with `file://` URLs."""
    redirects: Literal["site", "anywhere"] = "site"
    max_bytes: int = 5 << 20
    seconds: float = 20.0
    cache_seconds: float = 300.0

    def __post_init__(self) -> None:
        for entry in (*self.allow, *self.deny):
            if not _is_domain(entry):
                raise ValueError(f'{entry!r} in allow or deny is not a domain; write, for example, "example.com"')
        for entry in self.private:
            if parse_host_port(entry) is None:
                raise ValueError(
                    f'{entry!r} in private is not "host:port"; write, for example, "wiki.corp.example:443"'
                )
        for entry in self.files:
            if not Path(entry).is_absolute():
                raise ValueError(f"{entry!r} in files is not an absolute path; write the full path of a directory")
        if self.max_bytes < 1 or not self.seconds > 0:
            raise ValueError("max_bytes and seconds must be greater than 0")


def _is_domain(entry: str) -> bool:
    bare = entry.strip().removeprefix("*.")
    if bare.startswith("["):
        return parse_host_port(f"{bare}:1") is not None
    try:
        normalize_host(bare)
    except LinkRefused:
        return False
    return True
