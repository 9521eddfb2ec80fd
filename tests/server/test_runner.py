"""The gateway's process: its signals, and whether it is ready."""

import signal
import time

import httpx2
import pytest

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
