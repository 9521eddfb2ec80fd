"""Canary in replies: each leaf is in what the client gets, repeats the request, or is covered by a loss."""

import collections
import contextlib
import json
from collections.abc import Iterable
from typing import Any

import pytest

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.loss_report import list_leaves
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.wire.lookup import lookup
from laws.canary import find_covering, find_miscounts
from laws.documents import DIALECTS
from laws.replies import COUNTED_TOGETHER, INCIDENTAL, RARE, canaries, distinct_replies, shape, survives
from shelf import enough

UNTOLD_ONLY_WHOLE = {
    "the call was cut off inside its arguments",
    "the call's arguments are not a JSON object, or nested too deeply",
}
"""A stream may already have sent the start of the call when the problem becomes known."""
PAIRS = [(s, t) for s in DIALECTS for t in DIALECTS if s != t]


@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_every_leaf_of_a_reply_survives_or_is_covered_by_a_loss(source, client):
    wrong: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for name, where, expected, body in canaries(source):
        try:
            translated = translate_response(body, source, client)
        except Problem as problem:
            if problem.kind not in {"malformed_reply", "policy"}:
                wrong.setdefault(f"{shape(where)} refused", f"{name}: {problem}")
            continue
        loss = find_covering(where, translated.losses)
        alive = survives(expected, translated.body)
        counts["alive" if alive else "lost"] += 1
        for miscount in find_miscounts(json.loads(body), translated.losses):
            wrong.setdefault(f"{shape(miscount)} counted wrong", name)
        if alive and loss is not None and loss.kind == "dropped":
            wrong.setdefault(f"{shape(where)} survived but is reported", f"{name}: {loss}")
        elif not alive and loss is None and not _is_exempt(where, source, body):
            wrong.setdefault(f"{shape(where)} vanished", f"{name} {where}")
    assert not wrong, "\n".join(f"{what}: {example}" for what, example in sorted(wrong.items()))
    assert counts["alive"] > enough(20)
    assert counts["lost"] >= enough(80)


def _is_exempt(where: str, source: str, body: bytes) -> bool:
    """Return whether a leaf is not about the answer, is part of another count, or repeats the request."""
    is_echo = "/" + where.split("/")[1] in dialect_named(source).repeated or where in dialect_named(source).repeated
    # A tool search repeats the declarations of the client's tools that it found.
    is_echo = is_echo or (shape(where).startswith("/output/#/tools/#/") and not where.endswith("/name"))
    return is_echo or shape(where) in INCIDENTAL | COUNTED_TOGETHER or _is_search_id(where, body)


def _is_search_id(where: str, body: bytes) -> bool:
    """Return whether a leaf is the id of a web search, which gets one that is recognised in the history."""
    item = lookup(body, where.removesuffix("/id")) if where.endswith("/id") else None
    return item is not None and json.loads(item[1]).get("type") == "web_search_call"


def _leaves(losses: Iterable[Loss]) -> set[tuple[str, str]]:
    return {(loss.where, loss.grade) for loss in losses if loss.what not in UNTOLD_ONLY_WHOLE}


def _count(losses: Iterable[Loss]) -> int:
    return sum(loss.leaves for loss in losses if loss.kind == "dropped" and loss.what not in UNTOLD_ONLY_WHOLE)


def _translate_stream(source: str, client: str, stream: bytes, *, by_leaf: bool) -> tuple[Loss, ...]:
    translator = StreamTranslator(source, client, Context(by_leaf=by_leaf))
    translator.feed(stream)
    translator.close()
    return translator.losses


def differences(source: str, client: str, whole: bytes, stream: bytes) -> str:
    """Return the leaves that are lost in a stream but not in the same reply sent whole, and vice versa."""
    try:
        losses = translate_response(whole, source, client).losses
    except Problem:
        return ""
    streamed = _leaves(_translate_stream(source, client, stream, by_leaf=True))
    expected = _leaves(list_leaves(losses, whole))
    missing, invented = expected - streamed, streamed - expected
    counts = _count(losses), _count(_translate_stream(source, client, stream, by_leaf=False))
    if not missing and not invented and counts[0] != counts[1]:
        return f"{counts[0]} leaves are lost in the whole reply, {counts[1]} in the stream"
    return f"missing {sorted(missing)[:5]}, invented {sorted(invented)[:5]}" if missing or invented else ""


def render_both(source: str, body: dict[str, Any]) -> tuple[bytes, bytes]:
    """A reply as its own dialect writes it whole and as a stream."""
    source_dialect = dialect_named(source)
    response = source_dialect.parse_response(json.dumps(body).encode())
    encoder = source_dialect.encoder(None)
    return source_dialect.build_response(response, None), b"".join(map(encoder.feed, replay(response)))


@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_a_stream_books_what_the_same_reply_books_whole(source, client):
    wrong: dict[str, str] = {}
    for name, body in distinct_replies(source):
        with contextlib.suppress(Problem):  # a reply that its own dialect cannot read is told as an error
            wrong[name] = differences(source, client, *render_both(source, body))
    assert not any(wrong.values()), "\n".join(f"{name}: {what}" for name, what in wrong.items() if what)


@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_a_stream_books_what_a_rare_reply_books_whole(source, client):
    wrong = {name: differences(source, client, *render_both(source, body)) for name, body in RARE[source].items()}
    assert not any(wrong.values()), "\n".join(f"{name}: {what}" for name, what in wrong.items() if what)


@pytest.mark.parametrize("client", [name for name in DIALECTS if name != "gemini"])
@pytest.mark.parametrize("name", RARE["gemini"])
def test_a_stream_of_one_chunk_books_what_it_books_as_a_reply(name, client):
    body = json.dumps(RARE["gemini"][name]).encode()
    assert not differences("gemini", client, body, b"data: " + body + b"\n\n")
