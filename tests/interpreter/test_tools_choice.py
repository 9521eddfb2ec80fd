"""The choice among tools as each target takes it."""

import pytest
from msgspec import structs

from dragoman.core.request import NativeTool, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.interpreter.tools import adapt_request_tools
from interpreter.workbench import adaptation_for, build_request, exactly, loss_pointers

NAMES = ("red", "green", "blue")
TOOLS = tuple(
    Tool(name=name, parameters=b'{"type":"object","properties":{}}', where=f"/tools/{index}")
    for index, name in enumerate(NAMES)
)
TARGETS = {
    "chat": "gpt-4.1",
    "compatible": "nobody",
    "responses": "gpt-5.6",
    "claude 5.5": "claude-opus-5-5",
    "claude 5": "claude-opus-5",
    "gemini": "gemini-3-pro",
}
DIALECTS = {"compatible": "chat", "claude 5.5": "messages", "claude 5": "messages"}
AUTO, NONE, REQUIRED = (ToolChoice(mode=mode) for mode in ("auto", "none", "required"))
BENT, GONE = ("approximated", "/tool_choice"), ("dropped", "/tool_choice")


def chosen(target, choice, tools=TOOLS, **options):
    """Return the choice, the names of the sent tools, the losses, and the instructions added as text."""
    adaptation = adaptation_for(DIALECTS.get(target, target), TARGETS[target], **options)
    result, adapted = adapt_request_tools(build_request(tools=tools, tool_choice=choice), adaptation)
    names = tuple(tool.name for tool in result if isinstance(tool, Tool))
    return adapted, names, loss_pointers(adaptation), adaptation.instructions


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("choice", [AUTO, NONE, None])
def test_auto_and_none_are_sent_to_every_target(target, choice):
    assert chosen(target, choice) == (choice, NAMES, [], [])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("names", "words"), [((), "Call one of the tools."), (("green",), "Call the tool green.")], ids=["any", "one"]
)
def test_a_call_is_forced_or_requested_as_text(target, names, words):
    choice = ToolChoice(mode="required", names=names)
    if target == "claude 5.5":
        others = [("dropped", "/tools/0"), ("dropped", "/tools/2")] if names else []
        assert chosen(target, choice) == (AUTO, names or NAMES, [BENT, *others], [words])
    else:
        assert chosen(target, choice) == (choice, NAMES, [], [])


OTHERS = [("dropped", "/tools/1")]


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("target", ["chat", "responses", "gemini"])
def test_a_subset_is_allowed_where_there_is_a_list_for_that(target, mode):
    choice = ToolChoice(mode=mode, names=("red", "blue"))
    allowed = structs.replace(choice, listed=target != "gemini")
    assert chosen(target, choice) == (allowed, NAMES, [], [])


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("target", ["compatible", "claude 5"])
def test_only_a_subset_is_sent_where_there_is_no_list(target, mode):
    choice = ToolChoice(mode=mode, names=("red", "blue"))
    assert chosen(target, choice) == (ToolChoice(mode=mode), ("red", "blue"), [BENT, *OTHERS], [])


def test_one_allowed_but_not_required_tool_is_sent_alone():
    choice = ToolChoice(mode="auto", names=("red",))
    others = [("dropped", "/tools/1"), ("dropped", "/tools/2")]
    assert chosen("claude 5", choice) == (AUTO, ("red",), [BENT, *others], [])


def test_several_required_tools_are_requested_as_text_where_calls_cannot_be_forced():
    choice = ToolChoice(mode="required", names=("red", "blue"))
    assert chosen("claude 5.5", choice)[::3] == (AUTO, ["Call the tool red or blue."])


def test_native_tools_stay_next_to_an_allowed_subset():
    search = NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}', where="/tools/3")
    adaptation = adaptation_for("messages", "claude-opus-5")
    result, _ = adapt_request_tools(
        build_request(tools=(*TOOLS, search), tool_choice=ToolChoice(mode="auto", names=("red",))), adaptation
    )
    assert [type(tool) for tool in result] == [Tool, NativeTool]


def test_the_choice_follows_a_tool_that_is_renamed():
    odd = structs.replace(TOOLS[0], name="a b")
    choice = ToolChoice(mode="required", names=("a b",), where="/tool_choice")
    adapted, names, losses, _ = chosen("chat", choice, (odd,))
    assert exactly(adapted) == exactly(ToolChoice(mode="required", names=("a_b_c8687a08",), where="/tool_choice"))
    assert (names, losses) == (("a_b_c8687a08",), [])


@pytest.mark.parametrize(("mode", "after"), [("required", AUTO), ("auto", AUTO)])
def test_a_choice_of_a_tool_that_is_not_sent_is_dropped(mode, after):
    assert chosen("chat", ToolChoice(mode=mode, names=("pink",))) == (after, NAMES, [GONE], [])


def test_of_several_chosen_tools_one_that_is_not_sent_is_dropped_alone():
    choice = ToolChoice(mode="required", names=("red", "pink", "blue"))
    lost = [("dropped", "/tool_choice/allowed_tools/tools/1")]
    left = ToolChoice(mode="required", names=("red", "blue"), listed=True)
    assert chosen("chat", choice) == (left, NAMES, lost, [])
    choice = ToolChoice(mode="required", names=("red", "pink"))
    assert chosen("chat", choice) == (ToolChoice(mode="required", names=("red",)), NAMES, lost, [])


