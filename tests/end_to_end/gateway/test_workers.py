"""The gateway with several worker processes, and its graceful shutdown."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from functools import partial

import httpx2
import pytest

from dragoman.simulator.runner import in_thread
from server.processes import PROGRAM, serve, until
from server.test_metrics import total

HELLO = {"model": "gemini-3-flash", "messages": [{"role": "user", "content": "hello"}]}


# Certificates that nobody looks at take longer to load than a request takes.
NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
post, get, stream = (partial(ask, verify=NO_TRUST) for ask in (httpx2.post, httpx2.get, httpx2.stream))


def post_chat(base_url: str, **more) -> httpx2.Response:
    # A client of its own each time: a connection stays with the worker that took it.
    return post(f"{base_url}/v1/chat/completions", json={**HELLO, **more})


def scrape(base_url: str) -> str:
    return get(f"{base_url}/metrics").text


@pytest.fixture
def pair(tmp_path):
    """Two workers with the simulator behind them."""
    with serve(tmp_path, "--workers", "2") as command:
        yield command


def test_workers_are_one_gateway(pair):
    names = []
    for _ in range(16):
        reply = post_chat(pair.base_url)
        assert reply.status_code == 200
        names.append(reply.headers["x-dragoman-exchange"])
    for name in (names[0], names[-1]):
        shown = {get(f"{pair.base_url}/v1/exchanges/{name}").json()["id"] for _ in range(8)}
        assert shown == {name}
    assert get(f"{pair.base_url}/v1/exchanges/ex_none").status_code == 404
    for _ in range(4):
        text = scrape(pair.base_url)
        assert total(text, "dragoman_requests_total", operation="generate", outcome="answered") == 16
        assert total(text, "dragoman_workers") == 2
        assert total(text, "dragoman_open_requests") == 0


def test_both_workers_get_work_and_one_that_is_killed_is_replaced_without_a_loss(pair):
    for _ in range(16):
        post_chat(pair.base_url)
    lines = until(lambda: logged_requests(pair, 16))
    assert len(lines) == 16
    assert len({line["worker"] for line in lines}) == 2
    before = pair.children()
    assert len(before) == 3  # and the simulator
    os.kill(before[-1], signal.SIGKILL)
    assert [post_chat(pair.base_url).status_code for _ in range(8)] == [200] * 8
    after = until(lambda: len(pair.children()) == 3 and pair.children())
    assert len(set(after) - set(before)) == 1
    assert total(scrape(pair.base_url), "dragoman_requests_total", operation="generate") == 24
    assert "exited with code -9; restarting it" in pair.errors


def logged_requests(command, count: int) -> list[dict]:
    """Return the log lines about requests once there are `count`; the first line is about the start."""
    # What follows the last line break is still being written.
    whole = command.errors.rpartition("\n")[0].splitlines()
    lines = [line for line in map(json.loads, whole) if "exchange" in line]
    return lines if len(lines) >= count else []


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_all_workers_stop_on_a_signal_and_leave_nothing_behind(pair, tmp_path, name):
    assert post_chat(pair.base_url).status_code == 200
    children = pair.children()
    pair.process.send_signal(name)
    assert pair.process.wait(20) == 0
    assert not [pid for pid in children if alive(pid)]
    assert not list(tmp_path.glob("dragoman-*"))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_do_not_outlive_the_parent(pair):
    children = pair.children()
    pair.process.kill()
    until(lambda: not any(alive(pid) for pid in children))


def test_a_worker_that_cannot_begin_again_at_once_does_not_stop_the_others(tmp_path):
    config = tmp_path / "dragoman.toml"
    store = tmp_path / "s.db"
    config.write_text(f'[server]\nlisten = "127.0.0.1:0"\n[sessions]\nurl = "sqlite:///{store}"\n')
    with serve(tmp_path, "--config", str(config), "--workers", "2") as command:
        assert post_chat(command.base_url).status_code == 200
        # A directory cannot be opened as a database; the other worker has the old one open.
        store.rename(tmp_path / "kept.db")
        store.mkdir()
        os.kill(command.children()[-1], signal.SIGKILL)
        until(lambda: "exited with code 2; restarting it" in command.errors)
        assert command.process.poll() is None
        store.rmdir()
        (tmp_path / "kept.db").rename(store)
        until(lambda: len(command.children()) == 3 and post_chat(command.base_url).status_code == 200)


def test_the_simulator_that_workers_share_is_replaced_too(pair):
    assert post_chat(pair.base_url).status_code == 200
    simulator = pair.children()[0]
    os.kill(simulator, signal.SIGKILL)
    until(lambda: simulator not in pair.children() and len(pair.children()) == 3)
    assert post_chat(pair.base_url).status_code == 200


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_open_stream_may_end_when_the_gateway_stops_and_no_new_client_is_accepted(tmp_path, count):
    with in_thread(delay=0.05, chunk=4) as simulator:
        config = tmp_path / "dragoman.toml"
        config.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\n[upstreams.up]\nkind = "simulator"\nbase_url = "{simulator.base_url}"\n'
        )
        with serve(tmp_path, "--config", str(config), "--workers", count) as command:
            asked_for = stream("POST", f"{command.base_url}/v1/chat/completions", json={**HELLO, "stream": True})
            with asked_for as reply:
                pieces = reply.iter_text()
                result = next(pieces)
                command.process.send_signal(signal.SIGTERM)
                until(lambda: require_rejected(command.base_url))
                assert command.process.poll() is None
                result += "".join(pieces)
            assert result.endswith("data: [DONE]\n\n")
            assert command.process.wait(20) == 0


def require_rejected(base_url: str) -> bool:
    port = int(base_url.rpartition(":")[2])
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def test_a_stream_that_does_not_end_ends_with_an_error_when_the_grace_is_over(tmp_path):
    with in_thread() as simulator:
        config = tmp_path / "dragoman.toml"
        config.write_text(
            '[server]\nlisten = "127.0.0.1:0"\ngrace = 0.2\n'
            f'[upstreams.up]\nkind = "simulator"\nbase_url = "{simulator.base_url}"\n'
        )
        with serve(tmp_path, "--config", str(config)) as command:
            body = {**HELLO, "model": "gemini-3-flash~stall,after=2", "stream": True}
            with stream("POST", f"{command.base_url}/v1/chat/completions", json=body) as reply:
                pieces = reply.iter_text()
                next(pieces)
                command.process.send_signal(signal.SIGTERM)
                assert "the gateway is shutting down" in "".join(pieces)
            assert command.process.wait(20) == 0


def test_a_second_signal_stops_the_gateway_at_once(tmp_path):
    with serve(tmp_path, "--workers", "2") as command:
        body = {**HELLO, "model": "gemini-3-flash~hang"}
        cut: list[httpx2.TransportError] = []

        def wait() -> None:
            with pytest.raises(httpx2.TransportError) as error:
                post_chat(command.base_url, **body)
            cut.append(error.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: total(scrape(command.base_url), "dragoman_open_requests") == 1)
        command.process.send_signal(signal.SIGTERM)
        until(lambda: require_rejected(command.base_url))
        command.process.send_signal(signal.SIGTERM)
        command.process.wait(10)
        waiting.join()
        assert cut


def test_a_port_in_use_is_reported_with_any_number_of_workers(tmp_path, pair):
    address = pair.base_url.removeprefix("http://")
    for count in ("1", "2"):
        command = [sys.executable, "-c", PROGRAM, "serve", "--workers", count, "--listen", address]
        captured = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)  # noqa: S603
        assert captured.returncode == 2
        assert captured.stderr.startswith(f"dragoman: another process already listens on {address}")
        assert "--listen" in captured.stderr


def test_what_no_worker_can_begin_with_ends_them_all(tmp_path):
    config = tmp_path / "dragoman.toml"
    config.write_text('[server]\nlisten = "127.0.0.1:0"\nlog = "no/such/place"\n')
    command = [sys.executable, "-c", PROGRAM, "serve", "--workers", "2", "--config", str(config)]
    captured = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=30)  # noqa: S603
    assert captured.returncode == 2
    assert "server.log" in captured.stderr


def test_a_key_has_as_many_requests_open_as_it_may_at_all_workers_together(tmp_path):
    config = tmp_path / "dragoman.toml"
    key = {"x-api-key": "a-secret-key"}
    config.write_text('[server]\nlisten = "127.0.0.1:0"\nkeys = [{ key = "a-secret-key", concurrency = 1 }]\n')
    with serve(tmp_path, "--config", str(config), "--workers", "2") as command:
        url = f"{command.base_url}/v1/chat/completions"
        body = {**HELLO, "model": "gemini-3-flash~stall,after=2", "stream": True}
        with stream("POST", url, json=body, headers=key) as reply:
            pieces = reply.iter_text()  # whoever lets go of them hangs up
            next(pieces)
            result = [post(url, json=HELLO, headers=key).status_code for _ in range(8)]
            assert result == [429] * 8
        until(lambda: post(url, json=HELLO, headers=key).status_code == 200)
