"""HTTP proxies from the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case."""

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
    """A proxy and its credentials."""

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
    """Return the proxies that are set in the environment; None if there are none."""
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


async def open_tunnel(proxy: Proxy, origin: Origin, ssl_context: ssl.SSLContext) -> UpstreamConnection:
    """Open a CONNECT tunnel through a proxy, with TLS to the server itself."""
    loop = asyncio.get_running_loop()
    proxy_tls = ssl.create_default_context() if proxy.origin.is_secure else None
    transport, opening = await loop.create_connection(
        _TunnelOpening, proxy.origin.host, proxy.origin.port, ssl=proxy_tls
    )
    host = f"[{origin.host}]" if ":" in origin.host else origin.host
    lines = [f"CONNECT {host}:{origin.port} HTTP/1.1", f"host: {host}:{origin.port}"]
    if proxy.credentials:
        lines.append(f"proxy-authorization: {proxy.credentials}")
    upgraded = None
    try:
        transport.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        _require_success(await opening.status_line, proxy)
        connection = UpstreamConnection()
        upgraded = await loop.start_tls(transport, connection, ssl_context, server_hostname=origin.host)
    finally:
        if upgraded is None:
            transport.abort()
    if upgraded is None:
        raise Unreachable(f"the proxy {proxy.origin.authority} closed the tunnel")
    connection.connection_made(upgraded)
    return connection


def _require_success(line: bytes, proxy: Proxy) -> None:
    if line.split(b" ", 2)[1:2] != [b"200"]:
        raise Unreachable(f"the proxy {proxy.origin.authority} rejected CONNECT: {line.decode('latin-1').strip()}")


class _TunnelOpening(asyncio.Protocol):
    """Reads a proxy's response to CONNECT."""

    def __init__(self) -> None:
        self._head = b""
        self.status_line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        """Read up to the end of the head; no bytes follow it, because TLS clients send first."""
        self._head += data
        if self.status_line.done():
            return
        if b"\r\n\r\n" in self._head:
            self.status_line.set_result(self._head.partition(b"\r\n")[0])
        elif len(self._head) > _MAX_HEAD:
            self.status_line.set_exception(Unreachable("the response of the proxy is not HTTP"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if the proxy closed the connection before its response."""
        del exc
        if not self.status_line.done():
            self.status_line.set_exception(Unreachable("the proxy closed the connection"))
