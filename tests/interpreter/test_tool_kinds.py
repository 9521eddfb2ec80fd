"""Vendors' own tools and their counterparts elsewhere."""

import json

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, ToolChoice
from dragoman.core.value import Extras
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.tool_kinds import find_choice, find_counterpart, has_name, list_settings
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import NEWEST, encode

SEARCH = {
    "responses": {"type": "web_search"},
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "gemini": {"googleSearch": {}},
}
CODE = {
    "responses": {"type": "code_interpreter", "container": {"type": "auto"}},
    "messages": {"type": "code_execution_20250825", "name": "code_execution"},
    "gemini": {"codeExecution": {}},
}
FETCH = {"messages": {"type": "web_fetch_20250910", "name": "web_fetch"}, "gemini": {"urlContext": {}}}


def native(dialect, body):
    return NativeTool(dialect=dialect, raw=encode(body), where="/tools/0")


@pytest.mark.parametrize(
    ("body", "forms"),
    [
        ({"type": "web_search", "filters": {}}, SEARCH),
        ({"type": "web_search_preview"}, SEARCH),
        ({"type": "web_search_preview_20250311"}, SEARCH),
        ({"type": "web_search_20260209", "name": "web_search"}, SEARCH),
        ({"googleSearch": {}}, SEARCH),
        ({"google_search": {}}, SEARCH),
        ({"googleSearchRetrieval": {}}, SEARCH),
        ({"type": "code_interpreter", "container": "c"}, CODE),
        ({"type": "code_execution_20250825", "name": "code_execution"}, CODE),
        ({"codeExecution": {}}, CODE),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, FETCH),
        ({"urlContext": {}}, FETCH),
        ({"url_context": {}}, FETCH),
    ],
)
@pytest.mark.parametrize("dialect", ["responses", "messages", "gemini", "chat"])
def test_a_vendors_tool_is_written_as_the_targets_own(body, forms, dialect):
    found = find_counterpart(native("elsewhere", body), traits_for(dialect, "any"))
    if dialect not in forms:
        assert found is None
        return
    assert (found.dialect, json.loads(found.raw), found.where) == (dialect, forms[dialect], "/tools/0")


@pytest.mark.parametrize(
    "body",
    [
        {"type": "memory_20250818", "name": "memory"},
        {"googleMaps": {}},
        {"type": ""},
        {"type": 3},
        {"type": "file_search", "web_search": {}},
        [],
        "web_search",
    ],
)
def test_a_tool_of_only_one_vendor_has_no_counterpart(body):
    assert find_counterpart(native("elsewhere", body), traits_for("gemini", "any")) is None


def test_a_tool_whose_type_is_no_value_at_all_has_no_counterpart():
    assert find_counterpart(NativeTool(dialect="elsewhere", raw=b'{"type":1e999}'), traits_for("gemini", "any")) is None


@pytest.mark.parametrize(
    ("dialect", "body", "choice"),
    [
        ("responses", SEARCH["responses"], ToolChoice(extras=Extras("responses", {"": b'{"type":"web_search"}'}))),
        ("responses", CODE["responses"], ToolChoice(extras=Extras("responses", {"": b'{"type":"code_interpreter"}'}))),
        ("messages", SEARCH["messages"], ToolChoice(mode="required", names=("web_search",))),
        ("messages", CODE["messages"], ToolChoice(mode="required", names=("code_execution",))),
        ("messages", FETCH["messages"], ToolChoice(mode="required", names=("web_fetch",))),
        ("gemini", SEARCH["gemini"], None),
        ("gemini", CODE["gemini"], None),
    ],
)
def test_a_vendor_is_made_to_use_its_own_tool_in_its_own_way(dialect, body, choice):
    assert find_choice(native(dialect, body)) == choice


@pytest.mark.parametrize(
    ("body", "called"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, True),
        ({"type": "web_search_20250305", "name": "other"}, False),
        ({"type": "web_search"}, True),
        (["web_search"], False),
    ],
)
def test_callers_know_a_vendors_tool_by_its_name_or_type(body, called):
    assert has_name(native("messages", body), "web_search") is called


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        ({"type": "web_search", "filters": {"a": 1}, "x/y": 2}, ["/filters", "/x~1y"]),
        ({"googleSearch": {"a/b": 1, "c": {}}, "x/y": 2, "z": {"d": 1}}, ["/googleSearch/a~1b", "/googleSearch/c", "/x~1y", "/z"]),
        ({"googleSearch": 5}, []),
        ({"googleSearch": {}}, []),
        ([1], []),
    ],
)  # fmt: skip
def test_fields_of_a_native_tool_are_known_by_their_pointer(body, settings):
    assert list_settings(native("gemini", body)) == settings


UNKNOWN = {
    "messages": {"type": "novel_20300101", "name": "novel"},
    "responses": {"type": "novel"},
    "gemini": {"novelTool": {}, "otherTool": {}},
}


@pytest.mark.parametrize("target", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize("source", ["responses", "messages", "gemini"])
def test_a_tool_of_an_unknown_type_passes_at_its_vendor_and_is_a_material_loss_that_names_it_elsewhere(source, target):
    user = {"role": "user", "content": "Go."}
    bodies = {
        "responses": {"model": "m", "input": [user]},
        "messages": {"model": "m", "max_tokens": 9, "messages": [user]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": "Go."}]}]},
    }
    call = Call(encode({**bodies[source], "tools": [UNKNOWN[source]]}), "m")
    translation = translate_request(call, source, target, model=NEWEST[target])
    if source == target:
        assert json.loads(translation.call.body)["tools"] == [UNKNOWN[source]]
        assert translation.losses == ()
        return
    (loss,) = [loss for loss in translation.losses if loss.where.startswith("/tools")]
    kind = UNKNOWN[source].get("type", "novelTool, otherTool")
    assert (loss.what, loss.grade) == (f"the target has no such kind of tool: {kind}", "material")
    with pytest.raises(Problem, match=kind) as caught:
        translate_request(call, source, target, model=NEWEST[target], strict=True)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("source", "tool", "place"),
    [
        ("messages", {"type": "computer_20250124", "name": "computer", "display_width_px": "wide"}, "display_width_px"),
        ("messages", {"type": "computer_20251124", "name": "computer", "enable_zoom": 1}, "enable_zoom"),
        ("messages", {"type": "computer_toolset_20260801", "configs": [1]}, "configs"),
        ("messages", {"type": "computer_toolset_20260801", "configs": {"zoom": 5}}, "configs/zoom"),
        (
            "messages",
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": "x"},
            "max_characters",
        ),
        ("responses", {"type": "shell", "environment": "local"}, "environment"),
        ("responses", {"type": "computer_use_preview", "display_width": "w"}, "display_width"),
    ],
)
def test_a_setting_of_a_wrong_type_is_an_error_elsewhere_and_left_to_its_own_vendor(source, tool, place):
    history = {"messages": {"max_tokens": 9, "messages": []}, "responses": {"input": []}}[source]
    body = encode({"model": "m", **history, "tools": [tool]})
    for target in ("chat", "gemini"):
        with pytest.raises(Problem) as caught:
            translate_request(Call(body, "m"), source, target, model=NEWEST[target])
        assert (caught.value.where, caught.value.code) == (f"/tools/0/{place}", "invalid_tool")
    assert translate_request(Call(body), source, source).call.body == body
