"""Proxies from the environment, and which URLs are valid."""

import pytest

from dragoman.http.client import Client, Outgoing
from dragoman.http.message import Origin, split_url
from dragoman.http.server import listen
from dragoman.http.upstream_connection import Unreachable
from http_peers import QUICK, Peer, at, echo


def test_a_proxy_from_the_environment_gets_the_absolute_url(run, monkeypatch):
    async def steps(_: Client) -> bytes:
        peer = Peer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        async with peer as asked:
            monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{asked.origin.port}")
            far = Outgoing(Origin("http", "far.example.com", 80), "GET", "/there")
            proxied = Client()
            await (await proxied.send(far, QUICK)).read()
            await proxied.close()
        return peer.received

    result = run(steps)
    assert result.startswith(b"GET http://far.example.com/there HTTP/1.1\r\nhost: far.example.com\r\n")
    assert b"proxy-authorization: Basic bWU6c2VjcmV0\r\n" in result


@pytest.mark.parametrize(("host", "is_marked"), [("127.0.0.1", True), ("far.example", False)])
def test_a_mark_is_only_sent_to_the_marked_hosts(run, host, is_marked):
    async def steps(client: Client) -> bytes:
        peer = Peer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        client.mark_requests(frozenset({host}), "x-mark", "mine")
        async with peer as asked:
            await (await client.send(Outgoing(asked.origin, "GET", "/"), QUICK)).read()
        return peer.received

    assert (b"\r\nx-mark: mine\r\n" in run(steps)) == is_marked


def test_no_proxy_bypasses_the_proxy(run, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    async def steps(client: Client) -> int:
        async with listen(echo, grace=0.1) as server:
            return (await client.send(at(server), QUICK)).status

    assert run(steps) == 200


def test_a_proxy_that_refuses_a_tunnel_is_not_reached(run, monkeypatch):
    async def steps(_: Client) -> bytes:
        peer = Peer(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        async with peer as asked:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{asked.origin.port}")
            with pytest.raises(Unreachable, match="407"):
                await Client().send(Outgoing(Origin("https", "far.example.com", 443), "GET", "/"), QUICK)
        return peer.received

    assert run(steps).startswith(b"CONNECT far.example.com:443 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("url", "origin", "rest"),
    [
        ("https://api.example.com/v1/", Origin("https", "api.example.com", 443), "/v1"),
        ("http://[::1]:8080", Origin("http", "::1", 8080), ""),
        ("http://host/a?b=c", Origin("http", "host", 80), "/a?b=c"),
    ],
)
def test_an_address_is_split(url, origin, rest):
    assert split_url(url) == (origin, rest)


@pytest.mark.parametrize("url", ["ftp://x", "nothing", "http://", "http://user:pw@host", "http://host/#x"])
def test_an_invalid_url_is_refused(url):
    with pytest.raises(ValueError, match="URL"):
        split_url(url)
