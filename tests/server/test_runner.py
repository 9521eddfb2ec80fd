"""The gateway's process: its signals, and whether it is ready."""

import signal
import socket
import time
from contextlib import ExitStack

import httpx2
import pytest

from dragoman.simulator import in_thread
from server.processes import serve

STREAM = {
    "model": "gemini-3-flash~stall,after=2",
    "messages": [{"role": "user", "content": "Count from 1 to 50"}],
    "stream": True,
}


def test_a_hangup_does_not_end_the_process(tmp_path):
    with serve(tmp_path) as command:
        command.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        reply = httpx2.get(f"{command.base_url}/ready")
        assert (reply.status_code, reply.json()) == (200, {"ready": True})


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_signal_ends_the_process_at_once(tmp_path, workers):
    config = tmp_path / "dragoman.toml"
    config.write_text('[server]\nlisten = "127.0.0.1:0"\ngrace = 600\n')
    with (
        serve(tmp_path, "--config", str(config), "--workers", workers) as command,
        httpx2.stream("POST", f"{command.base_url}/v1/chat/completions", json=STREAM) as reply,
    ):
        chunks = reply.iter_bytes()
        next(chunks)
        command.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert command.process.poll() is None
        command.process.send_signal(signal.SIGTERM)
        command.process.wait(20)


def test_a_stream_that_outlives_the_grace_ends_with_an_error_event(tmp_path):
    config = tmp_path / "dragoman.toml"
    config.write_text('[server]\nlisten = "127.0.0.1:0"\ngrace = 0.3\n')
    with serve(tmp_path, "--config", str(config)) as command:
        with httpx2.stream("POST", f"{command.base_url}/v1/chat/completions", json=STREAM) as reply:
            chunks = reply.iter_bytes()
            next(chunks)
            command.process.send_signal(signal.SIGTERM)
            rest = b"".join(chunks)
        assert b"the gateway is shutting down" in rest
        assert command.process.wait(20) == 0


def find_free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


CHAT = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("key", "variable", "model", "path"),
    [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5.2", "/v1"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-opus-4-8", ""),
        ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "gemini-3-flash", ""),
    ],
)
def test_requests_go_to_the_base_url_of_the_vendors_variable(key, variable, model, path, tmp_path):
    with in_thread() as simulator:
        variables = {key: "secret", variable: f"{simulator.base_url}{path}"}
        with serve(tmp_path, **variables) as command:
            reply = httpx2.post(f"{command.base_url}/v1/chat/completions", json={**CHAT, "model": model})
            assert reply.status_code == 200
            assert "is the address of this gateway" not in command.errors
        assert any("secret" in value for _, value in simulator.requests[0].headers)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_variable_with_the_address_of_the_gateway_is_ignored_with_one_line(workers, tmp_path):
    port = find_free_port()
    listen, own = f"127.0.0.1:{port}", f"http://localhost:{port}/v1"
    variables = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": own}
    config = tmp_path / "dragoman.toml"
    config.write_text("[server]\n")
    with serve(tmp_path, "--config", str(config), "--listen", listen, "--workers", workers, **variables) as command:
        assert httpx2.get(f"{command.base_url}/ready").status_code == 200
        assert command.errors.count(f"OPENAI_BASE_URL={own} is the address of this gateway: ignored") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_of_the_gateway_to_itself_is_refused_as_a_loop(workers, tmp_path):
    listen = f"127.0.0.1:{find_free_port()}"
    config = tmp_path / "dragoman.toml"
    config.write_text(
        f'[server]\nlisten = "{listen}"\n[server.retries]\nmost = 0\n'
        f'[upstreams.a]\nkind = "openai"\nbase_url = "http://{listen}/v1"\n'
        f'[upstreams.b]\nkind = "anthropic"\nbase_url = "http://localhost:{listen[10:]}"\napi_key = "k"\n'
    )
    with serve(tmp_path, "--config", str(config), "--workers", workers) as command:
        for model in ("a/gpt-5.2", "b/claude-opus-4-8"):
            reply = httpx2.post(f"{command.base_url}/v1/chat/completions", json={**CHAT, "model": model})
            assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
            assert "the gateway called itself: set base_url of the upstream to another address" in reply.text
        head = {"x-dragoman-exchange": command.base_url}
        direct = httpx2.post(f"{command.base_url}/v1/chat/completions", json=CHAT, headers=head)
        assert (direct.status_code, direct.json()["error"]["code"]) == (400, "loop")
        assert httpx2.get(f"{command.base_url}/v1/models").status_code == 200


def test_a_loop_through_another_gateway_is_refused(tmp_path):
    first, second = (f"127.0.0.1:{find_free_port()}" for _ in range(2))
    with ExitStack() as stack:
        for listen, other in ((first, second), (second, first)):
            folder = tmp_path / other.replace(":", "-")
            folder.mkdir()
            config = folder / "dragoman.toml"
            config.write_text(
                f'[server]\nlisten = "{listen}"\n[server.retries]\nmost = 0\n'
                f'[upstreams.a]\nkind = "openai"\nbase_url = "http://{other}/v1"\n[models]\nm = "a/m"\n'
            )
            stack.enter_context(serve(folder, "--config", str(config)))
        with httpx2.Client() as client:
            reply = client.post(f"http://{first}/v1/chat/completions", json={**CHAT, "model": "m"}, timeout=60)
            assert reply.status_code == 400
            assert "the request has passed a chain of gateways that leads back to this one" in reply.text
            marked = {"x-dragoman-exchange": ", ".join(f"http://127.0.0.1:{number}" for number in range(11))}
            many = client.post(f"http://{first}/v1/chat/completions", json=CHAT, headers=marked)
            assert (many.status_code, many.json()["error"]["code"]) == (400, "loop")
            assert client.get(f"http://{first}/health").status_code == 200


def test_a_gateway_behind_a_gateway_is_no_loop(tmp_path):
    (tmp_path / "inner").mkdir()
    with serve(tmp_path / "inner") as inner:
        config = tmp_path / "dragoman.toml"
        config.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\n[upstreams.a]\nkind = "openai"\nbase_url = "{inner.base_url}/v1"\n'
        )
        with serve(tmp_path, "--config", str(config)) as outer:
            reply = httpx2.post(f"{outer.base_url}/v1/chat/completions", json={**CHAT, "model": "a/gpt-5.2"})
            assert reply.status_code == 200
