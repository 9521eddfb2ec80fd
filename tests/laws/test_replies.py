"""Canary in replies: each leaf is in what the client gets, or its exact pointer is in the ledger; never both."""

import collections
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.stream import replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.translate import StreamTranslator, translate_response
from laws.documents import DIALECTS
from laws.replies import COUNTED_TOGETHER, INCIDENTAL, canaries, distinct_replies, shape, survives
from shelf import needs_shelf

UNTOLD_ONLY_WHOLE = {"the call was cut off inside its arguments", "the call's arguments are not a JSON object"}
"""A stream has told of the call when that turns out, where the client can hear a part of one."""
PAIRS = [(s, t) for s in DIALECTS for t in DIALECTS if s != t]


@needs_shelf
@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_every_leaf_of_a_reply_survives_or_is_in_the_ledger(source, client):
    wrong: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    for name, where, wanted, body in canaries(source):
        try:
            told = translate_response(body, source, client)
        except Problem as problem:
            if problem.kind not in {"malformed_reply", "policy"}:
                wrong.setdefault(f"{shape(where)} refused", f"{name}: {problem}")
            continue
        dropped = {loss.where for loss in told.losses if loss.kind == "dropped"}
        booked = {loss.where for loss in told.losses}
        alive = survives(wanted, told.body)
        counts["alive" if alive else "booked"] += 1
        if alive and where in dropped:
            wrong.setdefault(f"{shape(where)} survived but is booked", name)
        elif not alive and where not in booked and shape(where) not in INCIDENTAL | COUNTED_TOGETHER:
            wrong.setdefault(f"{shape(where)} vanished", f"{name} {where}")
    assert not wrong, "\n".join(f"{what}: {example}" for what, example in sorted(wrong.items()))
    assert counts["alive"] > 20
    assert counts["booked"] > 80


@needs_shelf
@pytest.mark.parametrize(("source", "client"), PAIRS)
def test_a_stream_books_what_the_same_reply_books_whole(source, client):
    wrong: list[str] = []
    here = dialect_named(source)
    for name, body in distinct_replies(source):
        try:
            response = here.parse_response(json.dumps(body).encode())
            losses = translate_response(here.build_response(response, None), source, client).losses
        except Problem:
            continue
        encoder = here.encoder(None)
        translator = StreamTranslator(source, client)
        translator.feed(b"".join(map(encoder.feed, replay(response))))
        translator.close()
        streamed = {loss.where for loss in translator.losses if loss.what not in UNTOLD_ONLY_WHOLE}
        whole = {loss.where for loss in losses if loss.what not in UNTOLD_ONLY_WHOLE}
        # A stream is not there to be looked into: what is gone whole is told whole.
        missing = {w for w in whole if not any(w == s or w.startswith(s + "/") for s in streamed)}
        invented = {s for s in streamed if not any(w == s or w.startswith(s + "/") for w in whole)}
        if missing or invented:
            wrong.append(f"{name}: missing {sorted(missing)[:5]}, invented {sorted(invented)[:5]}")
    assert not wrong, "\n".join(wrong)
