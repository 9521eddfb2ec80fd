"""What users do with `dragoman mcp` on a pipe: read pages, compare them, use external tools and images, go on, and stop."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import dragoman.mcp
from dragoman.config import Config, ServerTable, SessionsTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.server.runner import running
from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.runner import Running, in_thread
from mcp_peers import PEERS

PLAIN = PEERS / "plain.py"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
COMMAND = [sys.executable, "-c", "import sys; from dragoman.cli import main; sys.exit(main())", "mcp"]


async def page(exchange: Exchange) -> None:
    """Every path is a page about itself, but for one that has moved to another host."""
    name = exchange.request.path.strip("/")
    if name == "moved":
        port = next(value for key, value in exchange.request.headers if key.lower() == "host").partition(":")[2]
        await exchange.send(302, {"location": f"http://localhost:{port}/lamp"}, b"")
        return
    body = f"<html><head><title>{name}</title></head><body><p>The {name} costs {len(name)} crowns.</p></body></html>"
    await exchange.send(200, {"content-type": "text/html; charset=utf-8"}, body.encode())


def call_tool(*calls: tuple[str, dict[str, Any]]) -> Answer:
    made = tuple(Call(id=f"c{at}", name=name, arguments=arguments) for at, (name, arguments) in enumerate(calls))
    return Answer(calls=made, end="calls")


class Host:
    """Starts `dragoman mcp` as a shell would."""

    def __init__(self, folder: Path, simulator: Running, pages: str) -> None:
        self.simulator = simulator
        self.pages = pages
        self._folder = folder
        place = pages.removeprefix("http://")
        other = place.replace("127.0.0.1", "localhost")
        (folder / "dragoman.toml").write_text(
            f'[upstreams.gemini]\nkind = "gemini"\napi_key = "k"\nbase_url = "{simulator.base_url}"\n'
            f'[sessions]\nurl = "sqlite:///{folder}/sessions.db"\n[server]\nlog = "off"\n[web]\nprivate = ["{place}", "{other}"]\n'
        )

    def piped(self, *calls: dict[str, Any]) -> list[Any]:
        """Pipe calls of `query` in, all at once, and return the structured results in their order."""
        servers = [{"name": "plain", "transport": "stdio", "command": sys.executable, "args": [str(PLAIN)]}]
        environment = {**os.environ, "GEMINI_MCP_SERVERS": json.dumps(servers), "GEMINI_SYSTEM_PROMPT": "Be brief."}
        lines = [
            {"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": {"name": "query", "arguments": call}}
            for at, call in enumerate(calls)
        ]
        done = subprocess.run(  # noqa: S603
            COMMAND,
            input="\n".join(map(json.dumps, lines)),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd=self._folder,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        answers = {result["id"]: result["result"] for result in map(json.loads, done.stdout.splitlines())}
        return [answers[at].get("structuredContent") or answers[at] for at in range(len(calls))]


@contextmanager
def start_host(folder: Path, script: Any) -> Generator[Host]:
    with run_in_thread(lambda: listen(page), "pages") as pages, in_thread(script=script) as simulator:
        yield Host(folder, simulator, pages.base_url)


@pytest.fixture
def host(tmp_path: Path) -> Generator[Host]:
    pages: list[str] = []

    def script(received: Received) -> Answer:
        asked = [turn for turn in received.request.turns if turn.role != "system"]
        prompt = next(turn.text for turn in reversed(asked) if turn.role == "user" and turn.text)
        results = " | ".join(result.text for result in asked[-1].results)
        match prompt.partition(":")[0], len(asked):
            case "read", 1:
                return call_tool(("web_fetch", {"url": f"{pages[0]}/lamp"}))
            case "compare", 1:
                return call_tool(
                    ("web_fetch", {"url": f"{pages[0]}/lamp"}), ("web_fetch", {"url": f"{pages[0]}/candle"})
                )
            case "one by one", 1:
                return call_tool(("web_fetch", {"url": f"{pages[0]}/lamp"}))
            case "one by one", 3:
                return call_tool(("web_fetch", {"url": f"{pages[0]}/candle"}))
            case "moved", 1 | 3:
                return call_tool(("web_fetch", {"url": f"{pages[0]}/{'lamp' if len(asked) == 1 else 'moved'}"}))
            case "external", 1:
                return call_tool(("plain__colour", {}))
            case "image", 1:
                assert any(turn.media for turn in asked)
                return call_tool(("plain__calls", {}))
            case "endless", _ if received.request.choice.mode != "none":
                return call_tool(("plain__mumble", {"words": f"turn {len(asked)}"}))
            case _:
                return Answer(text=f"After {len(asked)} messages: {results}")

    with start_host(tmp_path, script) as made:
        pages.append(made.pages)
        yield made


def test_the_documented_flows(host: Host):
    lamp, candle = f"{host.pages}/lamp", f"{host.pages}/candle"
    read, compared, in_turn, moved, external, image, endless = host.piped(
        {"prompt": f"read: {lamp}"},
        {"prompt": f"compare: {lamp} and {candle}"},
        {"prompt": f"one by one: {lamp} and {candle}"},
        {"prompt": f"moved: {host.pages}/moved and {lamp}"},
        {"prompt": "external: which colour?"},
        {"prompt": "image: what is it?", "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}]},
        {"prompt": "endless: go", "max_turns": 2},
    )
    assert "The lamp costs 4 crowns." in read["answer"]
    assert "no instruction to you" in read["answer"]
    assert (read["statistics"]["turns"], read["statistics"]["calls"]) == (2, 1)
    assert "The lamp costs 4 crowns." in compared["answer"]
    assert "The candle costs 6 crowns." in compared["answer"]
    assert (compared["statistics"]["turns"], compared["statistics"]["calls"]) == (2, 2)
    assert "The candle costs 6 crowns." in in_turn["answer"]
    assert (in_turn["statistics"]["turns"], in_turn["statistics"]["failed_calls"]) == (3, 0)
    assert "/lamp\nTitle: lamp" in moved["answer"]
    assert (moved["statistics"]["turns"], moved["statistics"]["failed_calls"]) == (3, 0)
    assert "colour done" in external["answer"]
    assert '"seen"' in image["answer"]
    assert endless["stop_reason"] == "turns"
    assert (endless["statistics"]["turns"], endless["statistics"]["calls"]) == (3, 2)
    assert all(seen.json()["systemInstruction"]["parts"] == [{"text": "Be brief."}] for seen in host.simulator.requests)


def test_a_session_continues_in_the_next_process_with_its_calls_and_results(host: Host):
    (first,) = host.piped({"prompt": f"read: {host.pages}/lamp"})
    (second,) = host.piped({"prompt": "and now?", "session_id": first["session_id"]})
    assert second["session_id"] == first["session_id"]
    assert second["answer"].startswith("After 5 messages")
    kinds = [next(iter(content["parts"][0])) for content in host.simulator.requests[-1].json()["contents"]]
    assert kinds == ["text", "functionCall", "functionResponse", "text", "text"]


def test_a_signal_ends_it_while_the_host_still_listens(tmp_path: Path):
    (tmp_path / "dragoman.toml").write_text(
        f'[upstreams.simulator]\nkind = "simulator"\n[sessions]\nurl = "sqlite:///{tmp_path}/sessions.db"\n'
    )
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with subprocess.Popen(  # noqa: S603
        COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=tmp_path, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(json.dumps(listed) + "\n")
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["id"] == 1
        running.terminate()
        assert running.wait(timeout=20) == 0


def test_without_the_mcp_extra_requests_for_mcp_get_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name == "mcp" or name.startswith(("mcp.", "dragoman.mcp.server."))]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("server", "sdk"):
        monkeypatch.delitem(sys.modules, f"dragoman.mcp.{name}", raising=False)
        monkeypatch.delattr(dragoman.mcp, name, raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    config = Config(
        server=ServerTable(log="off"),
        upstreams={"simulator": UpstreamTable(kind="simulator")},
        sessions=SessionsTable(url=f"sqlite:///{tmp_path}/sessions.db"),
    )
    with run_in_thread(lambda: running(config, port=0, grace=1.0), "gateway") as gateway:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        reply = httpx2.post(f"{gateway.base_url}/mcp", json=body)
        assert reply.status_code == 501
        assert "dragoman[mcp]" in reply.json()["error"]["message"]
        assert httpx2.get(f"{gateway.base_url}/v1/models").status_code == 200


def test_without_the_extra_it_is_named(tmp_path: Path):
    code = "import sys; sys.modules['mcp'] = None; from dragoman.cli import main; sys.exit(main(['mcp']))"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GEMINI")}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        input="",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 2
    assert "dragoman[mcp]" in done.stderr
    assert done.stdout == ""
