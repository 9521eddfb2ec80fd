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
_BODY = {"model": "upstream/m", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
_SECONDS = 9


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
    """Open streams of both kinds, passed through and translated, and read nothing."""
    count, measures = 20 * scale, list[Measure]()
    body = json.dumps(_BODY).encode()
    for name, path in (("passed through", "/v1/chat/completions"), ("translated", "/v1/messages")):
        with run_upstream() as port:
            tables = f'[upstreams.upstream]\nkind = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
            with run_gateway(tables=tables) as gateway:
                before, clients = gateway.memory, [gateway.connect() for _ in range(count)]
                for client in clients:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.sendall(render_head(gateway, len(body), path) + body)
                time.sleep(_SECONDS)
                grown = (gateway.memory - before) / count / 1e3
                for client in clients:
                    client.close()
        measures.append(Measure(f"memory for a stalled reader of a stream that is {name}", grown, 512, "KB"))
    return measures
