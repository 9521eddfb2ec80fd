"""Replies with only known fields are parsed on the fast path, with the same result as with an unknown field."""

import json

import pytest

import shelf
from dragoman.core.problems import Problem
from dragoman.dialects.chat import wire_reply
from dragoman.dialects.gemini.response import AS_CHUNK
from dragoman.dialects.messages.wire import ReplyShape
from dragoman.dialects.registry import DIALECTS
from dragoman.wire.json import Malformed
from dragoman.wire.shape import Shape

pytestmark = shelf.needs_shelf
MESSAGES = Shape(ReplyShape)


def load_recordings(dialect):
    for row in shelf.exchanges(dialect):
        if row["op"] == "generate" and row["status"] == 200 and isinstance(row.get("response"), dict):
            yield row["id"], json.dumps(row["response"]).encode()


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_every_recorded_reply_is_read_alike_with_an_unknown_member(dialect):
    parse = DIALECTS[dialect].parse_response
    count = 0
    for name, body in load_recordings(dialect):
        try:
            known = parse(body)
        except Problem:
            continue
        other = parse(body[:-1] + b',"unheard":1}')
        fields = known.extras.fields if known.extras is not None else {}
        assert other.extras is not None, name
        assert other.extras.fields == {**fields, "/unheard": b"1"}, name
        for one in ("id", "model", "parts", "finish", "usage", "created"):
            assert getattr(known, one) == getattr(other, one), name
        assert [part.where for part in known.parts] == [part.where for part in other.parts], name
        count += 1
    assert count > 100


def is_read_at_once(dialect, body):
    match dialect:
        case "chat":
            return wire_reply.REPLY.read(body)[1] is None
        case "messages":
            return MESSAGES.read(body)[1] is None
        case _:
            return DIALECTS[dialect].parse_response(body).spelling != AS_CHUNK


@pytest.mark.parametrize(("dialect", "share"), [("chat", 0.9), ("messages", 0.95), ("gemini", 0.75)])
def test_few_recorded_replies_have_undeclared_fields(dialect, share):
    found = []
    for _, body in load_recordings(dialect):
        try:
            found.append(is_read_at_once(dialect, body))
        except (Problem, Malformed):
            continue
    assert sum(found) > share * len(found), sum(found) / len(found)
