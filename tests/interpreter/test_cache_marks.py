"""Cache marks: where a target takes them, and how long it may be asked to keep what they end."""

import json

import pytest

from dragoman.core.parts import Data, Inline, Media, Text, ToolCall, ToolResult
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.cache_marks import find_nearest_lifetime
from dragoman.interpreter.history import adapt_messages
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import adaptation_for, build_message, build_request, encode, loss_pointers
from oracles import check_request

MODELS = {"messages": "claude-opus-5", "chat": "gpt-5.6", "responses": "gpt-6-luna"}
WITHOUT = [("chat", "gpt-4.1"), ("chat", "gpt-5.4"), ("responses", "gpt-5"), ("gemini", "gemini-3-pro")]
MARK = "/p/cache_control"


def text(words="hi", **more):
    return Text(text=words, where="/p", **more)


def adapt_part(dialect, model, role, *parts):
    """Return the parts of one message for a target, and its losses; pointers are those of Messages."""
    adaptation = adaptation_for(dialect, model, source="messages")
    (message,) = adapt_messages((build_message(role, *parts, where="/m"),), adaptation)
    return message.parts, loss_pointers(adaptation)


@pytest.mark.parametrize(
    ("lifetime", "allowed", "nearest"),
    [
        ("", ("5m", "1h"), ""),
        ("1h", ("5m", "1h"), "1h"),
        ("1h", ("30m", "12h"), "30m"),
        ("5m", ("30m", "12h"), "30m"),
        ("24h", ("30m", "12h"), "12h"),
        ("1d", ("30m", "12h"), "12h"),
        ("12h", ("5m", "1h"), "1h"),
        ("30m", ("5m", "1h"), "1h"),
        ("90s", ("5m", "1h"), "5m"),
        ("0m", ("5m", "1h"), ""),
        ("ever", ("5m", "1h"), ""),
        ("1w", ("5m", "1h"), ""),
        ("1h", (), ""),
    ],
)
def test_the_nearest_lifetime_is_the_one_that_differs_by_the_least_factor(lifetime, allowed, nearest):
    assert find_nearest_lifetime(lifetime, allowed) == nearest


@pytest.mark.parametrize(
    ("dialect", "cache", "output", "losses"),
    [
        ("messages", "1h", "1h", []),
        ("messages", "12h", "1h", [("approximated", f"{MARK}/ttl")]),
        ("messages", "30m", "1h", [("approximated", f"{MARK}/ttl")]),
        ("chat", "1h", "30m", [("approximated", f"{MARK}/ttl")]),
        ("responses", "5m", "30m", [("approximated", f"{MARK}/ttl")]),
        ("responses", "12h", "12h", []),
        ("chat", "ever", "", [("approximated", f"{MARK}/ttl")]),
        ("chat", "", "", []),
    ],
)
@pytest.mark.parametrize("role", ["user", "system"])
def test_a_cache_marker_requests_a_lifetime_that_the_target_supports(role, dialect, cache, output, losses):
    assert adapt_part(dialect, MODELS[dialect], role, text(cache=cache)) == ((text(cache=output),), losses)


@pytest.mark.parametrize(("dialect", "model"), WITHOUT)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_mark_is_reported_where_there_are_none(dialect, model, role):
    assert adapt_part(dialect, model, role, text(cache="1h")) == ((text(),), [("dropped", MARK)])


@pytest.mark.parametrize(("dialect", "kept"), [("messages", True), ("chat", False), ("responses", False)])
@pytest.mark.parametrize("part", [text(cache=""), ToolCall(id="a", name="f", arguments="{}", where="/p", cache="")])
def test_only_claude_has_cache_markers_on_assistant_messages(dialect, kept, part):
    (after,), losses = adapt_part(dialect, MODELS[dialect], "assistant", part)
    assert (after.cache, losses) == (("", []) if kept else (None, [("dropped", MARK)]))


