"""Signatures in a reply: sent natively, in an envelope, in an empty reasoning part, or dropped."""

import pytest

from dragoman.core.events import PartDelta, PartEnded, PartSigned, PartStarted
from dragoman.core.parts import Inline, Media, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from dragoman.interpreter.signature_envelopes import UNSIGNED, open_envelope, seal_signature
from interpreter.workbench import loss_pointers, nobodys_dialect

GOOGLE, ANTHROPIC, OPENAI = (Signature(issuer, "s") for issuer in ("google", "anthropic", "openai"))
TEXT = Text(text="", where="/p")
CALL = ToolCall(id="a", name="f", arguments="", where="/p")
THOUGHT = Reasoning(where="/p")
REDACTED = Reasoning(redacted=True, where="/p")
IMAGE = Media(kind="image", media_type="image/png", source=Inline("AA"), where="/p")
ISSUERS = {"chat": "openai", "responses": "openai", "messages": "anthropic", "gemini": "google"}


def adapt_part(client, *events, whole=False, source_issuer="nobody"):
    ledger = Ledger({"part.signature": ("/signature",)})
    options = ReplyOptions(is_whole=whole)
    adapter = EventAdapter(nobodys_dialect(source_issuer), dialect_named(client), ledger, options)
    return [result for event in events for result in adapter.feed(event)], loss_pointers(ledger)


def sign(part, signature):
    return [PartStarted(0, part), PartSigned(0, signature), PartEnded(0)]


LOST = [("dropped", "/p/signature")]


@pytest.mark.parametrize(
    ("client", "part", "signature", "result"),
    [
        ("gemini", TEXT, GOOGLE, "native"),
        ("gemini", IMAGE, GOOGLE, "native"),
        ("gemini", CALL, GOOGLE, "native"),
        ("gemini", THOUGHT, GOOGLE, "native"),
        ("gemini", TEXT, ANTHROPIC, "self"),
        ("gemini", CALL, OPENAI, "self"),
        ("gemini", THOUGHT, ANTHROPIC, "self"),
        ("gemini", REDACTED, ANTHROPIC, "redacted"),
        ("messages", THOUGHT, ANTHROPIC, "native"),
        ("messages", REDACTED, ANTHROPIC, "native"),
        ("messages", THOUGHT, GOOGLE, "self"),
        ("messages", REDACTED, OPENAI, "redacted"),
        ("messages", TEXT, GOOGLE, "dropped"),
        ("responses", THOUGHT, OPENAI, "native"),
        ("responses", THOUGHT, ANTHROPIC, "self"),
        ("responses", TEXT, GOOGLE, "dropped"),
        ("chat", CALL, GOOGLE, "native"),
        ("chat", CALL, OPENAI, "native"),
        ("chat", CALL, ANTHROPIC, "dropped"),
        ("chat", THOUGHT, OPENAI, "native"),
        ("chat", THOUGHT, ANTHROPIC, "self"),
        ("chat", REDACTED, ANTHROPIC, "redacted"),
        ("chat", TEXT, GOOGLE, "dropped"),
        ("gemini", Refusal(text="", where="/p"), GOOGLE, "native"),
        ("responses", Refusal(text="", where="/p"), GOOGLE, "dropped"),
    ],
)
def test_a_signature_is_in_the_clients_own_field_or_dropped(client, part, signature, result):
    shown = Text(text="", where="/p") if isinstance(part, Refusal) and client == "gemini" else part
    if result == "dropped":
        assert adapt_part(client, *sign(part, signature)) == ([PartStarted(0, shown), PartEnded(0)], LOST)
        return
    letter = signature if result == "native" else seal_signature(signature, result, ISSUERS[client])
    reworded = [] if shown is part else [("approximated", "/p")]
    assert adapt_part(client, *sign(part, signature)) == (sign(shown, letter), reworded)