def test_without_tools_there_is_nothing_to_choose():
    assert chosen("chat", REQUIRED, ()) == (None, (), [GONE], [])
    assert chosen("chat", ToolChoice(mode="auto", names=("red",)), ()) == (None, (), [GONE], [])


@pytest.mark.parametrize(("choice", "losses"), [(AUTO, []), (NONE, [GONE]), (REQUIRED, [GONE])])
def test_gemini_gets_no_choice_without_functions(choice, losses):
    search = NativeTool(dialect="messages", raw=b'{"type":"web_search_20250305","name":"web_search"}', where="/tools/0")
    adapted, names, reported, _ = chosen("gemini", choice, (search,))
    assert (adapted, names) == (None, ())
    assert [loss for loss in reported if loss[1] == "/tool_choice"] == losses


@pytest.mark.parametrize("mode", [None, "auto", "none"])
@pytest.mark.parametrize("parallel", [None, True, False])
def test_without_tools_a_choice_that_forces_none_is_implied(mode, parallel):
    assert chosen("chat", ToolChoice(mode=mode, parallel=parallel), ()) == (None, (), [], [])


@pytest.mark.parametrize(
    ("target", "choice", "after"),
    [
        ("chat", ToolChoice(parallel=False), ToolChoice(parallel=False)),
        ("responses", ToolChoice(mode="auto", parallel=True), ToolChoice(mode="auto", parallel=True)),
        ("claude 5", ToolChoice(parallel=False), ToolChoice(mode="auto", parallel=False)),
        ("claude 5", ToolChoice(mode="required", parallel=False), ToolChoice(mode="required", parallel=False)),
        ("gemini", ToolChoice(parallel=True), None),
        ("gemini", ToolChoice(mode="auto", parallel=True), AUTO),
    ],
)
def test_parallel_calls_are_switched_where_there_is_a_switch(target, choice, after):
    assert chosen(target, choice) == (after, NAMES, [], [])


def test_parallel_off_is_requested_from_gemini_as_text():
    words = ["Call at most one tool at a time."]
    losses = [("approximated", "/parallel_tool_calls")]
    assert chosen("gemini", ToolChoice(parallel=False)) == (None, NAMES, losses, words)
    assert chosen("gemini", ToolChoice(mode="auto", parallel=False)) == (AUTO, NAMES, losses, words)


def test_an_empty_choice_is_not_sent():
    assert chosen("claude 5", ToolChoice()) == (None, NAMES, [], [])


def test_names_without_a_mode_are_the_tools_the_model_may_call():
    allowed = ToolChoice(mode="auto", names=("red",), listed=True)
    assert chosen("chat", ToolChoice(names=("red",))) == (allowed, NAMES, [], [])


@pytest.mark.parametrize(("target", "losses"), [("chat", [BENT]), ("claude 5", [BENT]), ("gemini", [])])
def test_calls_held_to_schemas_that_cannot_be_strict_are_googles_alone(target, losses):
    loose = tuple(structs.replace(tool, parameters=b'{"type":"object","minProperties":1}') for tool in TOOLS)
    assert chosen(target, ToolChoice(mode="auto", validated=True), loose) == (AUTO, NAMES, losses, [])


def test_fields_of_a_choice_only_the_source_understands_are_dropped():
    choice = ToolChoice(mode="auto", where="/tool_choice", extras=Extras("chat", {"/x": b"1"}))
    assert chosen("gemini", choice) == (AUTO, NAMES, [("dropped", "/tool_choice/x")], [])


SEARCH = NativeTool(dialect="messages", raw=b'{"type":"web_search_20250305","name":"web_search"}', where="/tools/3")
FORCED = ToolChoice(mode="required", names=("web_search",), parallel=False, where="/tool_choice")


def test_a_forced_choice_follows_a_native_tool_to_its_counterpart():
    adapted, *_ = chosen("responses", FORCED, (*TOOLS, SEARCH))
    assert exactly(adapted) == exactly(
        ToolChoice(where="/tool_choice", extras=Extras("responses", {"": b'{"type":"web_search"}'}), parallel=False)
    )


@pytest.mark.parametrize(
    ("target", "choice", "tools"),
    [
        ("gemini", FORCED, (*TOOLS, SEARCH)),
        ("chat", FORCED, (*TOOLS, SEARCH)),
        ("responses", structs.replace(FORCED, mode="auto"), (*TOOLS, SEARCH)),
        ("responses", structs.replace(FORCED, names=("other",)), (*TOOLS, SEARCH)),
    ],
)
def test_a_choice_of_a_vendors_tool_that_cannot_be_forced_is_dropped(target, choice, tools):
    adapted, _, losses, _ = chosen(target, choice, tools)
    assert (adapted.mode, adapted.names, adapted.extras) == ("auto", (), None)
    assert GONE in losses


def test_a_vendors_tool_is_not_forced_where_nothing_can_be():
    adapted, *_ = chosen("claude 5.5", FORCED, (*TOOLS, SEARCH))
    assert adapted == ToolChoice(mode="auto", parallel=False)
