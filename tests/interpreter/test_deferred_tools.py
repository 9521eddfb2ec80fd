"""Deferred tools: what is declared before and after the conversation has loaded them, and what searches become."""

import json
from random import Random

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.deferred_tools import has_deferred
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import CACHES, Caches, parse_request, translate_request
from dragoman.interpreter.translation import TranslationTask
from shelf import ROOT, exchanges, needs_shelf

MODELS = {
    "chat": "gpt-5.2",
    "gemini": "gemini-3.8-flash",
    "responses": "gpt-5.2",
    "messages": "claude-sonnet-4",
}
"""Models without a tool search of their own."""
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def make_tool(name: str, **members) -> dict:
    properties = {f"argument_{at}": {"type": "string", "description": f"Argument {at} of {name}"} for at in range(6)}
    schema = {"type": "object", "properties": properties, "required": ["argument_0"]}
    return {"name": name, "description": f"Does {name}.", "input_schema": schema, **members}


SEARCH = make_tool("find_tools")
LATE = [make_tool(f"late_{at:03}", defer_loading=True) for at in range(120)]


def translate(body, target, *, source="messages", model=None, **options):
    call = Call(json.dumps(body).encode())
    return translate_request(call, source, target, model=model or MODELS[target], **options)


def read_recording(name: str) -> dict:
    dialect = name.partition("/")[0].removeprefix("openai_")
    return next(one for one in exchanges({"anthropic": "messages"}.get(dialect, dialect)) if one["id"] == name)


def list_captures() -> list[dict]:
    """The requests of a session in which Claude Code loads tools."""
    folder = ROOT / "clients" / "captures" / "claude-code-toolsearch"
    return [json.loads(path.read_bytes())["body"] for path in sorted(folder.iterdir())]


def list_tools(call: Call, target: str) -> list[dict]:
    body = json.loads(call.body)
    if target == "gemini":
        return [tool for group in body["tools"] for tool in group["functionDeclarations"]]
    return [tool.get("function", tool) for tool in body["tools"]]


def list_names(call: Call, target: str) -> list[str]:
    return [tool["name"] for tool in list_tools(call, target)]


