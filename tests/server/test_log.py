"""The log has one line for each exchange, without message contents and without secrets."""

import asyncio
import json
import logging
import os
import re
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest

from cpu_limit import cpu_limit
from dragoman.config import Config, ConfigError, KeyTable, ServerTable, SessionsTable, UpstreamTable
from dragoman.core.problems import Problem
from dragoman.core.response import Usage
from dragoman.gateway.record import Record
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.mcp.settings import ToolServer
from dragoman.server import log
from dragoman.server.log import LogWriter
from dragoman.server.runner import running

CANARY = "canary-of-what-was-said"
CLIENT, UPSTREAM = "a-key-of-our-own-client", "the key that no pattern finds"


def serve(tmp_path, table, steps, **server):
    """Run a gateway with a log, take some steps, and return the lines."""
    file = tmp_path / "log"
    settings = ServerTable(listen="127.0.0.1:0", log=str(file), **server)
    config = Config(
        server=settings,
        keys=(KeyTable(key=CLIENT, name="one"),),
        upstreams={"up": table},
        models={"gem": ("up/gemini-3.8-flash",)},
        sessions=SessionsTable(url=f"sqlite:///{tmp_path}/s.db"),
    )
    with log.open_log(config) as lines:
        opened = lambda: running(config, observers=[lines.on_end], grace=0.5)  # noqa: E731
        with run_in_thread(opened, "gateway") as gateway:
            steps(gateway.base_url)
    return file.read_text().splitlines()


def post_chat(base, model="gem", **more):
    body = {"model": model, "messages": [{"role": "user", "content": f"Say {CANARY}"}], **more}
    headers = {"authorization": f"Bearer {CLIENT}"}
    return httpx2.post(f"{base}/v1/chat/completions?key={CLIENT}", json=body, headers=headers)


