"""A whole reply that is fitted at once becomes what it becomes event by event, and loses what it loses there."""

from hypothesis import given
from hypothesis import strategies as some

import strategies
from dragoman.core.parts import Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response
from dragoman.core.stream import collect, replay
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply_whole import WholeFitter

DIALECTS = ("chat", "responses", "messages", "gemini")


def fitter(source, client, *, single=False):
    here, ledger = dialect_named(source), Ledger(dialect_named(source).reply_pointers)
    return WholeFitter(dialect_named(client), ledger, whole=True, salt="s", single=single, source=here), ledger


def outcome(fit, ledger):
    try:
        return fit(), ledger.losses()
    except Problem as problem:
        return problem.kind, problem.message, ledger.losses()


def at_once_and_by_events(response, source, client, *, single=False):
    one, at_once = fitter(source, client, single=single)
    other, by_events = fitter(source, client, single=single)
    return (
        outcome(lambda: one.fit(response), at_once),
        outcome(lambda: collect(told for event in replay(response) for told in other.feed(event)), by_events),
    )


@given(strategies.responses(), some.sampled_from(DIALECTS), some.sampled_from(DIALECTS), some.booleans())
def test_every_generated_reply_is_fitted_alike(response, source, client, single):
    one, other = at_once_and_by_events(response, source, client, single=single)
    assert one == other


def test_texts_and_calls_are_fitted_alike_for_every_pair():
    signed = Signature("google", "c2ln")
    calls = (
        ToolCall(id="", name="f", arguments='{"a":1}', where="/c/1"),
        ToolCall(id="same", name="f", arguments="{}", where="/c/2", signature=signed),
        ToolCall(id="same", name="g", arguments="[1]", where="/c/3", namespace="n"),
    )
    for count in range(len(calls) + 1):
        parts = (Text(text="before", where="/t/0"), *calls[:count], Text(text="behind", where="/t/9"))
        response = Response(id="r", model="m", parts=parts, finish=Finish("tool_calls", "STOP"))
        for source in DIALECTS:
            for client in DIALECTS:
                one, other = at_once_and_by_events(response, source, client)
                assert one == other