def build_search(call_id: str, *names: str) -> list[dict]:
    """A search that the client runs, and its result."""
    use = {"type": "tool_use", "id": call_id, "name": "find_tools", "input": {"argument_0": "x"}}
    content = [{"type": "tool_reference", "tool_name": name} for name in names]
    result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def ask(tools, *turns):
    messages = [{"role": "user", "content": "Help me."}, *(message for turn in turns for message in turn)]
    return {"model": "m", "max_tokens": 99, "messages": messages, "tools": tools}


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_of_120_deferred_tools_at_most_a_tenth_of_the_schema_bytes_goes_upstream_before_one_is_loaded(target):
    body = translate(ask([SEARCH, *LATE]), target).call.body
    schemas = sum(len(json.dumps(tool["input_schema"])) for tool in LATE)
    early = len(json.dumps(SEARCH))
    assert len(body) - early < schemas / 10
    assert b"late_" not in body


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_a_deferred_tool_that_is_not_declared_is_reported_and_strict_mode_accepts_that(target):
    translation = translate(ask([SEARCH, *LATE]), target, strict=True)
    reported = {loss.where for loss in translation.losses if loss.kind == "dropped"}
    assert {f"/tools/{at}" for at in range(1, 121)} <= reported
    assert {loss.grade for loss in translation.losses} == {"informational"}


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_tools_are_declared_in_the_order_in_which_the_conversation_loads_them(target):
    tools = [LATE[0], SEARCH, LATE[1], make_tool("early"), LATE[2]]
    turns = [build_search("c1", "late_002"), build_search("c2", "late_000", "late_002")]
    assert list_names(translate(ask(tools, *turns), target).call, target) == [
        "find_tools",
        "early",
        "late_002",
        "late_000",
    ]


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
@pytest.mark.parametrize("seed", range(5))
def test_the_tools_of_each_turn_start_with_those_of_the_turn_before(target, seed):
    random = Random(seed)  # noqa: S311  a seeded test
    tools = [SEARCH, *LATE]
    random.shuffle(tools)
    turns, before = [], []
    for number in range(12):
        names = random.sample([tool["name"] for tool in LATE], random.randrange(5))
        turns.append(build_search(f"c{number}", *names))
        if names and random.random() < 0.5:
            use = {"type": "tool_use", "id": f"d{number}", "name": random.choice(names), "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"d{number}", "content": "ok"}
            turns.append([{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}])
        now = list_tools(translate(ask(tools, *turns), target).call, target)
        assert now[: len(before)] == before
        before = now
    assert len(before) > 5


def test_a_tool_that_was_called_or_is_chosen_is_declared():
    use = {"type": "tool_use", "id": "c1", "name": "late_007", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    body = ask([SEARCH, *LATE], [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}])
    body["tool_choice"] = {"type": "tool", "name": "late_009"}
    assert list_names(translate(body, "chat").call, "chat") == ["find_tools", "late_007", "late_009"]


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_a_reference_to_a_tool_is_text_with_its_name_and_description(target):
    translation = translate(ask([SEARCH, *LATE], build_search("c1", "late_003", "late_004")), target)
    text = translation.call.body.decode()
    for name in ("late_003", "late_004"):
        assert f"The tool {name} can be called now. Its description: Does {name}." in text
    assert all(loss.grade == "informational" for loss in translation.losses)


def test_a_reference_to_a_tool_that_is_not_declared_is_text_too():
    translation = translate(ask([SEARCH], build_search("c1", "gone")), "chat")
    assert b"The tool gone can be called now." in translation.call.body


def test_a_reference_stays_in_a_request_of_the_same_dialect():
    body = ask([SEARCH, *LATE], build_search("c1", "late_003"))
    translation = translate(body, "messages", model="claude-opus-5")
    assert json.loads(translation.call.body)["messages"] == body["messages"]
    assert translation.losses == ()


@needs_shelf
@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_claude_codes_tools_only_grow_when_it_loads_some(target):
    tools = [list_tools(translate(body, target).call, target) for body in list_captures()]
    names = [[tool["name"] for tool in turn] for turn in tools]
    assert "DeferredToolPlaceholder" not in names[0]
    assert names[1] == [*names[0], "WebFetch", "NotebookEdit"]
    assert tools[1][: len(tools[0])] == tools[0]
    assert tools[2] == tools[1]


@needs_shelf
def test_a_cached_history_has_the_same_references():
    bodies = list_captures()
    body = json.dumps({**bodies[2], "messages": [*bodies[1]["messages"], *bodies[2]["messages"]]}).encode()
    caches = Caches(ToolsCache(), PrefixCache(min_bytes=64))
    dialects = dialect_named("messages"), dialect_named("chat")
    task = TranslationTask(Call(body), *dialects, model="gpt-5.2")
    first, second = (parse_request(task, caches).translate(None) for _ in range(2))
    assert first.call == second.call == parse_request(task, CACHES).translate(None).call
    assert b"The tool WebFetch can be called now. Its description: " in first.call.body


# A search that the vendor runs


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
@pytest.mark.parametrize("search", [BM25, REGEX])
def test_without_a_search_every_tool_is_declared_at_once(target, search):
    translation = translate(ask([search, *LATE[:3]]), target, strict=True)
    assert list_names(translation.call, target) == ["late_000", "late_001", "late_002"]
    assert {loss.where for loss in translation.losses} == {
        "/tools/0",
        *(f"/tools/{at}/defer_loading" for at in (1, 2, 3)),
    }


@needs_shelf
def test_a_search_in_the_history_is_left_out_where_no_target_has_one():
    translation = translate(read_recording("anthropic/lingua-0082")["request"], "gemini", strict=True)
    assert b"tool_search" not in json.dumps(json.loads(translation.call.body)["contents"][0]).encode()
    assert list_names(translation.call, "gemini") == ["search_code"]


@needs_shelf
def test_anthropics_search_becomes_openais():
    translation = translate(
        read_recording("anthropic/lingua-0082")["request"], "responses", model="gpt-5.5", strict=True
    )
    body = json.loads(translation.call.body)
    assert [tool["type"] for tool in body["tools"]] == ["tool_search", "function"]
    assert body["tools"][1]["defer_loading"] is True
    search, output = body["input"][1:3]
    assert (search["type"], search["arguments"]) == ("tool_search_call", {"pattern": ".*"})
    assert output["tools"] == [body["tools"][1]]


@needs_shelf
def test_openais_search_becomes_anthropics():
    request = read_recording("openai_responses/langchain-0094")["request"]
    translation = translate(request, "messages", source="responses", model="claude-opus-5", strict=True)
    body = json.loads(translation.call.body)
    assert [tool.get("type") for tool in body["tools"]] == [None, None, BM25["type"]]
    assert [tool.get("defer_loading") for tool in body["tools"]] == [True, True, None]
    search, result, use = body["messages"][1]["content"]
    assert (search["type"], search["name"], search["input"]) == (
        "server_tool_use",
        BM25["name"],
        {"query": "get_weather"},
    )
    assert result["tool_use_id"] == search["id"]
    assert result["content"]["tool_references"] == [{"type": "tool_reference", "tool_name": "get_weather"}]
    assert (use["type"], use["name"]) == ("tool_use", "get_weather")


def test_two_searches_become_one():
    translation = translate(ask([BM25, REGEX, *LATE[:1]]), "responses", model="gpt-5.5", strict=True)
    body = json.loads(translation.call.body)
    assert [tool["type"] for tool in body["tools"]] == ["tool_search", "function"]


def test_a_search_without_its_result_is_left_out():
    history = [{"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": BM25["name"], "input": {"query": "x"}},
        {"type": "text", "text": "Hm."},
    ]}, {"role": "user", "content": "Go on."}]  # fmt: skip
    translation = translate(ask([BM25, *LATE[:1]], history), "responses", model="gpt-5.5")
    kinds = [item["type"] for item in json.loads(translation.call.body)["input"]]
    assert kinds == ["message", "message", "message"]


