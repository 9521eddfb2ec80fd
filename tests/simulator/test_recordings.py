"""Replay of recorded exchanges."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

import shelf
from dragoman.simulator.recordings import Recordings
from shelf import needs_shelf

PATH = "/v1/chat/completions"


def recordings(tmp_path: Path, *lines: Any) -> Recordings:
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return Recordings.read(path)


def exchange(output: str, **fields: Any) -> dict[str, Any]:
    return {"url_path": PATH, "request": {"a": 1, "b": [2]}, "status": 200, "response": {"said": output}, **fields}


def test_a_request_is_matched_by_its_path_and_body(tmp_path):
    known = recordings(tmp_path, exchange("x"))
    result = known.find(PATH + "?key=secret", b'{ "b": [2], "a": 1 }')
    assert result is not None
    assert (result.status, json.loads(result.body)) == (200, {"said": "x"})
    assert result.headers["content-type"] == "application/json"
    assert known.find(PATH, b'{"a": 1, "b": [3]}') is None
    assert known.find("/v1/messages", b'{"a": 1, "b": [2]}') is None
    assert known.find(PATH, b"not json") is None


def test_several_replies_to_one_request_come_in_turn_and_the_last_stays(tmp_path):
    known = recordings(tmp_path, exchange("x"), "", exchange("y", status=429))
    found = [known.find(PATH, b'{"a": 1, "b": [2]}') for _ in range(3)]
    assert [(result.status, json.loads(result.body)["said"]) for result in found if result is not None] == [
        (200, "x"),
        (429, "y"),
        (429, "y"),
    ]


def test_a_stream_is_served_byte_for_byte(tmp_path):
    known = recordings(tmp_path, exchange("x", sse="data: {}\r\n\r\n: é\n\n"))
    result = known.find(PATH, b'{"a":1,"b":[2]}')
    assert result is not None
    assert (result.headers["content-type"], result.body) == ("text/event-stream", "data: {}\r\n\r\n: é\n\n".encode())


def test_headers_are_served_but_not_those_of_the_framing(tmp_path):
    headers = {"Retry-After": "3", "content-encoding": "gzip", "Transfer-Encoding": "chunked"}
    result = recordings(tmp_path, exchange("x", status=429, response_headers=headers)).find(PATH, b'{"a":1,"b":[2]}')
    assert result is not None
    assert result.headers == {"retry-after": "3", "content-type": "application/json"}


def test_a_text_is_served_as_it_was(tmp_path):
    lost = exchange("x", status=502, response_text="<html>", response_headers={"content-type": "text/html"})
    result = recordings(tmp_path, lost).find(PATH, b'{"a":1,"b":[2]}')
    assert result is not None
    assert (result.body, result.headers["content-type"]) == (b"<html>", "text/html")


def test_a_path_is_the_same_however_it_is_escaped(tmp_path):
    known = recordings(tmp_path, exchange("x", url_path="/models/claude@1:rawPredict"))
    assert known.find("/models/claude%401:rawPredict", b'{"a":1,"b":[2]}') is not None


def ask(running: Any, path: str = PATH, **headers: str) -> httpx2.Response:
    key = {"authorization": "Bearer k", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx2.post(running.base_url + path, json={"a": 1, "b": [2]}, headers=key)


def test_a_recording_is_served_on_any_path_with_a_valid_key(tmp_path, simulate):
    running = simulate(recordings=recordings(tmp_path, exchange("x"), exchange("y", url_path="/proxy/v7/chat")))
    assert ask(running).json() == {"said": "x"}
    assert ask(running, "/proxy/v7/chat").json() == {"said": "y"}
    assert ask(running, "/proxy/v8/chat").status_code == 404
    assert ask(running, authorization="Bearer invalid").status_code == 401
    assert [seen.status for seen in running.requests] == [200, 200, 404, 401]


def test_a_recorded_stream_is_sent_in_chunks_and_can_have_faults(tmp_path, simulate):
    stream = 'data: {"é": 1}\n\ndata: {}\r\n\r\ndata: [DONE]\n\n'
    running = simulate(recordings=recordings(tmp_path, exchange("x", sse=stream)), split=2)
    whole = ask(running)
    assert whole.text == stream
    assert whole.headers["transfer-encoding"] == "chunked"
    assert ask(running, x_dragoman_fault="eof,after=2").text == stream.partition("data: [DONE]")[0]
    assert ask(running, x_dragoman_fault="503").status_code == 503


def test_a_recording_is_found_behind_a_fault_in_the_models_name(tmp_path, simulate):
    path = "/v1beta/models/gemini-3.8-flash{}:generateContent"
    running = simulate(recordings=recordings(tmp_path, exchange("x", url_path=path.format(""))))
    ask(running, path.format("~503,times=1"))
    assert ask(running, path.format("~503,times=1")).json() == {"said": "x"}


@pytest.mark.parametrize("line", ["nonsense", '{"url_path": "/"}', '{"url_path": 1, "request": {}}', "[1]"])
def test_an_invalid_line_is_reported_by_its_number(tmp_path, line):
    with pytest.raises(ValueError, match=r"recorded\.jsonl, line 2 is not"):
        recordings(tmp_path, exchange("x"), line)


@needs_shelf
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_real_recordings_are_found_again(dialect):
    known = Recordings.read(shelf.ROOT / "corpus" / shelf.CORPUS_FILES[dialect])
    for recorded in shelf.exchanges(dialect):
        result = known.find(recorded["url_path"], json.dumps(recorded["request"]).encode())
        assert result is not None, recorded["id"]
