"""Untrusted URLs are fetched only from the public internet, within limits of size and time."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any

import pytest
import trustme

from dragoman.http.addresses import AllowList, LinkRefused, is_public
from dragoman.http.exchange import Exchange
from dragoman.http.safe_fetch import ByteBudget, GuardedFetcher, LinkedPage
from dragoman.http.server import Server, listen

LOOPBACK = ("127.0.0.0/8",)
NOT_PUBLIC = [
    "127.0.0.1", "127.8.9.1", "0.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "203.0.113.9", "224.0.0.1", "255.255.255.255",
    "240.0.0.1", "192.88.99.1", "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1",
    "ff02::1", "2001:db8::1", "3fff::1", "5f00::1", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:7f00:1",
]  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_on_the_public_internet_is_known_in_every_form(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::200e"])
def test_others_are_public(address):
    assert is_public(ip_address(address))


def test_hosts_are_allowed_by_pattern_and_addresses_by_network():
    allowed = AllowList(["*.corp.example", "10.0.0.0/8"])
    assert allowed.allows_host("Files.Corp.example.")
    assert not allowed.allows_host("corp.example.evil")
    assert allowed.allows_address(ip_address("10.2.3.4"))
    assert not allowed.allows_address(ip_address("11.2.3.4"))


class Names:
    """A resolver that returns the given lists one after the other, and counts its calls."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        del port
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def fetch_url(
    url: str, guard: GuardedFetcher | None = None, *, most: int = 1 << 20, seconds: float = 5.0
) -> LinkedPage:
    return asyncio.run((guard or GuardedFetcher()).fetch(url, ByteBudget(most), seconds))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/a", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/",
        "http://0/", "http://localhost/", "http://localhost./", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
        "http://[::]/", "http://169.254.169.254/latest/meta-data/", "http://[fe80::1%25eth0]/", "http://①②⑦.⓪.⓪.①/",
        "http://127。0。0。1/", "http://user:pass@8.8.8.8/", "http://8.8.8.8\\@127.0.0.1/", "http://8.8.8.8:22/",
        "file:///etc/passwd", "ftp://8.8.8.8/", "gopher://8.8.8.8/", "data:text/plain,x", "unix:///run/x", "//8.8.8.8/",
        "http:8.8.8.8", "http:///x", "http://8.8.8.8/\r\nx: y", "http://8.8.8.8:99999/", "http://[::1", "javascript:1",
        "https://exa mple.com/", "",
    ],
)  # fmt: skip
def test_an_invalid_or_private_url_is_refused_before_any_connection(url, monkeypatch):
    connected = []

    async def connect(*arguments: object, **_: object) -> None:
        connected.append(arguments)
        raise OSError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)
    with pytest.raises(LinkRefused) as error:
        fetch_url(url)
    assert not connected
    assert "127.0.0.1" not in str(error.value)


@pytest.mark.parametrize("answer", [["8.8.8.8", "10.0.0.1"], ["::ffff:10.0.0.1"], ["169.254.169.254"]])
def test_a_name_with_one_address_that_is_not_public_is_refused(answer):
    with pytest.raises(LinkRefused, match="public"):
        fetch_url("https://mixed.example/a.png", GuardedFetcher(resolve=Names(answer)))


def test_an_unknown_name_gets_the_same_message_as_a_private_one():
    words = set()
    for answer in ([], ["10.0.0.1"]):
        with pytest.raises(LinkRefused) as error:
            fetch_url("https://wiki.corp.example/", GuardedFetcher(resolve=Names(answer)))
        words.add(str(error.value))
    assert len(words) == 1


def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_vetted(monkeypatch):
    names = Names(["8.8.8.8"], ["127.0.0.1"])
    tried = []

    async def connect(*arguments: object, **_: object) -> None:
        tried.append(arguments[2:4])
        raise OSError

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)
    with pytest.raises(LinkRefused, match="reached"):
        fetch_url("http://rebind.example/a.png", GuardedFetcher(resolve=names))
    assert names.asked == ["rebind.example"]
    assert tried == [("8.8.8.8", 80)]


def serve(handler: Callable[[Exchange], Awaitable[None]], steps: Callable[[Server], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with listen(handler, grace=0.1) as server:
            return await steps(server)

    return asyncio.run(asyncio.wait_for(run(), 20))


async def picture(exchange: Exchange) -> None:
    received = exchange.request
    names = {name for name, _ in received.headers}
    assert names == {"host", "accept", "accept-encoding", "connection"}
    await exchange.send(
        200, {"content-type": "image/png; x=y", "set-cookie": "a=b"}, b"\x89PNG" + received.target.encode()
    )


def test_an_allowed_url_is_fetched_without_credentials_or_cookies():
    page = serve(
        picture, lambda server: GuardedFetcher(LOOPBACK).fetch(f"{server.base_url}/a%20b?q=ä", ByteBudget(99), 5)
    )
    assert (page.media_type, page.body) == ("image/png", b"\x89PNG/a%20b?q=%C3%A4")


def test_the_server_gets_the_host_name_and_not_its_address():
    collected = []

    async def handler(exchange: Exchange) -> None:
        collected.append(exchange.request.header("host"))
        await exchange.send(200, {}, b"x")

    async def steps(server: Server) -> LinkedPage:
        port = server.address[1]
        guard = GuardedFetcher(("pictures.example",), resolve=Names(["127.0.0.1"]))
        return await guard.fetch(f"http://Pictures.example:{port}/", ByteBudget(9), 5)

    assert serve(handler, steps).body == b"x"
    assert collected[0].startswith("pictures.example:")


def redirect(to: str, status: int = 302) -> Callable[[Exchange], Awaitable[None]]:
    async def handler(exchange: Exchange) -> None:
        if exchange.request.path == "/end":
            await exchange.send(200, {"content-type": "text/plain"}, b"end")
        else:
            await exchange.send(status, {"location": to})

    return handler


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status):
    page = serve(
        redirect("/end", status), lambda server: GuardedFetcher(LOOPBACK).fetch(server.base_url, ByteBudget(9), 5)
    )
    assert (page.media_type, page.body) == ("text/plain", b"end")
    assert page.url.endswith("/end")


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("http://10.0.0.1/", "public"),
        ("//169.254.169.254/latest", "public"),
        ("http://[::1]/", "public"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("gopher://8.8.8.8/", "not an http or https URL"),
        ("http://a:b@8.8.8.8/", "user name"),
        ("http://[::1", "not a valid URL|invalid URL"),
        ("http://[x]/", "not a valid URL|invalid URL"),
        ("/again", "too often"),
    ],
)
def test_a_redirect_is_a_link_like_any_other(to, why):
    with pytest.raises(LinkRefused, match=why):
        serve(redirect(to), lambda server: GuardedFetcher(LOOPBACK).fetch(server.base_url, ByteBudget(9), 5))