def test_found_tools_that_are_not_declared_any_more_are_not_named_to_anthropic():
    items = [
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {"paths": ["a"]}},
        {
            "type": "tool_search_output",
            "call_id": None,
            "execution": "server",
            "tools": [{"type": "function", "name": "a"}],
        },
    ]
    tools = [{"type": "function", "name": "b", "defer_loading": True}, {"type": "tool_search"}]
    body = {"model": "m", "input": [{"role": "user", "content": "q"}, *items], "tools": tools}
    result = json.loads(translate(body, "messages", source="responses", model="claude-opus-5").call.body)
    assert result["messages"][1]["content"][1]["content"]["tool_references"] == []


@pytest.mark.parametrize("value", ['"yes"', "1", "null", "false"])
def test_only_true_defers_a_tool(value):
    raw = b'[{"name":"a","input_schema":{"type":"object"},"defer_loading":%b}]' % value.encode()
    assert not has_deferred(dialect_named("messages").read_tools(raw, "/tools"))


def test_strict_all_refuses_a_tool_that_is_not_declared():
    with pytest.raises(Problem):
        translate(ask([SEARCH, *LATE]), "chat", strict="all")


# Tools that programs call


@pytest.mark.parametrize("target", ["chat", "gemini", "responses"])
def test_a_tool_for_anthropics_programs_is_called_directly_and_that_is_reported(target):
    tools = [make_tool("a", allowed_callers=["code_execution_20250825"]), make_tool("b", allowed_callers=["direct"])]
    translation = translate(ask(tools), target, strict=True)
    assert list_names(translation.call, target) == ["a", "b"]
    losses = [(loss.where, loss.kind) for loss in translation.losses if "callers" in loss.where]
    assert losses == [("/tools/0/allowed_callers", "dropped")]


@pytest.mark.parametrize("target", ["chat", "gemini", "messages"])
def test_a_tool_for_openais_programs_is_called_directly_and_that_is_reported(target):
    function = {"type": "function", "name": "a", "parameters": {"type": "object"}, "strict": False}
    tools = [{"type": "programmatic_tool_calling"}, {**function, "allowed_callers": ["programmatic"]}]
    body = {"model": "m", "input": "q", "tools": tools}
    translation = translate(body, target, source="responses", strict=True)
    assert list_names(translation.call, target) == ["a"]
    assert [loss.where for loss in translation.losses] == ["/tools/0", "/tools/1/allowed_callers"]


def test_the_caller_of_a_call_in_the_history_is_an_informational_loss():
    use = {"type": "tool_use", "id": "c1", "name": "a", "input": {}}
    use["caller"] = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    translation = translate(ask([make_tool("a")], turns), "chat", strict=True)
    assert {loss.grade for loss in translation.losses} == {"informational"}
