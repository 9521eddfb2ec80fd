"""The exchanges of our own, which the laws use without the shelf, are what the vendors' SDKs send and read."""

import json

import pytest

import shelf
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from oracles.request_checks import check_request

DIALECTS = ("chat", "responses", "messages", "gemini")


def rows(dialect):
    lines = (shelf.OWN / shelf.CORPUS_FILES[dialect]).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_request_is_one_the_sdk_could_have_sent(dialect):
    found = {row["id"]: check_request(dialect, json.dumps(row["request"]).encode()) for row in rows(dialect)}
    assert len(found) == 8
    assert not {name: what for name, what in found.items() if what}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_answer_is_whole_and_nothing_in_it_is_unknown(dialect):
    record = dialect_named(dialect)
    for row in rows(dialect):
        request = record.parse_request(Call(json.dumps(row["request"]).encode(), row["model"]))
        if row["status"] != 200:
            assert record.parse_error(row["status"], {}, json.dumps(row["response"]).encode()).message
        elif "sse" in row:
            assert row["sse"].endswith("\n\n")
        else:
            response = record.parse_response(json.dumps(row["response"]).encode())
            assert response.parts, row["id"]
        assert request.messages
