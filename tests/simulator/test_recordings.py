"""Recorded exchanges, served."""

import json
from pathlib import Path
from typing import Any

import pytest

import shelf
from dragoman.simulator.recordings import Recordings
from shelf import needs_shelf

PATH = "/v1/chat/completions"


def recordings(tmp_path: Path, *lines: Any) -> Recordings:
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return Recordings.read(path)


def exchange(said: str, **fields: Any) -> dict[str, Any]:
    return {"url_path": PATH, "request": {"a": 1, "b": [2]}, "status": 200, "response": {"said": said}, **fields}


def test_a_request_is_known_by_its_path_and_what_it_says(tmp_path):
    known = recordings(tmp_path, exchange("x"))
    told = known.find(PATH + "?key=secret", b'{ "b": [2], "a": 1 }')
    assert told is not None
    assert (told.status, json.loads(told.body)) == (200, {"said": "x"})
    assert told.headers["content-type"] == "application/json"
    assert known.find(PATH, b'{"a": 1, "b": [3]}') is None
    assert known.find("/v1/messages", b'{"a": 1, "b": [2]}') is None
    assert known.find(PATH, b"not json") is None


def test_several_replies_to_one_request_come_in_turn_and_the_last_stays(tmp_path):
    known = recordings(tmp_path, exchange("x"), "", exchange("y", status=429))
    found = [known.find(PATH, b'{"a": 1, "b": [2]}') for _ in range(3)]
    assert [(told.status, json.loads(told.body)["said"]) for told in found if told is not None] == [
        (200, "x"),
        (429, "y"),
        (429, "y"),
    ]


def test_a_stream_is_served_byte_for_byte(tmp_path):
    known = recordings(tmp_path, exchange("x", sse="data: {}\r\n\r\n: é\n\n"))
    told = known.find(PATH, b'{"a":1,"b":[2]}')
    assert told is not None
    assert (told.headers["content-type"], told.body) == ("text/event-stream", "data: {}\r\n\r\n: é\n\n".encode())


@pytest.mark.parametrize("line", ["nonsense", '{"url_path": "/"}', '{"url_path": 1, "request": {}}', "[1]"])
def test_a_line_that_is_no_exchange_is_told_by_its_number(tmp_path, line):
    with pytest.raises(ValueError, match=r"recorded\.jsonl, line 2 is not"):
        recordings(tmp_path, exchange("x"), line)


@needs_shelf
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_real_recordings_are_found_again(dialect):
    known = Recordings.read(shelf.ROOT / "corpus" / shelf.CORPUS_FILES[dialect])
    for recorded in shelf.exchanges(dialect):
        told = known.find(recorded["url_path"], json.dumps(recorded["request"]).encode())
        assert told is not None, recorded["id"]
