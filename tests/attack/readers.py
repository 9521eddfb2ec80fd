"""Clients that request a stream and read nothing: each may hold only little memory."""

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from attack.gateway import Measure, render_head, run_gateway

_EVENT = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "word " * 40}, "finish_reason": None}],
}
_EVENTS = f"data: {json.dumps(_EVENT)}\n\n".encode() * 20
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
_REQUESTS = {
    "passed through": ("/v1/chat/completions", _CHAT),
    "forwarded": ("/upstreams/upstream/v1/chat/completions", _CHAT),
    "translated to Messages": ("/v1/messages", {**_CHAT, "max_tokens": 9}),
    "translated to Responses": ("/v1/responses", {"model": "m", "stream": True, "input": "hello", "store": False}),
    "translated to Gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
    ),
}
_SECONDS = 4
_FIRST_BYTES = 4096


@contextmanager
def run_upstream() -> Generator[int]:
    """Run an upstream that sends events without end; yield its port."""

    def stream(client: socket.socket) -> None:
        with client:
            client.recv(1 << 16)
            try:
                client.sendall(_HEAD)
                while True:
                    client.sendall(_EVENTS)
            except OSError:
                return  # the gateway has closed the connection

    def accept(listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=stream, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, args=(listener,), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def attack(scale: int) -> list[Measure]:
    """Open streams of each kind and read nothing."""
    count, measures, wrong = 40 * scale, list[Measure](), list[str]()
    for name, (path, members) in _REQUESTS.items():
        body = json.dumps(members).encode()
        with run_upstream() as port:
            tables = f'[upstreams.upstream]\nkind = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
            with run_gateway(tables=tables, models='m = "upstream/m"') as gateway:
                request = render_head(gateway, len(body), path) + body
                with gateway.connect() as client:  # the first request loads what all need
                    client.sendall(request)
                    if b"word word" not in _read(client):
                        wrong.append(name)
                before, clients = gateway.memory, [gateway.connect() for _ in range(count)]
                for client in clients:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.sendall(request)
                time.sleep(_SECONDS)
                grown = (gateway.memory - before) / count / 1e3
                for client in clients:
                    client.close()
        measures.append(Measure(f"memory for a stalled reader of a stream that is {name}", grown, 256, "KB"))
    return [*measures, Measure("streams without the text of the upstream", len(wrong), 0, detail=str(wrong))]


def _read(client: socket.socket) -> bytes:
    """Read the first bytes of a stream."""
    received = b""
    while len(received) < _FIRST_BYTES and (chunk := client.recv(1 << 16)):
        received += chunk
    return received
