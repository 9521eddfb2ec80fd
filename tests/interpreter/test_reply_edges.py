"""Edge cases of reply adaptation: calls with the same id, citations elsewhere, dialects with fewer capabilities."""

import pytest
from msgspec import structs

from dragoman.core.events import Native, PartCited, PartDelta, PartEnded, PartSigned, PartStarted, Started
from dragoman.core.losses import Loss
from dragoman.core.parts import Citation, Reasoning, Signature, Text, ToolCall
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.reply import EventAdapter
from dragoman.interpreter.reply_adapter import ReplyOptions
from interpreter.workbench import nobodys_dialect


def build_adapter(client, *, source_issuer="", **options):
    ledger = Ledger({"part.signature": ("/signature",), "call.id": ("/id",)})
    return EventAdapter(nobodys_dialect(source_issuer), client, ledger, ReplyOptions(**options)), ledger


def feed_events(fit, *events):
    return [one for event in events for one in fit.feed(event)]


def call(index, call_id="a", arguments="{}", where="/c", **more):
    start = ToolCall(id=call_id, name="f", arguments="", where=where, **more)
    return [PartStarted(index, start), PartDelta(index, arguments), PartEnded(index)]


def test_of_two_calls_with_one_id_the_second_gets_its_own():
    fit, ledger = build_adapter(dialect_named("chat"), salt="s")
    events = feed_events(fit, Started("r", "m", 3), *call(0), *call(1, where="/d"), *call(2, call_id="b"))
    ids = [event.part.id for event in events if isinstance(event, PartStarted)]
    assert (ids[0], ids[2]) == ("a", "b")
    assert ids[1].startswith("call_")
    assert ledger.losses() == (Loss("/d/id", "another call has the id 'a': this one gets a new id", "approximated"),)


def test_calls_without_ids_get_distinct_ids():
    fit, ledger = build_adapter(dialect_named("chat"))
    events = feed_events(fit, Started("r", "m", 3), *call(0, ""), *call(1, ""))
    first, second = [event.part.id for event in events if isinstance(event, PartStarted)]
    assert first != second
    assert ledger.losses() == ()


def test_a_generated_id_depends_on_the_reply():
    def build_id(reply_id):
        fit, _ = build_adapter(dialect_named("chat"))
        return feed_events(fit, Started(reply_id, "m", 3), *call(0, ""))[1].part.id

    assert build_id("r") == build_id("r") != build_id("q")


@pytest.mark.parametrize(
    ("arguments", "complete", "why"),
    [
        ("[1]", True, "the call's arguments are not a JSON object, or nested too deeply"),
        ('{"a":', False, "the call was cut off inside its arguments"),
    ],
)
def test_a_dropped_call_is_reported_with_its_reason(arguments, complete, why):
    fit, ledger = build_adapter(dialect_named("gemini"))
    start = ToolCall(id="a", name="f", arguments="", where="/c")
    assert feed_events(fit, PartStarted(0, start), PartDelta(0, arguments), PartEnded(0, complete)) == []
    assert ledger.losses() == (Loss("/c", why, "dropped"),)


def test_no_events_are_emitted_for_a_call_dropped_at_its_end():
    fit, _ = build_adapter(dialect_named("gemini"))
    start = ToolCall(id="a", name="f", arguments="", where="/c")
    assert feed_events(fit, PartStarted(0, start), PartDelta(0, "[1]"), PartEnded(0)) == []
    assert feed_events(fit, PartSigned(0, Signature("google", "s")), PartDelta(0, "x")) == []


@pytest.mark.parametrize("where", ["/c", ""])
def test_a_free_form_call_becomes_a_function_call_anywhere(where):
    fit, _ = build_adapter(dialect_named("messages"), is_whole=True)
    start = ToolCall(id="a", name="f", arguments="", form="text", where=where)
    events = feed_events(fit, PartStarted(0, start), PartDelta(0, "ls"), PartDelta(0, " -l"), PartEnded(0))
    assert [event.text for event in events if isinstance(event, PartDelta)] == ['{"input":"ls -l"}']
    assert [event.part.form for event in events if isinstance(event, PartStarted)] == ["json"]


def without(client, **capabilities):
    return structs.replace(client, capabilities=structs.replace(client.capabilities, **capabilities))


def test_reasoning_is_left_out_where_the_client_has_no_place_for_it():
    fit, ledger = build_adapter(without(dialect_named("chat"), reasoning=False))
    text = [PartStarted(0, Text(text="")), PartDelta(0, "hi"), PartEnded(0)]
    thought = [PartStarted(0, Reasoning(where="/r")), PartDelta(0, "hm"), PartEnded(0)]
    rest = [PartStarted(1, Text(text="")), PartDelta(1, "hi"), PartEnded(1)]
    assert feed_events(fit, *thought, *rest) == text
    assert ledger.losses() == (Loss("/r", "the client's dialect has no reasoning", "dropped"),)


@pytest.mark.parametrize(
    ("signatures", "raw_members"),
    [({"reasoning"}, True), ({"reasoning", "call"}, False), ({"call"}, False), (set(), False)],
)
def test_reasoning_has_a_calls_signature_only_if_reasoning_is_signed_and_calls_are_not(signatures, raw_members):
    client = without(dialect_named("messages"), signatures=frozenset(signatures))
    fit, ledger = build_adapter(client, source_issuer="google")
    start = ToolCall(id="a", name="f", arguments="", where="/c", signature=Signature("google", "s"))
    events = feed_events(fit, PartStarted(0, start), PartDelta(0, "{}"), PartEnded(0))
    kinds = [type(event.part) for event in events if isinstance(event, PartStarted)]
    assert kinds == ([Reasoning, ToolCall] if raw_members else [ToolCall])
    assert (ledger.losses() == ()) is raw_members or "call" in signatures


SOURCES = b'{"chunks":[{"web":{"uri":"u"}},{"web":{"uri":"v"}}],"queries":["q"]}'


def find_citation_losses(client, *places):
    fit, ledger = build_adapter(dialect_named(client))
    citation = Citation("gemini", b"{}", url="u", places=places)
    feed_events(fit, PartStarted(0, Text(text="", where="/t")), PartCited(0, citation), PartEnded(0))
    feed_events(fit, Native("gemini", "/grounding", SOURCES))
    return [(loss.where, loss.leaves) for loss in ledger.losses()]


def test_a_rendered_citation_is_not_reported_as_a_loss():
    lost = [("/grounding/chunks/1/web/uri", 1), ("/grounding/queries/0", 1)]
    assert find_citation_losses("chat", "/grounding/chunks/0/web/uri") == lost


def test_a_field_of_which_nothing_was_cited_is_one_loss_with_all_its_leaves():
    assert find_citation_losses("chat") == [("/grounding", 3)]
    assert find_citation_losses("chat", "/groundings/0", "/other") == [("/grounding", 3)]