async def endless(exchange: Exchange) -> None:
    exchange.start(200, {"content-type": "image/png"})
    while True:
        await exchange.write(b"x" * 4096)


async def drip(exchange: Exchange) -> None:
    exchange.start(200, {"content-type": "image/png"})
    while True:
        await exchange.write(b"x")
        await asyncio.sleep(0.01)


async def silent(exchange: Exchange) -> None:
    await exchange.wait_disconnected()


async def long_headed(exchange: Exchange) -> None:
    await exchange.send(200, {f"x-{at}": "y" * 1000 for at in range(200)}, b"x")


async def pack(exchange: Exchange) -> None:
    await exchange.send(200, {"content-encoding": "gzip"}, b"x")


async def find_missing(exchange: Exchange) -> None:
    await exchange.send(404, {}, b"secrets of the network")


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (endless, "larger than 100000 bytes"),
        (drip, "within 0.3 seconds"),
        (silent, "within 0.3 seconds"),
        (long_headed, "reached"),
        (pack, "encoding that was not requested"),
        (find_missing, "status 404"),
    ],
    ids=["endless", "dripping", "silent", "long-headed", "packed", "missing"],
)
def test_a_server_that_wants_more_of_us_does_not_get_it(handler, why):
    with pytest.raises(LinkRefused, match=why) as error:
        serve(handler, lambda server: GuardedFetcher(LOOPBACK).fetch(server.base_url, ByteBudget(100_000), 0.3))
    assert "secrets" not in str(error.value)


def test_a_length_that_is_too_much_is_not_waited_for():
    async def handler(exchange: Exchange) -> None:
        exchange.start(200, {}, length=99_999_999)
        await exchange.wait_disconnected()

    with pytest.raises(LinkRefused, match="larger"):
        serve(handler, lambda server: GuardedFetcher(LOOPBACK).fetch(server.base_url, ByteBudget(1000), 5))


def test_several_fetches_share_their_room():
    async def handler(exchange: Exchange) -> None:
        await exchange.send(200, {}, b"x" * 600)

    async def steps(server: Server) -> list[object]:
        room = ByteBudget(1000)
        fetches = (GuardedFetcher(LOOPBACK).fetch(server.base_url, room, 5) for _ in range(2))
        return await asyncio.gather(*fetches, return_exceptions=True)

    kinds = sorted(type(found).__name__ for found in serve(handler, steps))
    assert kinds == ["LinkRefused", "LinkedPage"]


def test_a_proxy_from_the_environment_is_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert serve(redirect("/end"), lambda server: GuardedFetcher(LOOPBACK).fetch(server.base_url, ByteBudget(9), 5))


def fetch_over_tls(reply: bytes, *, issued_for: str, asked_as: str) -> LinkedPage:
    """Fetch from a server whose certificate authority is trusted."""
    authority = trustme.CA()
    context, trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert(issued_for).configure_cert(context)
    authority.configure_trust(trust)

    async def steps() -> LinkedPage:
        gone = asyncio.Event()

        class Secured(asyncio.Protocol):
            """Sends its response to any request."""

            def connection_made(self, transport: Any) -> None:
                self.transport = transport

            def data_received(self, data: bytes) -> None:
                self.transport.write(reply)

            def connection_lost(self, exc: Exception | None) -> None:
                gone.set()

        server = await asyncio.get_running_loop().create_server(Secured, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        guard = GuardedFetcher(("*.example",), resolve=Names(["127.0.0.1"]), ssl_context=trust)
        async with server:
            try:
                found = await guard.fetch(f"https://{asked_as}:{port}/", ByteBudget(99), 5)
                await gone.wait()
            finally:
                server.close()
            return found

    return asyncio.run(asyncio.wait_for(steps(), 10))


REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret"


def test_a_certificate_must_be_for_the_name_of_the_link():
    assert fetch_over_tls(REPLY, issued_for="names.example", asked_as="names.example").body == b"secret"
    with pytest.raises(LinkRefused, match="reached"):
        fetch_over_tls(REPLY, issued_for="names.example", asked_as="others.example")


def test_a_redirect_from_https_to_http_is_refused():
    reply = b"HTTP/1.1 302 Found\r\nlocation: http://names.example/\r\ncontent-length: 0\r\n\r\n"
    with pytest.raises(LinkRefused, match="from https to http"):
        fetch_over_tls(reply, issued_for="names.example", asked_as="names.example")