def test_a_cache_marker_in_anthropics_format_requests_a_supported_lifetime():
    adaptation = adaptation_for("responses", "gpt-6-luna")
    part = text(extras=Extras("chat", {"/cache_control": b'{"type":"ephemeral","ttl":"1h"}'}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", text(cache="30m"))]
    assert loss_pointers(adaptation) == [("approximated", f"{MARK}/ttl")]


PICTURE = Media(kind="image", media_type="image/png", source=Inline("QUE="), where="/q")


@pytest.mark.parametrize(
    ("content", "after", "losses"),
    [
        ((Text(text="a"), Text(text="b")), (Text(text="a"), Text(text="b", cache="12h")), []),
        ((Text(text="a", cache="30m"),), (Text(text="a", cache="30m"),), []),
        ((Data(json=b"[1]"),), (Text(text="[1]", cache="12h"),), []),
        ((PICTURE,), (Text(text="[image follows]", cache="12h"),), [("approximated", "/q")]),
        ((), (), [("dropped", MARK)]),
    ],
)
def test_the_cache_marker_of_a_result_is_on_its_last_part(content, after, losses):
    result = ToolResult(call_id="a", content=content, where="/p", cache="12h")
    (output, *_), found = adapt_part("chat", "gpt-5.6", "user", result)
    assert (output.content, output.cache, found) == (after, None, losses)


def test_the_mark_of_a_result_stays_on_it_where_the_target_has_a_place_for_it():
    result = ToolResult(call_id="a", content=(Text(text="a"),), where="/p", cache="1h")
    assert adapt_part("messages", "claude-opus-5", "user", result) == ((result,), [])


def options(source, target, model, raw):
    adaptation = adaptation_for(target, model, source=source, document={"prompt_cache_options": json.loads(raw)})
    request = build_request(build_message("user", "hi"), extras=Extras(source, {"/prompt_cache_options": raw}))
    adapted, _ = adapt(request, adaptation)
    kept = adapted.extras.fields.get("/prompt_cache_options") if adapted.extras is not None else None
    return kept and json.loads(kept), loss_pointers(adaptation)


OPTIONS = "/prompt_cache_options"


@pytest.mark.parametrize(
    ("model", "raw", "kept", "losses"),
    [
        ("gpt-5.6", b'{"mode":"explicit","ttl":"30m"}', {"mode": "explicit", "ttl": "30m"}, []),
        (
            "gpt-5.6",
            b'{"ttl":"12h","prewarm":true}',
            {"ttl": "30m"},
            [("dropped", f"{OPTIONS}/prewarm"), ("approximated", f"{OPTIONS}/ttl")],
        ),
        ("gpt-5.6", b'{"ttl":"ever"}', None, [("approximated", f"{OPTIONS}/ttl")]),
        ("gpt-4o", b'{"ttl":"12h"}', None, [("dropped", OPTIONS)]),
        ("nobody", b'{"ttl":"12h"}', None, [("dropped", OPTIONS)]),
        ("gpt-5.6", b'"x"', None, [("dropped", OPTIONS)]),
    ],
)
def test_cache_options_of_responses_reach_chat_in_its_own_fields(model, raw, kept, losses):
    assert options("responses", "chat", model, raw) == (kept, losses)


@pytest.mark.parametrize(
    ("model", "kept", "losses"),
    [("gpt-5.6", {"ttl": "30m"}, []), ("gpt-5.2", None, [("dropped", OPTIONS)])],
)
def test_cache_options_of_chat_reach_models_that_have_them_on_responses(model, kept, losses):
    assert options("chat", "responses", model, b'{"ttl":"30m"}') == (kept, losses)


@pytest.mark.parametrize("target", ["chat", "responses"])
def test_marks_of_claude_make_a_request_that_openais_types_take(target):
    mark = {"type": "ephemeral", "ttl": "1h"}
    marked_text = [{"type": "text", "text": "t", "cache_control": mark}]
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}, "cache_control": mark}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "r", "cache_control": mark}
    body = {
        "model": "m",
        "max_tokens": 99,
        "system": marked_text,
        "messages": [
            {"role": "user", "content": marked_text},
            {"role": "assistant", "content": [*marked_text, call]},
            {"role": "user", "content": [result]},
        ],
    }
    output = translate_request(Call(encode(body)), "messages", target, model=MODELS[target])
    assert check_request(target, output.call.body) == []
    assert output.call.body.count(b'"ttl":"30m"') == 3
    assert [(loss.where, loss.grade, loss.leaves) for loss in output.losses if loss.kind == "dropped"] == [
        (f"/messages/1/content/{index}/cache_control", "informational", 2) for index in (0, 1)
    ]