def test_every_exchange_has_a_log_line_with_its_outcome(tmp_path):
    def steps(base):
        result = post_chat(base, logit_bias={"1": 1})
        assert CANARY in result.text
        names.append(result.headers["x-dragoman-exchange"])
        losses.append(int(result.headers["x-dragoman-losses"].partition(";")[0]))
        post_chat(base, stream=True)
        post_chat(base, model="nobody-has-this")
        httpx2.get(f"{base}/health")

    names: list[str] = []
    losses: list[int] = []
    result = serve(tmp_path, UpstreamTable(kind="simulator"), steps)
    whole, streamed, refused = map(json.loads, result)
    place = {"owner": "one", "operation": "generate", "dialect": "chat", "model": "gem", "upstream": "up"}
    assert {name: whole[name] for name in place} == place
    assert whole["exchange"] == names[0]
    assert (whole["upstream_model"], whole["status"], whole["outcome"]) == ("gemini-3.8-flash", 200, "answered")
    assert (whole["tries"], whole["stream"], whole["finish"]) == (1, False, "stop")
    assert whole["losses"] == losses[0] > 0
    assert whole["tokens"]["input"] > 0 < whole["tokens"]["output"]
    assert 0 < whole["first_ms"] <= whole["total_ms"] < 60_000
    assert abs(time.time() - time.mktime(time.strptime(whole["time"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone) < 60
    assert streamed["stream"] is True
    assert (refused["status"], refused["outcome"], refused["problem"]) == (404, "refused", "not_found")
    assert "nobody-has-this" in refused["message"]


def test_neither_message_contents_nor_secrets_are_in_the_log_or_in_errors(tmp_path):
    async def leaky(exchange: Exchange) -> None:
        shown = exchange.request.header("x-goog-api-key")
        words = (
            f"bad key {shown}, also sk-ant-api03-abcdefghijklmnop1234 and https://u:p4ssw0rd@h/?key=AIzaSyA1234567890"
        )
        body = json.dumps({"error": {"code": 401, "message": words, "status": "UNAUTHENTICATED"}}).encode()
        await exchange.send(401, {"content-type": "application/json"}, body)

    def steps(base):
        collected.append(post_chat(base).text)
        collected.append(post_chat(base, model=f"Bearer {CLIENT}").text)

    collected: list[str] = []
    with run_in_thread(lambda: listen(leaky), "leaky") as upstream:
        table = UpstreamTable(kind="gemini", base_url=upstream.base_url, api_key=UPSTREAM)
        lines = serve(tmp_path, table, steps)
    assert "rejected the gateway's credentials" in lines[0]
    assert UPSTREAM not in collected[0]
    for line in lines:
        for secret in (CANARY, CLIENT, UPSTREAM, "sk-ant", "p4ssw0rd", "AIza"):
            assert secret not in line


def test_a_line_can_be_for_people(tmp_path):
    (line,) = serve(tmp_path, UpstreamTable(kind="simulator"), post_chat, log_format="text")
    assert "200 answered chat gem -> up/gemini-3.8-flash" in line
    assert " tokens" in line
    assert CANARY not in line


def test_an_internal_error_is_answered_in_the_clients_dialect_and_logged_with_its_traceback(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError(f"broken at Bearer {UPSTREAM[:3]}x1234567 {CLIENT}")

    monkeypatch.setattr("dragoman.gateway.generate.Gateway.generate", fails)
    collected: list[httpx2.Response] = []
    headers = {"x-api-key": CLIENT}

    def steps(base):
        collected.append(httpx2.post(f"{base}/v1/messages", json={"model": "gem"}, headers=headers))
        collected.append(httpx2.post(f"{base}/v1beta/models/gem:generateContent", json={}, headers=headers))

    crash, line, *_ = map(json.loads, serve(tmp_path, UpstreamTable(kind="simulator"), steps))
    assert [answer.status_code for answer in collected] == [500, 500]
    assert collected[0].json()["error"]["type"] == "api_error"
    assert collected[1].json()["error"]["status"] == "INTERNAL"
    assert "broken" not in collected[0].text
    assert (crash["event"], crash["exchange"], crash["error"]) == ("crash", line["exchange"], "RuntimeError")
    assert "in fails" in crash["traceback"]
    assert "x1234567" not in crash["traceback"]
    assert CLIENT not in crash["traceback"]
    assert (line["status"], line["outcome"], line["problem"]) == (500, "refused", "internal")


def test_an_observer_that_fails_does_no_harm(tmp_path):
    reported: list[dict] = []
    seen: list[Record] = []

    def fails(record: Record) -> None:
        raise RuntimeError(record.id)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        config = Config(
            server=ServerTable(listen="127.0.0.1:0"),
            upstreams={"up": UpstreamTable(kind="simulator")},
            sessions=SessionsTable(url=f"sqlite:///{tmp_path}/s.db"),
        )
        async with running(config, observers=[fails, seen.append]) as gateway:
            result = await asyncio.to_thread(post_chat, gateway.base_url, "gemini-3.8-flash")
            assert result.status_code == 200

    asyncio.run(main())
    assert [str(context["exception"]) for context in reported] == [seen[0].id]


def test_a_file_that_cannot_be_written_is_an_error_of_the_configuration(tmp_path):
    config = Config(server=ServerTable(log=str(tmp_path / "no" / "log")), source="here.toml")
    with pytest.raises(ConfigError, match=r"here\.toml: server\.log: cannot write to"), log.open_log(config):
        pass


def lines_for(record: Record, **options) -> list[bytes]:
    collected: list[bytes] = []
    log.Log(collected.append, **options).on_end(record)
    return collected


def test_off_leaves_only_our_own_failures():
    assert lines_for(Record(operation="generate"), crashes_only=True) == []
    assert len(lines_for(Record(operation="generate", crash=ValueError("x")), crashes_only=True)) == 1
    assert b"ValueError: x" in lines_for(Record(crash=ValueError("x")), crashes_only=True, form="text")[0]


def test_health_has_a_line_only_when_it_fails():
    assert lines_for(Record(operation="health")) == []
    assert len(lines_for(Record(operation="health", problem=Problem("permission", "no")))) == 1


def test_errors_that_the_event_loop_reports_are_logged():
    collected: list[bytes] = []
    log.Log(collected.append).on_loop_error(None, {"message": "lost key=abcdefgh1234"})
    assert json.loads(collected[0])["message"] == "lost key=[redacted]"


def test_a_text_line_contains_tries_losses_and_problems():
    record = Record(
        operation="generate", dialect="chat", model="m", stream=True, first_token_seconds=0.25, seconds=1.0, tries=3,
        usage=Usage(input=1, output=2), problem=Problem("timeout", "too\nslow"),
    )  # fmt: skip
    assert b"1000 ms (first 250 ms) 1+2 tokens 3 tries timeout: too slow" in lines_for(record, form="text")[0]


def test_a_log_file_that_is_moved_away_is_created_again(tmp_path):
    file = tmp_path / "log"
    lines = LogWriter(file)
    lines.add(b"one")
    until(lambda: file.read_text() == "one\n")
    file.rename(tmp_path / "log.1")
    lines.add(b"two")
    lines.close()
    assert ((tmp_path / "log.1").read_text(), file.read_text()) == ("one\n", "two\n")


def test_a_log_file_that_cannot_be_created_again_closes_no_other_connection(tmp_path, monkeypatch):
    failures: list[OSError] = []
    open_file = log._open_file

    def try_to_open(path: Path) -> int:
        try:
            return open_file(path)
        except OSError as error:
            failures.append(error)
            raise

    monkeypatch.setattr(log, "_open_file", try_to_open)
    place = tmp_path / "logs"
    place.mkdir()
    lines = LogWriter(place / "log")
    lines.add(b"one")
    until(lambda: (place / "log").exists() and (place / "log").read_text() == "one\n")
    shutil.rmtree(place)
    file = lines._file
    lines.add(b"lost")
    until(lambda: failures)
    with socket.socket() as other:
        assert lines._file == file
        assert other.fileno() != file
        place.mkdir()
        lines.add(b"two")
        lines.close()
        os.fstat(other.fileno())
    assert (place / "log").read_text() == "two\n"


def test_a_long_model_name_does_not_block_the_log(tmp_path):
    record = Record(dialect="chat", operation="generate", model="a" * 1_000_000, outcome="refused", seconds=0.1)
    record.problem = Problem("not_found", "b" * 1_000_000)
    written: list[bytes] = []
    with cpu_limit():
        log.Log(written.append).on_end(record)
    assert len(written[0]) < 2000


def until(true, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_lines_beyond_a_full_queue_are_dropped_and_counted_without_blocking(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "_MAX_QUEUED", 10)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    ready = threading.Event()

    def reader() -> None:
        with pipe.open("rb") as file:
            ready.wait()
            read.append(file.read())

    thread = threading.Thread(target=reader)
    thread.start()
    lines = LogWriter(pipe)
    lines.add(b"x" * (1 << 20))
    until(lines._queue.empty)
    for _ in range(100):
        lines.add(b"y")
    assert lines._dropped == 89
    ready.set()
    lines.close()
    os.close(lines._file)
    thread.join()
    assert b'{"event":"dropped","lines":89}' in read[0]


def test_a_log_file_is_readable_only_by_its_owner(tmp_path):
    LogWriter(tmp_path / "log").close()
    assert Path(tmp_path / "log").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("form", ["json", "text"])
def test_messages_of_tools_and_external_servers_are_logged_without_secrets(tmp_path, form):
    peer = Path(__file__).parents[1] / "mcp" / "peers" / "plain.py"
    token = "t0ken-secret"  # noqa: S105  nobody's
    broken = ToolServer(command=sys.executable, args=(str(peer), "broken"), env={"TOKEN": token})
    file = tmp_path / "log"
    server = ServerTable(listen="127.0.0.1:0", log=str(file), log_format=form)
    config = Config(
        server=server,
        upstreams={"sim": UpstreamTable(kind="simulator")},
        sessions=SessionsTable(url=f"sqlite:///{tmp_path}/s.db"),
        tools={"bad": broken},
    )
    before = logging.getLogger("dragoman").handlers[:]
    with log.open_log(config), run_in_thread(lambda: running(config), "gateway"):
        logging.getLogger("dragoman.tools").error("odd", exc_info=RuntimeError(f"not with {token}"))
    assert logging.getLogger("dragoman").handlers == before
    result = file.read_text()
    assert token not in result
    if form == "text":
        assert re.search(r"^\S+Z info mcp: bad: there is no database at db.test", result, re.MULTILINE)
        return
    lines = [json.loads(line) for line in result.splitlines()]
    notes = {(line["about"], line["level"]): line for line in lines if line.get("event") == "note"}
    assert notes["mcp", "info"]["message"] == "bad: there is no database at db.test, token [redacted]"
    assert notes["mcp", "warning"]["message"].startswith("MCP server bad is not available: ")
    assert notes["tools", "error"]["traceback"].endswith("RuntimeError: not with [redacted]\n")
