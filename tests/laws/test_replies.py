"""Canary in replies: each leaf is in what the client gets, or its exact pointer is in the ledger; never both."""

import collections
import contextlib
import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from laws.documents import DIALECTS
from laws.replies import COUNTED_TOGETHER, INCIDENTAL, RARE, canaries, distinct_replies, shape, survives
from shelf import needs_shelf

UNTOLD_ONLY_WHOLE = {"the call was cut off inside its arguments", "the call's arguments are not a JSON object"}
"""A stream may already have sent the start of the call when the problem becomes known."""
PAIRS = [(s, t) for s in DIALECTS for t in DIALECTS if s != t]


@needs_shelf
@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_every_leaf_of_a_reply_survives_or_is_in_the_ledger(source, client):
    wrong: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for name, where, wanted, body in canaries(source):
        try:
            result = translate_response(body, source, client)
        except Problem as problem:
            if problem.kind not in {"malformed_reply", "policy"}:
                wrong.setdefault(f"{shape(where)} refused", f"{name}: {problem}")
            continue
        dropped = {loss.where for loss in result.losses if loss.kind == "dropped"}
        reported = {loss.where for loss in result.losses}
        alive = survives(wanted, result.body)
        counts["alive" if alive else "booked"] += 1
        if alive and where in dropped:
            wrong.setdefault(f"{shape(where)} survived but is booked", name)
        elif not alive and where not in reported and shape(where) not in INCIDENTAL | COUNTED_TOGETHER:
            wrong.setdefault(f"{shape(where)} vanished", f"{name} {where}")
    assert not wrong, "\n".join(f"{what}: {example}" for what, example in sorted(wrong.items()))
    assert counts["alive"] > 20
    assert counts["booked"] > 80


def differences(source: str, client: str, whole: bytes, stream: bytes) -> str:
    """Return the pointers that are losses in a stream but not in the same reply sent whole, and vice versa."""
    try:
        losses = translate_response(whole, source, client).losses
    except Problem:
        return ""
    translator = StreamTranslator(source, client)
    translator.feed(stream)
    translator.close()
    streamed = {loss.where for loss in translator.losses if loss.what not in UNTOLD_ONLY_WHOLE}
    reported = {loss.where for loss in losses if loss.what not in UNTOLD_ONLY_WHOLE}
    missing, invented = reported - streamed, streamed - reported
    return f"missing {sorted(missing)[:5]}, invented {sorted(invented)[:5]}" if missing or invented else ""


def streamed(source: str, body: dict[str, Any]) -> tuple[bytes, bytes]:
    """A reply as its own dialect writes it whole and as a stream."""
    here = dialect_named(source)
    response = here.parse_response(json.dumps(body).encode())
    encoder = here.encoder(None)
    return here.build_response(response, None), b"".join(map(encoder.feed, replay(response)))


@needs_shelf
@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_a_stream_books_what_the_same_reply_books_whole(source, client):
    wrong: dict[str, str] = {}
    for name, body in distinct_replies(source):
        with contextlib.suppress(Problem):  # a reply that its own dialect cannot read is told as an error
            wrong[name] = differences(source, client, *streamed(source, body))
    assert not any(wrong.values()), "\n".join(f"{name}: {what}" for name, what in wrong.items() if what)


@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_a_stream_books_what_a_rare_reply_books_whole(source, client):
    wrong = {name: differences(source, client, *streamed(source, body)) for name, body in RARE[source].items()}
    assert not any(wrong.values()), "\n".join(f"{name}: {what}" for name, what in wrong.items() if what)


@pytest.mark.parametrize("client", [name for name in DIALECTS if name != "gemini"])
@pytest.mark.parametrize("name", RARE["gemini"])
def test_a_stream_of_one_chunk_books_what_it_books_as_a_reply(name, client):
    body = json.dumps(RARE["gemini"][name]).encode()
    assert not differences("gemini", client, body, b"data: " + body + b"\n\n")
