"""Whatever address a model requests, no host is contacted that is not on the public web.

Connections are counted twice: by listeners where an attack would arrive, and by Python's audit events for every socket.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trustme

from dragoman.core.parts import ToolResult
from dragoman.tools.web.fetch import Settings, Web
from tools.web.asking import CONNECTED, Listener, Names, build_redirect, call_web_fetch, listen, reply, text_of

SECRET = reply("the secret of the intranet")
IPV6 = [
    "::1", "::", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fe80::5efe:127.0.0.1",
    "2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:127.0.0.1", "fd00:ec2::254", "fc00::1", "fec0::1", "fe80::1", "ff02::1",
    "2001:db8::1", "100::1", "3fff::1", "5f00::1",
]  # fmt: skip
IPV4 = [
    "127.0.0.1", "127.8.8.8", "0.0.0.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.169.254",
    "169.254.170.2", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.2.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "192.88.99.1",
]  # fmt: skip
LITERALS = [
    "http://127.0.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://0x7f.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/", "http://017700000001:{port}/", "http://127.1:{port}/", "http://127.0.1:{port}/",
    "http://0:{port}/", "http://127.0.0.1.:{port}/", "http://localhost:{port}/", "http://localhost.:{port}/",
    "http://LOCALHOST:{port}/", "http://foo.localhost:{port}/", "http://ip6-localhost:{port}/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460:{port}/", "http://127\u30020\u30020\u30021:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/", "http://[::1]:{port}/", "http://[0::1]:{port}/", "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/", "http://[fe80::1%25lo]:{port}/", "http://[::1%lo]:{port}/",
]  # fmt: skip
ODD = [
    "http://user@127.0.0.1:{port}/", "http://8.8.8.8:80@127.0.0.1:{port}/", "http://8.8.8.8\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@8.8.8.8/", "http://8.8.8.8%2f@127.0.0.1:{port}/",
    "http://8.8.8.8%09127.0.0.1:{port}/", "http://127.0.0.1%2f:{port}/", "http://[::1]@8.8.8.8:{port}/",
    "http://8.8.8.8[::1]:{port}/", "http://%31%32%37.0.0.1:{port}/", "http://8.8.8.8:22/", "http://8.8.8.8:{port}/",
    "https://8.8.8.8:6379/", "http://8.8.8.8:0/", "http://8.8.8.8:99999/", "file:///etc/passwd", "FILE:///etc/passwd",
    "file://localhost/etc/passwd", "file:/etc/passwd", " file:///etc/passwd", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_x",
    "dict://127.0.0.1:{port}/x", "data:text/html,x", "unix:///run/x.sock", "http+unix://%2Frun%2Fx/", "jar:http://127.0.0.1:{port}!/",
    "//127.0.0.1:{port}/", "http:127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "127.0.0.1:{port}",
    "javascript:1", "view-source:http://127.0.0.1:{port}/", "http://127.0.0.1:{port}\r\nhost: x/", "http://127.0.0.1:{port}\x00.example/",
    "ws://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/", "tftp://127.0.0.1:{port}/", "netdoc:///etc/passwd", "http://", "",
]  # fmt: skip


def nobody_is_asked(steps: Callable[[int], Awaitable[ToolResult]]) -> ToolResult:
    """Run steps next to listeners on loopback, IPv4 and IPv6, and check that no connection is made to them or elsewhere."""

    async def run() -> ToolResult:
        async with listen(SECRET, "127.0.0.1") as listener:
            six = await asyncio.start_server(listener.hear, "::1", listener.port)
            async with six:
                CONNECTED.clear()
                result = await steps(listener.port)
            assert not CONNECTED
            assert not listener.connections
        return result

    result = asyncio.run(asyncio.wait_for(run(), 20))
    assert result.failed
    assert "secret" not in text_of(result)
    return result


@pytest.mark.parametrize("url", LITERALS + ODD)
def test_a_private_or_invalid_url_is_not_requested(url):
    nobody_is_asked(lambda port: call_web_fetch(Web(), url.replace("{port}", str(port))))


@pytest.mark.parametrize("address", IPV4 + IPV6)
def test_neither_is_one_that_is_not_public_in_any_form(address):
    host = f"[{address}]" if ":" in address else address
    result = nobody_is_asked(lambda _: call_web_fetch(Web(), f"http://{host}/"))
    assert "public" in text_of(result)


@pytest.mark.parametrize("address", [*IPV4, *IPV6, "fe80::1%lo"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_neither_is_a_name_that_resolves_to_one(address, scheme):
    result = nobody_is_asked(lambda _: call_web_fetch(Web(resolve=Names([address])), f"{scheme}://innocent.example/"))
    assert "public" in text_of(result)
    assert address not in text_of(result)


@pytest.mark.parametrize(
    "answer",
    [["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["2606:4700::1", "::1"], ["8.8.8.8", "::ffff:10.0.0.1"]],
)
def test_neither_is_a_name_of_which_one_address_is_not_public(answer):
    nobody_is_asked(lambda _: call_web_fetch(Web(resolve=Names(answer)), "https://mixed.example/"))


def test_a_name_that_changes_from_public_to_private_is_resolved_once(monkeypatch):
    tried: list[Any] = []

    async def connect(*arguments: Any, **_: Any) -> None:
        tried.append(arguments[2:4])
        raise OSError

    names = Names(["8.8.8.8"], ["127.0.0.1"])
    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", connect)
    assert asyncio.run(call_web_fetch(Web(resolve=names), "http://rebind.example/")).failed
    assert names.asked == ["rebind.example"]
    assert tried == [("8.8.8.8", 80)]


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{port}/", "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://[::1]:{port}/",
        "//127.0.0.1:{port}/", "//localhost:{port}/", "http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/",
        "file:///etc/passwd", "gopher://127.0.0.1:{port}/", "ftp://127.0.0.1:{port}/", "http://a:b@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\@8.8.8.8/", "http://8.8.8.8:22/", "http://rebind.example:{port}/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("redirects", ["site", "anywhere"])
def test_a_redirect_is_vetted_like_any_address(to, redirects):
    async def steps() -> tuple[ToolResult, Listener]:
        async with (
            listen(SECRET, "127.0.0.1") as inner,
            listen(build_redirect(to.replace("{port}", str(inner.port)))) as outer,
        ):
            place = f"127.0.0.1:{outer.port}"
            web = Web(Settings(private=(place,), redirects=redirects), resolve=Names(["127.0.0.1"]))
            CONNECTED.clear()
            result = await call_web_fetch(web, f"http://{place}/")
            assert set(CONNECTED) == {("127.0.0.1", outer.port)}
            assert outer.connections == 1
            return result, inner

    result, inner = asyncio.run(asyncio.wait_for(steps(), 20))
    assert result.failed
    assert not inner.connections
    assert "secret" not in text_of(result)


def test_a_redirect_that_never_ends_is_left():
    async def steps() -> tuple[ToolResult, int]:
        async with listen(build_redirect("/again")) as listener:
            place = f"127.0.0.1:{listener.port}"
            return await call_web_fetch(Web(Settings(private=(place,))), f"http://{place}/"), listener.connections

    result, connections = asyncio.run(steps())
    assert "too often" in text_of(result)
    assert connections == 6


def test_a_redirect_to_another_host_is_reported_and_not_followed():
    async def steps() -> tuple[ToolResult, Names]:
        names = Names(["127.0.0.1"])
        async with listen(build_redirect("https://evil.example/?secret=1")) as listener:
            web = Web(Settings(private=(f"good.example:{listener.port}",)), resolve=names)
            return await call_web_fetch(web, f"http://good.example:{listener.port}/out"), names

    result, names = asyncio.run(steps())
    assert names.asked == ["good.example"]
    assert result.failed
    output = text_of(result).split("\n")
    assert output[0].endswith("cannot be read: it redirects to another host.")
    assert output[1].startswith("What stands between the two lines with ")
    assert output[4] == "https://evil.example/?secret=1"
    assert [line.endswith((" begins -----", " ends -----")) for line in (output[3], output[5])] == [True, True]
    assert output[-1] == "To go there, fetch that address."


def test_a_redirect_between_a_host_and_its_www_is_followed():
    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        host = head.partition(b"host: ")[2].partition(b"\r\n")[0].decode()
        writer.write(reply("there", "text/plain") if host.startswith("www.") else build_redirect(f"http://www.{host}/"))

    async def steps() -> ToolResult:
        async with listen(speak) as listener:
            private = (f"a.example:{listener.port}", f"www.a.example:{listener.port}")
            return await call_web_fetch(
                Web(Settings(private=private), resolve=Names(["127.0.0.1"])), f"http://{private[0]}/"
            )

    assert "there" in text_of(asyncio.run(steps()))


def test_a_redirect_from_https_to_http_is_not_followed():
    authority = trustme.CA()
    context, trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("names.example").configure_cert(context)
    authority.configure_trust(trust)

    async def steps() -> tuple[ToolResult, Listener, Listener]:
        async with listen(SECRET) as plain:
            secure = Listener(build_redirect(f"http://names.example:{plain.port}/"))
            async with await asyncio.start_server(secure.hear, "127.0.0.1", 0, ssl=context) as server:
                port = server.sockets[0].getsockname()[1]
                private = (f"names.example:{port}", f"names.example:{plain.port}")
                web = Web(
                    Settings(private=private, redirects="anywhere"), resolve=Names(["127.0.0.1"]), ssl_context=trust
                )
                return await call_web_fetch(web, f"https://names.example:{port}/"), secure, plain

    result, secure, plain = asyncio.run(asyncio.wait_for(steps(), 20))
    assert secure.connections == 1
    assert not plain.connections
    assert "from https to http" in text_of(result)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_from_the_environment_is_not_used(name, monkeypatch):
    async def steps() -> tuple[ToolResult, Listener, Listener]:
        async with listen(reply("proxied")) as proxy, listen(reply("direct")) as server:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            monkeypatch.delenv("NO_PROXY", raising=False)
            place = f"127.0.0.1:{server.port}"
            return await call_web_fetch(Web(Settings(private=(place,))), f"http://{place}/"), proxy, server

    result, proxy, server = asyncio.run(asyncio.wait_for(steps(), 20))
    assert "direct" in text_of(result)
    assert not proxy.connections
    assert server.heads[0].startswith(b"GET / HTTP/1.1\r\n")


def test_ipv6_works_from_end_to_end_and_only_where_it_is_allowed():
    async def steps() -> tuple[ToolResult, ToolResult, Listener]:
        async with listen(reply("by six", "text/plain"), "::1") as listener:
            place = f"[::1]:{listener.port}"
            web = Web(Settings(private=(place,)))
            good = await call_web_fetch(web, f"http://[0:0::1]:{listener.port}/")
            return good, await call_web_fetch(Web(), f"http://{place}/"), listener

    good, bad, listener = asyncio.run(asyncio.wait_for(steps(), 20))
    assert "by six" in text_of(good)
    assert bad.failed
    assert listener.connections == 1
    assert f"host: [::1]:{listener.port}\r\n".encode() in listener.heads[0]


def test_no_credentials_are_sent_and_no_cookie_is_kept():
    async def speak(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(
            reply("end", "text/plain")
            if head.startswith(b"GET /end")
            else build_redirect("/end", set_cookie="a=b; path=/")
        )

    async def steps() -> Listener:
        async with listen(speak) as listener:
            place = f"127.0.0.1:{listener.port}"
            web = Web(Settings(private=(place,), agent="dragoman/1"))
            assert not (await call_web_fetch(web, f"http://{place}/")).failed
            assert not (await call_web_fetch(web, f"http://{place}/end?2")).failed
            return listener

    listener = asyncio.run(steps())
    for head in listener.heads:
        names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:-2]]
        assert names == [b"host", b"accept", b"user-agent", b"accept-encoding", b"connection"]


def test_a_place_that_is_allowed_is_allowed_with_its_port_only():
    async def steps() -> tuple[ToolResult, Listener]:
        async with listen(SECRET) as other:
            web = Web(Settings(private=(f"127.0.0.1:{other.port + 1}", "localhost:80")))
            return await call_web_fetch(web, f"http://127.0.0.1:{other.port}/"), other

    result, other = asyncio.run(steps())
    assert result.failed
    assert not other.connections


def test_a_reader_with_trusted_urls_may_follow_redirects_to_another_host():
    async def steps() -> str:
        async with listen(reply("found", "text/plain")) as found:
            other_host = f"there.example:{found.port}"
            async with listen(build_redirect(f"http://{other_host}/")) as search:
                page_host = f"search.example:{search.port}"
                web = Web(Settings(private=(page_host, other_host)), resolve=Names(["127.0.0.1"]))
                assert (await call_web_fetch(web, f"http://{page_host}/")).failed
                return (await web.read(f"http://{page_host}/", redirects="anywhere")).text

    assert asyncio.run(steps()) == "found"
