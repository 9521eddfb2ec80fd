"""Malformed HTTP and mutated requests: each gets valid HTTP or a closed connection, and no error of the gateway itself."""

import asyncio
import contextlib
import random
from collections.abc import Callable

import h11
import httpx2

from attack.gateway import KEY, Gateway, Measure, run_gateway
from fuzz import mutations, seeds

_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3-flash:generateContent",
}
_LIMITS = "head_seconds = 0.5\nbody_seconds = 0.5\nidle = 0.5\nbody = 1_000_000"
_PATIENCE = 60
_AT_ONCE = 32
_ODD_LINES = (
    b"content-length: 5",
    b"content-length: +5",
    b"content-length: -1",
    b"content-length: 0x5",
    b"content-length: 99999999999999999999999",
    b"transfer-encoding: chunked",
    b"transfer-encoding: identity, chunked",
    b"transfer-encoding : chunked",
    b"\ttransfer-encoding: chunked",
    b"host: evil.test",
    b"host:",
    b": no name",
    b"no colon",
    b"x: \x00",
    b"x: a\rb",
    b"x: \xff\xfe",
    b" folded: line",
    b"expect: 100-continue",
    b"expect: 1",
    b"upgrade: websocket\r\nconnection: upgrade",
    b"upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk",
    b"connection: close, host",
    b"content-encoding: gzip",
    b"content-encoding: br",
    b"content-type: multipart/form-data",
    b"x-dragoman-strict: \xe4",
    b"x-dragoman-conversation: ../..",
    b"accept: " + b"a," * 2000,
    b"x: " + b"y" * 70_000,
)
_ODD_TARGETS = (
    b"*",
    b"/",
    b"//",
    b"http://evil.test/",
    b"/v1/%00",
    b"/v1/%ff%fe",
    b"/v1/../health",
    b"/?" + b"a" * 70_000,
)
_ODD_METHODS = (
    b"GET",
    b"HEAD",
    b"OPTIONS",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"TRACE",
    b"PRI",
    b"post",
    b"G E T",
    b"\x16\x03",
)
_CHUNK_SIZES = (b"%x", b"%X;a=b", b"0%x", b"-%x", b"+%x", b"0x%x", b" %x", b"%x ", b"%xg", b"ffffffffffffffff%x")


def make_request(chance: random.Random) -> bytes:
    """Return one or more requests that are wrong in one to three ways, or right around a mutated body."""
    dialect = chance.choice(list(_PATHS))
    body = mutations.document(seeds.requests(dialect), chance)
    method, target, version = b"POST", _PATHS[dialect].encode(), b"HTTP/1.1"
    lines = [b"host: 127.0.0.1", b"authorization: Bearer " + KEY.encode(), b"content-type: application/json"]
    if chance.random() < 0.3:
        size = chance.choice(_CHUNK_SIZES) % len(body)
        lines.append(b"transfer-encoding: chunked")
        body = (
            size + b"\r\n" + body + chance.choice((b"\r\n0\r\n\r\n", b"\r\n0\r\nx: y\r\n\r\n", b"0\r\n\r\n", b"\r\n"))
        )
    else:
        lines.append(b"content-length: %d" % (len(body) + chance.choice((0, 0, 0, -1, 1, 1000))))
    if chance.random() < 0.5:
        return _render(method, target, version, lines, body)
    for _ in range(chance.randrange(1, 4)):
        kind = chance.randrange(7)
        if kind == 0:
            method = chance.choice(_ODD_METHODS)
        elif kind == 1:
            target = chance.choice(_ODD_TARGETS)
        elif kind == 2:
            version = chance.choice((b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.1 ", b"HTTP/9", b"", b"http/1.1"))
        elif kind == 3:
            lines.pop(chance.randrange(len(lines)))
        else:
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(_ODD_LINES))
        if not lines:
            break
    request = _render(method, target, version, lines, body)
    if chance.random() < 0.3:
        request = mutations.torn(request, chance, lambda: request)
    return request + (request if chance.random() < 0.2 else b"")


def _render(method: bytes, target: bytes, version: bytes, lines: list[bytes], body: bytes) -> bytes:
    return b"%b %b %b\r\n%b\r\n\r\n%b" % (method, target, version, b"\r\n".join(lines), body)


def find_fault(request: bytes, answer: bytes) -> str:
    """Return what is wrong with the bytes that the gateway has sent on one connection; "" if nothing is."""
    parser = h11.Connection(h11.CLIENT)
    method = "HEAD" if request.startswith(b"HEAD ") else "POST"
    parser.send(h11.Request(method=method, target="/", headers=[("host", "a"), ("content-length", "0")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(answer)
    parser.receive_data(b"")
    try:
        while not isinstance(event := parser.next_event(), (h11.ConnectionClosed, h11.PAUSED, h11.EndOfMessage)):
            if isinstance(event, h11.Response) and event.status_code == 500:
                return "status 500"
    except h11.RemoteProtocolError as error:
        return "" if not answer else f"no HTTP: {error}"
    return ""


async def _send(gateway: Gateway, request: bytes, pieces: int) -> bytes:
    """Send a request in some pieces; return all that comes back until the gateway closes."""
    reader, writer = await asyncio.open_connection(*gateway.address)
    try:
        async with asyncio.timeout(_PATIENCE):
            reading = asyncio.ensure_future(reader.read())
            step = max(1, len(request) // pieces)
            with contextlib.suppress(ConnectionError):
                for at in range(0, len(request), step):
                    writer.write(request[at : at + step])
                    await writer.drain()
                    await asyncio.sleep(0)
            try:
                return await reading
            except ConnectionError:
                return b""
    finally:
        writer.close()


async def _send_all(gateway: Gateway, count: int, seed: int, report: Callable[[str], None]) -> Measure:
    slots, wrong = asyncio.Semaphore(_AT_ONCE), list[str]()

    async def send(number: int) -> None:
        chance = random.Random(f"{seed} {number}")  # noqa: S311  repeatable
        request = make_request(chance)
        async with slots:
            try:
                fault = find_fault(request, await _send(gateway, request, chance.choice((1, 1, 3))))
            except TimeoutError:
                fault = "not closed"
        if fault:
            wrong.append(f"{number}: {fault}")
            report(f"{number}: {fault}: {request[:300]!r}")

    await asyncio.gather(*(send(number) for number in range(count)))
    return Measure("malformed requests with a wrong answer", len(wrong), 0, detail=str(wrong[:5]))


def attack(scale: int, seed: int = 0, report: Callable[[str], None] = lambda line: None) -> list[Measure]:
    """Send malformed and mutated requests, and look whether the gateway is as it was."""
    with run_gateway(_LIMITS) as gateway:
        sent = asyncio.run(_send_all(gateway, 500 * scale, seed, report))
        good = httpx2.post(
            f"{gateway.base_url}/v1/chat/completions",
            json={"model": "gemini-3-flash", "messages": [{"role": "user", "content": "hello"}]},
            headers={"authorization": f"Bearer {KEY}"},
        )
        errors = gateway.command.errors
    return [
        sent,
        Measure("errors in the log", errors.count("raceback"), 0, detail=errors[-500:]),
        Measure("good requests that fail afterwards", int(good.status_code != 200), 0),
    ]
