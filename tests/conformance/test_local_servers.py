"""Replies of vLLM, llama.cpp, Ollama and SGLang: no text is lost, no call is invented, each call arrives once."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conformance import ours
from conformance.recordings import DIALECTS
from dragoman.core.problems import Problem
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.undo import Undo
from oracles import Reading, read_live, read_stream, read_stream_error, read_whole

REPLIES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "local_servers.toml").read_text())["reply"]
GOOD = [reply for reply in REPLIES if not reply.get("fails")]
WHOLE = [reply for reply in GOOD if "whole" in reply]
FAILING = [reply for reply in REPLIES if reply.get("fails")]
FOREIGN = [dialect for dialect in DIALECTS if dialect != "chat"]
RENAMED = Context(undo=Undo(names={"none of these": ("", "tools")}))
"""With a tool to rename, a reply to a client of the same dialect is decoded and encoded instead of forwarded."""
LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def name_params(replies: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(reply, id=reply["name"]) for reply in replies]


def stream(reply: dict[str, Any]) -> bytes:
    return reply["sse"].lstrip("\n").encode()


def translate_stream(reply: dict[str, Any], client: str, size: int = 1 << 20) -> bytes:
    translator = StreamTranslator("chat", client, RENAMED)
    sse = stream(reply)
    pieces = [translator.feed(sse[at : at + size]) for at in range(0, len(sse), size)]
    return b"".join([*pieces, translator.close()])


def check(reading: Reading, reply: dict[str, Any], *, client: str) -> None:
    """Compare what a client read with everything that the reply says."""
    assert reading.problem == ""
    assert reading.text == reply.get("text", "")
    assert "".join(reading.reasoning.split()) == "".join(reply.get("reasoning", "").split())
    expected = [(name, json.loads(arguments)) for name, arguments in reply.get("calls", [])]
    assert [(call.name, json.loads(call.arguments)) for call in reading.calls] == expected
    assert reading.finish == ("tool_calls" if expected else "stop")
    ids, own_ids = [call.id for call in reading.calls], reply.get("ids", [])
    if client == "chat":
        assert ids == own_ids
    else:
        assert len({*ids, ""}) == len(own_ids) + 1, ids
    if client == "messages":
        assert all(LEGAL_ID.fullmatch(call_id) for call_id in ids), ids
    if "usage" in reply:
        assert reading.usage is not None
        assert [reading.usage.input, reading.usage.output] == reply["usage"]


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("reply", name_params(GOOD))
def test_each_client_reads_all_that_a_stream_of_the_server_has_and_no_more(reply, client):
    check(read_stream(client, translate_stream(reply, client)), reply, client=client)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("reply", name_params(WHOLE))
def test_each_client_reads_all_that_a_whole_reply_of_the_server_has_and_no_more(reply, client):
    translated = ours.translate(reply["whole"].encode(), "chat", client, streamed=False)
    assert not isinstance(translated, Problem)
    if client != "chat":
        check(read_whole(client, translated), reply, client=client)
        return
    assert translated == reply["whole"].encode()
    check(ours.read("chat", translated, streamed=False), reply, client=client)


@pytest.mark.parametrize("client", FOREIGN)
@pytest.mark.parametrize("reply", name_params(GOOD[::4]))
def test_the_official_clients_read_such_streams_event_by_event(reply, client):
    check(read_live(client, translate_stream(reply, client)), reply, client=client)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("reply", name_params(GOOD))
def test_it_does_not_matter_where_the_bytes_of_such_a_stream_are_split(reply, client):
    assert translate_stream(reply, client, 11) == translate_stream(reply, client)


@pytest.mark.parametrize("reply", name_params(REPLIES))
def test_a_chat_client_gets_the_bytes_of_the_server(reply):
    translator = StreamTranslator("chat", "chat")
    forwarded = translator.feed(stream(reply)) + translator.close()
    if reply.get("fails"):
        assert b'"error"' in forwarded
    else:
        assert forwarded == stream(reply)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("reply", name_params(FAILING))
def test_a_server_that_fails_in_a_stream_is_an_error_at_each_client(reply, client):
    assert read_stream_error(client, translate_stream(reply, client)) is not None