@pytest.mark.parametrize("client", ["messages", "responses"])
@pytest.mark.parametrize("signature", [GOOGLE, ANTHROPIC, OPENAI])
def test_a_calls_signature_is_on_an_empty_reasoning_part_if_only_reasoning_is_signed(client, signature):
    stream = [PartStarted(0, CALL), PartSigned(0, signature), PartDelta(0, "{}"), PartEnded(0)]
    holder = seal_signature(signature, "call", ISSUERS[client])
    assert open_envelope(holder) == (signature, "call")
    assert adapt_part(client, *stream) == (
        [
            PartStarted(0, Reasoning()),
            PartSigned(0, holder),
            PartEnded(0),
            PartStarted(1, CALL),
            PartDelta(1, "{}"),
            PartEnded(1),
        ],
        [],
    )


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_a_signature_that_arrives_after_the_call_was_sent_is_dropped(client):
    stream = [PartStarted(0, CALL), PartDelta(0, "{}"), PartSigned(0, GOOGLE), PartEnded(0)]
    assert adapt_part(client, *stream) == ([stream[0], stream[1], stream[3]], LOST)


def test_a_signature_that_arrives_after_the_call_is_kept_where_calls_have_signatures():
    stream = [PartStarted(0, CALL), PartDelta(0, "{}"), PartSigned(0, GOOGLE), PartEnded(0)]
    assert adapt_part("chat", *stream) == (stream, [])


def test_a_signature_at_the_start_of_a_part_is_sent_after_it():
    text = Text(text="", signature=GOOGLE, where="/p")
    assert adapt_part("gemini", PartStarted(0, text), PartEnded(0)) == (sign(TEXT, GOOGLE), [])
    call = ToolCall(id="a", name="f", arguments="", signature=GOOGLE, where="/p")
    assert adapt_part("gemini", PartStarted(0, call), PartEnded(0)) == (sign(CALL, GOOGLE), [])


def test_the_signature_of_a_dropped_call_is_not_sent():
    stream = [PartStarted(0, CALL), PartDelta(0, "[1]"), PartEnded(0)]
    adapted, _ = adapt_part("gemini", stream[0], PartSigned(0, GOOGLE), *stream[1:])
    assert adapted == []


@pytest.mark.parametrize("client", ["messages", "gemini", "responses"])
def test_unsigned_reasoning_is_marked_so_that_the_clients_vendor_does_not_mistake_it(client):
    letter = seal_signature(Signature("nobody", UNSIGNED), "self", ISSUERS[client])
    thought = [PartStarted(0, THOUGHT), PartDelta(0, "hm"), PartEnded(0)]
    assert adapt_part(client, *thought) == ([*thought[:2], PartSigned(0, letter), thought[2]], [])
    assert adapt_part(client, *thought, source_issuer=ISSUERS[client]) == (thought, [])


def test_reasoning_is_not_marked_where_it_has_no_field_for_signatures():
    thought = [PartStarted(0, THOUGHT), PartDelta(0, "hm"), PartEnded(0)]
    assert adapt_part("chat", *thought) == (thought, [])


def test_the_signature_of_a_free_form_call_comes_before_its_wrapped_input():
    shell = ToolCall(id="a", name="sh", arguments="", form="text", where="/p")
    stream = [PartStarted(0, shell), PartSigned(0, GOOGLE), PartDelta(0, "ls"), PartEnded(0)]
    adapted, _ = adapt_part("gemini", *stream)
    plain = ToolCall(id="a", name="sh", arguments="")
    assert adapted == [PartStarted(0, plain), PartSigned(0, GOOGLE), PartDelta(0, '{"input":"ls"}'), PartEnded(0)]


def test_the_place_of_a_part_is_known_while_its_text_passes_as_it_is():
    adapter = EventAdapter(nobodys_dialect(), dialect_named("messages"), Ledger({}))
    for event in (PartStarted(0, IMAGE), PartEnded(0), PartStarted(1, TEXT), PartStarted(2, CALL)):
        adapter.feed(event)
    assert [adapter.find_passing_index(index) for index in range(3)] == [None, 0, None]
    adapter.feed(PartDelta(2, "{"))
    assert adapter.find_passing_index(2) is None
    plain = EventAdapter(nobodys_dialect(), dialect_named("chat"), Ledger({}))
    plain.feed(PartStarted(0, CALL))
    assert plain.find_passing_index(0) is None
    plain.feed(PartDelta(0, "{"))
    assert plain.find_passing_index(0) == 0
