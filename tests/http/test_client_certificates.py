"""The HTTP client and TLS: trusted and untrusted certificates, directly and through CONNECT tunnels."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trustme

from dragoman.http.client import Client, Outgoing
from dragoman.http.message import Origin
from dragoman.http.proxies import read_environment_proxies
from dragoman.http.upstream_connection import BrokenReply, Unreachable, UntrustedCertificate
from http_peers import QUICK

AUTHORITY = trustme.CA()


@asynccontextmanager
async def run_tls_server(authority: trustme.CA, host: str) -> AsyncGenerator[Outgoing]:
    """A server with a certificate for `host` whose URL has the host `localhost`."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(host).configure_cert(context)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            head = await reader.read(1000)
            if head:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Outgoing(Origin("https", "localhost", server.sockets[0].getsockname()[1]), "GET", "/")
    finally:
        server.close()


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    """The certificate authority is trusted through an environment variable."""
    file = tmp_path / "authority.pem"
    AUTHORITY.cert_pem.write_to_path(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))


@pytest.mark.usefixtures("trusted")
def test_a_server_with_a_valid_certificate_is_used_and_its_connection_pooled(run):
    async def steps(client: Client) -> list[bytes]:
        async with run_tls_server(AUTHORITY, "localhost") as asked:
            return [await (await client.send(asked, QUICK)).read() for _ in range(2)]

    assert run(steps) == [b"secret", b"secret"]


def test_an_authority_can_be_given(run):
    async def steps(_: Client) -> bytes:
        trust = ssl.create_default_context()
        AUTHORITY.configure_trust(trust)
        client = Client(ssl_context=trust)
        async with run_tls_server(AUTHORITY, "localhost") as asked:
            reply = await (await client.send(asked, QUICK)).read()
            await client.close()
            return reply

    assert run(steps) == b"secret"


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    ("authority", "host"),
    [(AUTHORITY, "other.example.com"), (trustme.CA(), "localhost")],
    ids=["another's name", "an authority that nobody knows"],
)
def test_a_server_with_an_invalid_certificate_gets_no_request(run, authority, host):
    async def steps(client: Client) -> None:
        async with run_tls_server(authority, host) as asked:
            with pytest.raises(UntrustedCertificate, match="certificate"):
                await client.send(asked, QUICK)

    run(steps)


class Tunnel:
    """A proxy that opens CONNECT tunnels."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        place = self.asked[-1].split()[1].decode()
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", int(place.rpartition(":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pass(reader, server_writer), self._pass(server_reader, writer))

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        writer.close()


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("host", ["localhost", "other.example.com"])
def test_a_tunnel_is_trusted_no_more_than_the_server_at_its_end(run, monkeypatch, host):
    async def steps(_: Client) -> tuple[bytes, list[bytes]]:
        tunnel = Tunnel()
        async with tunnel as port, run_tls_server(AUTHORITY, host) as asked:
            monkeypatch.setenv("https_proxy", f"http://me:pass@127.0.0.1:{port}")
            monkeypatch.setenv("no_proxy", "")
            client = Client(read_environment_proxies())
            try:
                return await (await client.send(asked, QUICK)).read(), tunnel.asked
            except UntrustedCertificate as error:
                return str(error).encode(), tunnel.asked
            finally:
                await client.close()

    result, asked = run(steps)
    assert result == b"secret" if host == "localhost" else b"certificate" in result
    assert asked[0].startswith(b"CONNECT localhost:")
    assert b"proxy-authorization: Basic bWU6cGFzcw==\r\n" in asked[0]


def test_a_server_that_hangs_up_in_the_handshake_is_not_reached(run):
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def steps(client: Client) -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        origin = Origin("https", "localhost", server.sockets[0].getsockname()[1])
        with pytest.raises((Unreachable, UntrustedCertificate)):
            await client.send(Outgoing(origin, "GET", "/"), QUICK)
        server.close()

    run(steps)


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken off"])
def test_a_compressed_response_is_decompressed_though_not_requested(run, broken):
    output = b"words " * 1000
    packed = gzip.compress(output)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        sent = packed[:-6] if broken else packed
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(sent))
        for at in range(len(sent)):
            writer.write(sent[at : at + 1])
            await writer.drain()
        writer.close()

    async def steps(client: Client) -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        asked = Outgoing(Origin("http", "127.0.0.1", server.sockets[0].getsockname()[1]), "GET", "/")
        incoming = await client.send(asked, QUICK)
        if broken:
            with pytest.raises(BrokenReply, match="decompressed"):
                await incoming.read()
        else:
            assert await incoming.read() == output
        server.close()

    run(steps)
