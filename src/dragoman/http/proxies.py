"""Proxies that the environment names: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from dragoman.http.message import Origin, split_url
from dragoman.http.upstream_connection import Unreachable, UpstreamConnection

_MAX_HEAD = 16 << 10


class Proxy(Struct, frozen=True):
    """A proxy and the credentials for it."""

    origin: Origin
    credentials: str = ""


class Proxies:
    """Finds the proxy for a server."""

    def __init__(self, by_scheme: Mapping[str, Proxy]) -> None:
        self._by_scheme = by_scheme
        self._cache: dict[Origin, Proxy | None] = {}

    def find_proxy(self, origin: Origin) -> Proxy | None:
        """Return the proxy for a server; None for a direct connection."""
        if origin not in self._cache:
            proxy = self._by_scheme.get(origin.scheme) or self._by_scheme.get("all")
            self._cache[origin] = None if proxy_bypass(f"{origin.host}:{origin.port}") else proxy
        return self._cache[origin]


def read_environment_proxies() -> Proxies | None:
    """Return the proxies that the environment names; None if it names none."""
    found = {scheme: _parse_proxy(url) for scheme, url in getproxies().items() if scheme in {"http", "https", "all"}}
    return Proxies(found) if found else None


def _parse_proxy(url: str) -> Proxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    origin, _ = split_url(f"{parts.scheme}://{host}{port}")
    if parts.username is None:
        return Proxy(origin)
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(origin, f"Basic {b64encode(pair.encode()).decode()}")


async def open_tunnel(proxy: Proxy, origin: Origin, trust: ssl.SSLContext) -> UpstreamConnection:
    """Connect to a server through a proxy that forwards bytes, with TLS to the server itself."""
    loop = asyncio.get_running_loop()
    secured = ssl.create_default_context() if proxy.origin.is_secure else None
    transport, opening = await loop.create_connection(_TunnelOpening, proxy.origin.host, proxy.origin.port, ssl=secured)
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [f"CONNECT {host}:{origin.port} HTTP/1.1", f"host: {host}:{origin.port}"]
    if proxy.credentials:
        lines.append(f"proxy-authorization: {proxy.credentials}")
    upgraded = None
    try:
        transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        _require_success(await opening.status_line, proxy)
        link = UpstreamConnection()
        upgraded = await loop.start_tls(transport, link, trust, server_hostname=origin.host)
    finally:
        if upgraded is None:
            transport.abort()
    if upgraded is None:
        raise Unreachable(f"the proxy {proxy.origin.authority} closed the tunnel")
    link.connection_made(upgraded)
    return link


def _require_success(line: bytes, proxy: Proxy) -> None:
    if line.split(b" ", 2)[1:2] != [b"200"]:
        raise Unreachable(f"the proxy {proxy.origin.authority} refuses: {line.decode('latin-1').strip()}")


class _TunnelOpening(asyncio.Protocol):
    """Reads a proxy's response to CONNECT."""

    def __init__(self) -> None:
        self._head = b""
        self.status_line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Take bytes up to the end of the head; a tunnel has nothing behind it before we speak."""
        self._head += data
        if self.status_line.done():
            return
        if b"\r\n\r\n" in self._head:
            self.status_line.set_result(self._head.partition(b"\r\n")[0])
        elif len(self._head) > _MAX_HEAD:
            self.status_line.set_exception(Unreachable("the proxy does not speak HTTP"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The proxy hung up."""
        del exc
        if not self.status_line.done():
            self.status_line.set_exception(Unreachable("the proxy hung up"))
