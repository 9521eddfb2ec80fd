"""More requests than one core sustains: the gateway must answer what it can, and reject the rest at once."""

import asyncio
import time
from collections.abc import Callable

import uvloop

from attack.gateway import Gateway, Measure, percentile, render_head, run_gateway

_TOOL = (
    b'{"type":"function","function":{"name":"tool_%d","description":"Look up","parameters":{"type":"object",'
    b'"properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}}'
)
_BODY = (
    b'{"model":"gemini-3-flash","messages":[{"role":"user","content":"What is the weather in Tokyo?"}],"tools":[%b]}'
    % b",".join(_TOOL % number for number in range(20))
)
_DRAIN_SECONDS = 120
"""Seconds in which all must be answered; far less is needed, but other programs may use the machine too."""


class Answers:
    """How requests were answered."""

    def __init__(self) -> None:
        self.times: list[float] = []
        """Response times in ms of the requests that were answered with 200."""
        self.rejections: list[bytes] = []
        self.open = 0
        self.clients: set[Client] = set()
        """The connected clients."""
        self.connecting: set[asyncio.Task[object]] = set()

    def connect(self, gateway: Gateway, client: "Client") -> None:
        """Connect a client."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.create_connection(lambda: client, *gateway.address))
        self.connecting.add(task)
        task.add_done_callback(self.connecting.discard)

    async def disconnect(self) -> None:
        """Close all connections: an event loop cannot be closed while it still connects."""
        if self.connecting:
            await asyncio.wait(self.connecting)
        for client in self.clients:
            client.transport.abort()
        while self.clients:  # noqa: ASYNC110  a loop closes connections in its next rounds
            await asyncio.sleep(0.01)


class Client(asyncio.Protocol):
    """One connection, which sends one request at a time."""

    def __init__(self, request: bytes, answers: Answers, on_idle: Callable[["Client"], None]) -> None:
        self._request = request
        self._answers = answers
        self._on_idle = on_idle
        self._received = b""
        self._start = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._answers.clients.add(self)
        self.transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        self._answers.clients.discard(self)

    def send(self) -> None:
        self._start = time.perf_counter()
        self._received = b""
        if hasattr(self, "transport"):
            self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().rpartition(b"content-length: ")[2].split(b"\r\n")[0]):
            return
        self._answers.open -= 1
        if head[9:12] == b"200":
            self._answers.times.append((time.perf_counter() - self._start) * 1e3)
        else:
            self._answers.rejections.append(head)
        if b"connection: close" in head.lower():
            self.transport.close()
        else:
            self._on_idle(self)


async def saturate(gateway: Gateway, clients: int, seconds: float) -> float:
    """Return how many requests a second are answered if some clients always have a request open."""
    answers, loop = Answers(), asyncio.get_running_loop()
    end, request = loop.time() + seconds, render_head(gateway, len(_BODY)) + _BODY
    stopped = asyncio.Event()

    def send_next(client: Client) -> None:
        if loop.time() < end:
            client.send()
        else:
            stopped.set()

    for _ in range(clients):
        answers.connect(gateway, Client(request, answers, send_next))
    await stopped.wait()
    await answers.disconnect()
    return len(answers.times) / seconds


async def send_at_rate(gateway: Gateway, rate: float, seconds: float, answers: Answers) -> None:
    """Send requests at a rate, on as many connections as that needs."""
    loop, request = asyncio.get_running_loop(), render_head(gateway, len(_BODY)) + _BODY
    idle: list[Client] = []
    start, sent = loop.time(), 0
    while (now := loop.time()) < start + seconds:
        while sent < (now - start) * rate:
            sent += 1
            answers.open += 1
            if idle:
                idle.pop().send()
                continue
            client = Client(request, answers, idle.append)
            client.send()
            answers.connect(gateway, client)
        await asyncio.sleep(0.005)
    end = loop.time() + _DRAIN_SECONDS
    while answers.open and loop.time() < end:  # noqa: ASYNC110  another process answers
        await asyncio.sleep(0.05)
    await answers.disconnect()


def attack(scale: int) -> list[Measure]:
    """Find the rate that the gateway sustains, send four times as much, and probe `/health` meanwhile."""
    answers = Answers()
    with run_gateway() as gateway, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(saturate(gateway, 8, 1))
        before = gateway.cpu_seconds
        most = runner.run(saturate(gateway, 8, 3))
        most_by_cpu = 3 * most / (gateway.cpu_seconds - before)
        before = gateway.cpu_seconds
        with gateway.probe_health(0.05) as health:
            runner.run(send_at_rate(gateway, 4 * most, 2.5 * scale, answers))
        # By CPU time, because other programs may use the machine too.
        goodput = len(answers.times) / (gateway.cpu_seconds - before)
    unclear = [head for head in answers.rejections if b" 503 " not in head or b"retry-after" not in head.lower()]
    return [
        Measure(f"goodput lost at four times {most:.0f} requests a second", 100 * (1 - goodput / most_by_cpu), 20, "%"),
        Measure("p99 of admitted requests", percentile(answers.times, 0.99), 2000, "ms"),
        Measure("p99 of /health meanwhile", percentile(health, 0.99), 1000, "ms"),
        Measure("rejections without 503 and Retry-After", len(unclear), 0, detail=str(unclear[:1])),
        Measure("requests without an answer", answers.open, 0),
    ]
