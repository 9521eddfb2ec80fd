"""Tool results of a history as each target takes them."""

import pytest

from dragoman.core.parts import Data, Inline, Media, Opaque, Text, ToolResult
from dragoman.core.value import Extras
from dragoman.interpreter.history import adapt_messages
from interpreter.workbench import adaptation_for, build_message, loss_pointers

PNG = Media(kind="image", media_type="image/png", source=Inline("AAAA"), where="/p/i")
TARGETS = {
    "chat": "gpt-4.1",
    "responses": "gpt-5.6",
    "messages": "claude-opus-5",
    "gemini": "gemini-3-pro",
    "gemini 2.5": "gemini-2.5-pro",
}


def adapt_part(target, *parts, role="user", source="messages", **changes):
    adaptation = adaptation_for(target.partition(" ")[0], TARGETS[target], source=source, **changes)
    (message,) = adapt_messages((build_message(role, *parts, where="/m"),), adaptation)
    return message.parts, loss_pointers(adaptation)


def result(*content, **more):
    texts = tuple(Text(text=item) if isinstance(item, str) else item for item in content)
    return ToolResult(call_id="a", content=texts, where="/p", **more)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("part", [result("ok"), result(), result("a", "b"), result(Data(json=b"{}"))])
def test_a_plain_result_is_the_same_object(target, part):
    adaptation = adaptation_for(target.partition(" ")[0], TARGETS[target])
    (message,) = adapt_messages((build_message("user", part),), adaptation)
    assert message.parts[0] is part
    assert loss_pointers(adaptation) == []


@pytest.mark.parametrize(
    ("target", "after", "losses"),
    [
        ("messages", result("bad", failed=True), []),
        ("gemini", result("bad", failed=True), []),
        ("chat", result("Error: bad"), [("approximated", "/p/is_error")]),
        ("responses", result("Error: bad"), [("approximated", "/p/is_error")]),
    ],
)
def test_a_failed_result_is_marked_in_text_if_the_target_has_no_flag(target, after, losses):
    assert adapt_part(target, result("bad", failed=True)) == ((after,), losses)


def test_a_failed_result_with_data_becomes_one_text():
    part = result("bad", Data(json=b'{"n":1}'), failed=True)
    assert adapt_part("chat", part)[0] == (result('Error: bad\n{"n":1}'),)


MARKED = Text(text="bad", cache="30m")


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (["bad", PNG], ["Error: bad", PNG]),
        ([PNG, "bad"], ["Error: ", PNG, "bad"]),
        ([PNG], ["Error: ", PNG]),
        ([Data(json=b'{"error":1}'), PNG, "b"], ['Error: {"error":1}', PNG, "b"]),
        ([MARKED, "b"], [Text(text="Error: bad", cache="30m"), "b"]),
        ([], ["Error: "]),
    ],
)
def test_a_failure_keeps_the_media_and_the_cache_marks_of_its_result(content, after):
    output = adapt_part("responses", result(*content, failed=True))
    assert output == ((result(*after),), [("approximated", "/p/is_error")])


@pytest.mark.parametrize(
    ("target", "after", "losses"),
    [
        ("chat", (result("see", "[image follows]"), PNG), [("approximated", "/p/i")]),
        ("gemini 2.5", (result("see", "[image follows]"), PNG), [("approximated", "/p/i")]),
        ("messages", (result("see", PNG),), []),
        ("responses", (result("see", PNG),), []),
        ("gemini", (result("see", PNG),), []),
    ],
)
def test_media_in_a_result_is_moved_behind_it_where_results_hold_none(target, after, losses):
    assert adapt_part(target, result("see", PNG)) == (after, losses)


def test_unsupported_media_is_replaced_by_a_placeholder():
    film = Media(kind="video", media_type="video/mp4", source=Inline("AAAA"), where="/p/i")
    after = result("see", "[video left out: the target takes no video]")
    assert adapt_part("messages", result("see", film)) == ((after,), [("dropped", "/p/i")])


def test_a_block_of_another_dialect_in_a_result_is_dropped_and_the_rest_stays():
    part = result("a", Opaque(dialect="responses", raw=b"{}", where="/p/b"), "b")
    assert adapt_part("messages", part) == ((result("a", "b"),), [("dropped", "/p/b")])


def test_empty_text_in_a_result_is_left_out_where_it_is_refused():
    blank = Text(text=" ", where="/p/b")
    assert adapt_part("messages", result(blank)) == ((result(),), [("dropped", "/p/b")])
    assert adapt_part("chat", result(blank)) == ((result(" "),), [])


def test_a_results_own_fields_and_mark_are_dropped():
    part = result("ok", extras=Extras("messages", {"/x": b"1"}), cache="30m")
    losses = [("dropped", "/p/cache_control"), ("dropped", "/p/x")]
    assert adapt_part("gemini", part) == ((result("ok"),), losses)


def test_fields_and_marks_of_a_results_text_are_dropped():
    words = Text(text="ok", where="/p/t", extras=Extras("messages", {"/x": b"1"}))
    marked = Text(text="ok", where="/p/t", cache="")
    assert adapt_part("gemini", result(words)) == ((result("ok"),), [("dropped", "/p/t/x")])
    assert adapt_part("gemini", result(marked)) == ((result("ok"),), [("dropped", "/p/t/cache_control")])


@pytest.mark.parametrize(("target", "form"), [("responses", "text"), ("chat", "json"), ("messages", "json")])
def test_a_free_form_result_is_a_functions_where_there_are_none(target, form):
    assert adapt_part(target, result("ok", form="text")) == ((result("ok", form=form),), [])


@pytest.mark.parametrize(("name", "after"), [("f", "f"), ("a b", "a_b_c8687a08")])
def test_a_results_name_is_what_the_target_calls_the_tool(name, after):
    assert adapt_part("chat", result("ok", name=name)) == ((result("ok", name=after),), [])
