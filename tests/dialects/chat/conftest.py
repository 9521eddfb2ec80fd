"""Recorded traffic of this dialect, read once and with its file closed again."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import shelf


@pytest.fixture(scope="session")
def exchanges() -> list[dict[str, Any]]:
    path = shelf.ROOT / "corpus" / shelf.CORPUS_FILES["chat"]
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="session")
def requests(exchanges: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    found = [(row["id"], row["request"]) for row in exchanges if row["request"]]
    found += [(path.name, json.loads(path.read_text())) for path in shelf.samples("chat", ".request.json")]
    for path in sorted((shelf.ROOT / "clients" / "captures").glob("*/*.json")):
        capture = json.loads(path.read_text())
        if capture["path"].endswith("/chat/completions"):
            found.append((f"{path.parent.name}/{path.name}", capture["body"]))
    return found


@pytest.fixture(scope="session")
def replies(exchanges: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    """Whole replies; recordings of an SDK's chunk objects are neither whole replies nor bytes of a stream."""
    found = [
        (row["id"], json.dumps(row["response"]).encode())
        for row in exchanges
        if row["status"] == 200 and isinstance(row.get("response"), dict)
    ]
    return found + [(path.name, path.read_bytes()) for path in shelf.samples("chat", ".response.json")]


@pytest.fixture(scope="session")
def streams(exchanges: list[dict[str, Any]]) -> list[tuple[str, bytes]]:
    found = [(row["id"], row["sse"].encode()) for row in exchanges if row["status"] == 200 and "sse" in row]
    return found + [(path.name, path.read_bytes()) for path in shelf.samples("chat", ".stream.sse")]


@pytest.fixture
def ask() -> Iterator[Callable[..., Any]]:
    """Ask the official client, which gets the given bytes for an answer."""
    import httpx2
    import openai

    opened: list[httpx2.Client] = []

    def answer(
        content: bytes, *, stream: bool = False, status: int = 200, headers: dict[str, str] | None = None
    ) -> Any:
        kind = "text/event-stream" if stream else "application/json"
        transport = httpx2.MockTransport(
            lambda _: httpx2.Response(status, headers=headers or {"content-type": kind}, content=content)
        )
        opened.append(httpx2.Client(transport=transport))
        client = openai.OpenAI(api_key="k", base_url="http://upstream", http_client=opened[-1], max_retries=0)
        return client.chat.completions.create(model="m", messages=[], stream=stream)

    yield answer
    for client in opened:
        client.close()
