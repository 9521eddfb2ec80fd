"""Bodies that cost much CPU time: the gateway must answer others while it handles one."""

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection

from attack.gateway import KEY, Gateway, Measure, percentile, run_gateway, run_simulator
from dragoman.http.admission import ClientLimits

_PATHS = {
    "chat": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-flash:generateContent",
}
_MEMBER = {"chat": "messages", "messages": "messages", "responses": "input", "gemini": "contents"}


def _render(**members: object) -> bytes:
    limit = {"max_tokens": 9} if "messages" in members else {}
    return json.dumps({"model": "gemini-3-flash", **limit, **members}, separators=(",", ":")).encode()


def _message(dialect: str, text: str) -> dict[str, object]:
    return {"role": "user", "parts": [{"text": text}]} if dialect == "gemini" else {"role": "user", "content": text}


def _with_tools(dialect: str, tools: list[dict[str, object]]) -> bytes:
    functions = [
        {
            "chat": {"type": "function", "function": tool},
            "messages": {**tool, "input_schema": tool["parameters"]},
            "responses": {**tool, "type": "function"},
        }.get(dialect, tool)
        for tool in tools
    ]
    if dialect == "messages":
        functions = [{name: each[name] for name in ("name", "input_schema")} for each in functions]
    listed = [{"functionDeclarations": functions}] if dialect == "gemini" else functions
    return _render(**{_MEMBER[dialect]: [_message(dialect, "hello")], "tools": listed})


def _schema(count: int) -> dict[str, object]:
    return {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(count)}}


def _nest_schema(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def make_bodies(dialect: str, separators: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and bodies, each with about so many commas and colons, or of some megabytes."""
    keys = separators // 2
    small = ",".join(f'"k{at}":{at}' for at in range(keys))
    yield "small keys at the top", b'{"model":"gemini-3-flash",%b}' % small.encode()
    yield "small keys in one message", _render(**{_MEMBER[dialect]: [{f"k{at}": at for at in range(keys)}]})
    yield "empty arrays", _render(**{_MEMBER[dialect]: [[] for _ in range(separators)]})
    yield "properties of one schema", _with_tools(dialect, [{"name": "f", "parameters": _schema(separators // 3)}])
    tools = [{"name": f"tool_{at}", "parameters": _schema(3)} for at in range(separators // 20)]
    yield "tools", _with_tools(dialect, tools)
    yield "a nested schema", _with_tools(dialect, [{"name": "f", "parameters": _nest_schema(400)}])
    for name, share in (("messages", 1), ("messages below the size for another process", 0.0999)):
        turns = [
            _message(dialect, f"message {at} of a long conversation") for at in range(int(separators * share) // 4)
        ]
        yield name, _render(**{_MEMBER[dialect]: turns})
    yield "one long text", _render(**{_MEMBER[dialect]: [_message(dialect, "words, and more: " * (separators // 2))]})
    yield "one image", _render(**{_MEMBER[dialect]: [_message(dialect, "QUJD" * 8 * separators)]})


def send(gateway: Gateway, path: str, body: bytes) -> int:
    """Send a body and return the status of the response."""
    connection = HTTPConnection(*gateway.address, timeout=120)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    connection.request("POST", path, body, headers)
    reply = connection.getresponse()
    reply.read()
    connection.close()
    return reply.status


def attack(scale: int, report: Callable[[str], None] = lambda line: None) -> list[Measure]:
    """Send each body in each dialect, twice, and probe `/health` meanwhile."""
    times: list[float] = []
    wrong: list[str] = []
    separators = (ClientLimits().separators - 1000) * scale // 4
    with run_simulator() as simulator, run_gateway(upstream=f'base_url = "{simulator}"') as gateway:
        for dialect, path in _PATHS.items():
            for name, body in make_bodies(dialect, separators):
                with gateway.probe_health() as health:
                    statuses = [send(gateway, path, body) for _ in range(2)]
                times += health
                slowest = max(health, default=0)
                report(f"{dialect}, {name}, {len(body) / 1e6:.1f} MB: {statuses}, /health up to {slowest:.0f} ms")
                if not set(statuses) <= {200, 400, 413}:
                    wrong.append(f"{dialect}, {name}: {statuses}")
    return [
        Measure("p99 of /health while large bodies are handled", percentile(times, 0.99), 250, "ms"),
        Measure("slowest /health", max(times), 1000, "ms"),
        Measure("large bodies without 200, 400 or 413", len(wrong), 0, detail=str(wrong)),
    ]
