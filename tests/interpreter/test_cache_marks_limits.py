"""Claude takes four cache marks, none living longer than those before it; others' requests may have more."""

import json

import pytest

from dragoman.core.parts import Text, ToolResult
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.cache_marks import are_marks_compatible, limit_marks
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from interpreter.workbench import build_message, encode

CLAUDE = traits_for("messages", "claude-opus-5")
GPT = traits_for("chat", "gpt-5.6")
BREAKPOINT = "/prompt_cache_breakpoint"


def text(number, cache=None):
    return Text(text=f"t{number}", where=f"/{number}", cache=cache)


def adapt_part(*lifetimes, traits=CLAUDE):
    turns = tuple(build_message("user", text(number, cache)) for number, cache in enumerate(lifetimes))
    ledger = Ledger({"part.cache": (BREAKPOINT,)})
    after = limit_marks(turns, traits, ledger)
    return [turn.parts[0].cache for turn in after], [(loss.kind, loss.where) for loss in ledger.losses()]


@pytest.mark.parametrize(
    ("marks", "expected", "losses"),
    [
        (("1h", "1h", "5m", ""), ["1h", "1h", "5m", ""], []),
        (("", "5m", ""), ["", "5m", ""], []),
        (("5m", "1h"), ["5m", "5m"], [("approximated", f"/1{BREAKPOINT}/ttl")]),
        (("", None, "1h", "5m"), ["", None, "", "5m"], [("approximated", f"/2{BREAKPOINT}/ttl")]),
        (("",) * 5, [None, "", "", "", ""], [("dropped", f"/0{BREAKPOINT}")]),
        (
            ("5m", None, "", "1h", "1h", "1h", "5m"),
            [None, None, None, "1h", "1h", "1h", "5m"],
            [("dropped", f"/0{BREAKPOINT}"), ("dropped", f"/2{BREAKPOINT}")],
        ),
        ((None, None), [None, None], []),
    ],
)
def test_the_last_four_cache_markers_are_kept_and_none_outlives_an_earlier_one(marks, expected, losses):
    assert adapt_part(*marks) == (expected, losses)


def test_valid_cache_markers_leave_turns_unchanged():
    turns = (
        build_message("user", text(0, "1h"), text(1)),
        build_message("user", ToolResult(call_id="c", content=(text(2, ""),))),
    )
    after = limit_marks(turns, CLAUDE, Ledger({}))
    assert after[0] is turns[0]
    assert after == turns


def test_cache_markers_are_not_counted_for_a_target_without_a_limit():
    assert adapt_part(*[""] * 9, traits=GPT) == ([""] * 9, [])


def test_marks_inside_a_result_count_before_its_own():
    content = (text(0, ""), text(1, ""), text(2, ""))
    turns = (build_message("user", ToolResult(call_id="c", content=content, where="/r", cache=""), text(3, "")),)
    ledger = Ledger({"part.cache": (BREAKPOINT,)})
    (turn,) = limit_marks(turns, CLAUDE, ledger)
    assert [item.cache for item in turn.parts[0].content] == [None, "", ""]
    assert (turn.parts[0].cache, turn.parts[1].cache) == ("", "")
    assert [loss.where for loss in ledger.losses()] == [f"/0{BREAKPOINT}"]


@pytest.mark.parametrize(
    ("lifetimes", "agree"),
    [([""] * 4, True), ([""] * 5, False), (["1h", "5m"], False), ([], True)],
)
def test_a_history_can_be_split_where_its_cache_markers_are_independent(lifetimes, agree):
    assert are_marks_compatible([build_message("user", text(0, lifetime)) for lifetime in lifetimes], 4) is agree


def test_cache_markers_in_anthropics_format_count_too():
    borrowed = Text(text="t", extras=Extras("chat", {"/cache_control": b'{"type":"ephemeral"}'}))
    assert are_marks_compatible([build_message("user", *[borrowed] * 4)], 4)
    assert not are_marks_compatible([build_message("user", *[borrowed] * 5)], 4)


def build_marked_text(words, **mark):
    return {"type": "text", "text": words, **mark}


def longer(turns):
    """A long chat in which each of the user's turns has a mark of its own, in one vendor's words or another's."""
    explicit = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    borrowed = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    messages = [{"role": "system", "content": [build_marked_text("s" * 9000, **explicit)]}]
    for turn in range(turns):
        messages.append(
            {"role": "user", "content": [build_marked_text(f"q{turn}" * 900, **(borrowed if turn % 2 else explicit))]}
        )
        messages.append({"role": "assistant", "content": f"a{turn}"})
    return encode({"model": "m", "messages": [*messages, {"role": "user", "content": "q"}]})


@pytest.mark.parametrize("turns", [2, 3, 4, 9])
def test_a_request_with_any_marks_is_one_that_claude_takes_however_the_history_grows(turns):
    for length in range(1, turns + 1):
        translation = translate_request(Call(longer(length)), "chat", "messages", model="claude-opus-5")
        body = json.loads(translation.call.body)
        verdict = APIS["messages"].accept(translation.call.body, CheckContext(model="claude-opus-5"), TokenSigner())
        assert not isinstance(verdict, Violation), verdict
        assert translation.call.body.count(b'"cache_control"') == min(4, length + 1)
        assert len(body["messages"]) == 2 * length + 1
    gone = {loss.where.partition("/content")[0] for loss in translation.losses if loss.kind == "dropped"}
    assert len(gone) == max(0, turns + 1 - 4)
    assert {loss.where.split("/")[5] for loss in translation.losses} <= {"prompt_cache_breakpoint", "cache_control"}
