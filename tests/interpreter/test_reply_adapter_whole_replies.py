"""A whole reply that is adapted directly becomes what it becomes event by event, and loses what it loses there."""

from hypothesis import given
from hypothesis import strategies as some

import strategies
from dragoman.core.parts import Citation, Inline, Media, Opaque, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish, Response
from dragoman.core.stream import collect, replay
from dragoman.core.value import Extras
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import Context, ReplyOptions
from dragoman.interpreter.response import ResponseAdapter

DIALECTS = ("chat", "responses", "messages", "gemini")


def outcome(adapt, source):
    ledger = Ledger(dialect_named(source).reply_pointers, b"{}", exact=True)
    try:
        return adapt(ledger), ledger.losses()
    except Problem as problem:
        return problem.kind, problem.message, ledger.losses()


def directly_and_by_events(response, source, client, *, single=False):
    source_dialect, target_dialect = dialect_named(source), dialect_named(client)
    options = ReplyOptions(single_call=single, is_whole=True)

    def directly(ledger):
        return ResponseAdapter(source_dialect, target_dialect, ledger, options).adapt(response, Context())

    def by_events(ledger):
        adapter = EventAdapter(source_dialect, target_dialect, ledger, options)
        return collect(result for event in replay(response) for result in adapter.feed(event))

    return outcome(directly, source), outcome(by_events, source)


@given(strategies.responses(), some.sampled_from(DIALECTS), some.sampled_from(DIALECTS), some.booleans())
def test_every_generated_reply_is_adapted_alike(response, source, client, single):
    one, other = directly_and_by_events(response, source, client, single=single)
    assert one == other


def assert_alike(*parts):
    response = Response(id="r", model="m", parts=parts, finish=Finish("tool_calls", "STOP"))
    for source in DIALECTS:
        for client in DIALECTS:
            one, other = directly_and_by_events(response, source, client)
            assert one == other


def test_texts_and_calls_are_adapted_alike_for_every_pair():
    signed = Signature("google", "c2ln")
    calls = (
        ToolCall(id="", name="f", arguments='{"a":1}', where="/c/1"),
        ToolCall(id="same", name="f", arguments="{}", where="/c/2", signature=signed),
        ToolCall(id="same", name="g", arguments="[1]", where="/c/3", namespace="n"),
    )
    for count in range(len(calls) + 1):
        assert_alike(Text(text="before", where="/t/0"), *calls[:count], Text(text="behind", where="/t/9"))


def test_reasoning_signatures_and_fields_are_adapted_alike_for_every_pair():
    fields = Extras("responses", {"/id": b'"rs_1"', "/odd": b"[1]"})
    for issuer in ("google", "openai", "anthropic", "other"):
        signed = Signature(issuer, "c2ln", "rs_1")
        for signature in (None, signed):
            for redacted in (False, True):
                texts = () if redacted else ("hm",)
                thought = Reasoning(texts=texts, redacted=redacted, where="/t/0", signature=signature, extras=fields)
                text = Text(text="so", where="/t/1", signature=signature, extras=fields)
                call = ToolCall(id="c", name="f", arguments="{}", where="/t/2", signature=signature, extras=fields)
                assert_alike(thought, text, call)


def test_a_part_that_is_left_out_behind_others_is_adapted_alike_for_every_pair():
    signed = Signature("google", "c2ln")
    before = (Text(text="so", where="/t/0", signature=signed), ToolCall(id="", name="f", arguments="{}", where="/t/1"))
    for odd in (
        Media(kind="image", media_type="image/png", source=Inline("aa"), where="/t/2", signature=signed),
        Opaque(dialect="gemini", raw=b'{"a":1}', where="/t/2", signature=signed),
        ToolCall(id="", name="f", arguments="[", where="/t/2", signature=signed),
        Text(text="so", where="/t/2", signature=signed, citations=(Citation("other", b"1"),)),
    ):
        assert_alike(*before, odd)
