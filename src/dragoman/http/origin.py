"""Where a server is: scheme, host and port, and the path its URLs begin with."""

from urllib.parse import urlsplit

from msgspec import Struct

PORTS = {"http": 80, "https": 443}
"""The usual port of each scheme."""


class Origin(Struct, frozen=True):
    """A server one can connect to."""

    scheme: str
    host: str
    port: int

    @property
    def secure(self) -> bool:
        """Tell whether it is spoken to through TLS."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """The value of a `host` header: the port only where it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"{self.scheme}://{self.authority}"


def split(url: str) -> tuple[Origin, str]:
    """Return the server of an absolute URL and the rest of it, without a slash at its end.

    Raises `ValueError` where that is no address of a server.
    """
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(f"{url!r} is no http(s) address")
    if parts.username or parts.password or parts.fragment:
        raise ValueError("an address must hold no user name, password or fragment")
    rest = f"{parts.path}?{parts.query}" if parts.query else parts.path.rstrip("/")
    return Origin(parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]), rest
