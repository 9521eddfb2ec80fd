"""Lists of tools that may be used, where they have a vendor's own among them or say no mode."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import encode, loss_pointers

MODELS = {"chat": "gpt-5.2", "responses": "gpt-5.6", "messages": "claude-opus-5", "gemini": "gemini-3-pro"}
F, G = ({"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False} for name in "fg")
SEARCH = {"type": "web_search"}
CODE = {"type": "code_interpreter", "container": {"type": "auto"}}


def translate(source, target, body):
    result = translate_request(Call(encode(body)), source, target, model=MODELS[target])
    return json.loads(result.call.body), loss_pointers(result.losses)


def list_allowed(target, *listed, mode="auto", tools=(F, G, SEARCH, CODE)):
    choice = {"type": "allowed_tools", "mode": mode, "tools": list(listed)}
    return translate("responses", target, {"input": "hi", "tools": list(tools), "tool_choice": choice})


def list_tool_names(body):
    """The names of the tools of a request, functions and a vendor's own."""
    tools = []
    for tool in body.get("tools", ()):
        declared = tool.get("functionDeclarations")
        tools.extend([one["name"] for one in declared] if declared else [tool.get("name") or next(iter(tool))])
    return tools


@pytest.mark.parametrize(
    ("target", "listed", "tools"),
    [
        ("messages", [{"type": "function", "name": "f"}], ["f"]),
        ("gemini", [{"type": "function", "name": "f"}], ["f", "g"]),
        ("messages", [{"type": "function", "name": "f"}, SEARCH], ["f", "web_search"]),
        ("gemini", [{"type": "function", "name": "f"}, SEARCH], ["f", "g", "googleSearch"]),
        ("messages", [SEARCH], ["web_search"]),
        ("gemini", [SEARCH], ["googleSearch"]),
        ("gemini", [{"type": "code_interpreter"}], ["codeExecution"]),
        ("messages", [], []),
    ],
)
def test_a_vendors_own_tools_are_sent_only_if_they_are_on_the_list(target, listed, tools):
    body, losses = list_allowed(target, *listed)
    assert sorted(list_tool_names(body)) == sorted(tools)
    gone = {("dropped", f"/tools/{index}") for index, name in enumerate("fg") if name not in tools}
    gone |= {("dropped", "/tools/2")} if SEARCH not in listed else set()
    assert set(losses) >= (gone if tools else {("dropped", "/tools")})
    assert not [where for kind, where in losses if kind == "dropped" and where.startswith("/tool_choice/tools/")]


def test_a_listed_tool_that_is_not_sent_is_reported():
    _, losses = list_allowed("messages", {"type": "function", "name": "f"}, {"type": "mcp", "server_label": "x"})
    assert ("dropped", "/tool_choice/tools/1") in losses


def test_an_entry_matches_the_tool_that_its_fields_identify():
    servers = [{"type": "mcp", "server_label": label, "server_url": "https://a.example"} for label in "xy"]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]}
    body = encode({"input": "hi", "tools": servers, "tool_choice": choice})
    result = translate_request(Call(body), "responses", "messages", model="claude-opus-5")
    reasons = {loss.where: loss.what for loss in result.losses}
    assert reasons["/tools/0"] == "a tool that only its own vendor runs"
    assert reasons["/tools/1"].startswith("tool_choice does not allow it")


@pytest.mark.parametrize("config", [{}, {"mode": "MODE_UNSPECIFIED"}])
@pytest.mark.parametrize("target", ["chat", "responses", "messages"])
def test_names_of_gemini_without_a_mode_are_the_tools_the_model_may_call(target, config):
    declared = [{"name": name, "parametersJsonSchema": {"type": "object"}} for name in "fg"]
    body, losses = translate(
        "gemini",
        target,
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": declared}],
            "toolConfig": {"functionCallingConfig": {**config, "allowedFunctionNames": ["f"]}},
        },
    )
    if target == "messages":
        assert [tool["name"] for tool in body["tools"]] == ["f"]
        assert body["tool_choice"] == {"type": "auto"}
        return
    choice = body["tool_choice"].get("allowed_tools", body["tool_choice"])
    assert (body["tool_choice"]["type"], choice["mode"], len(choice["tools"])) == ("allowed_tools", "auto", 1)
    assert losses == []


def test_what_gemini_may_always_use_is_on_the_list_that_openai_is_given():
    declared = [{"name": name, "parametersJsonSchema": {"type": "object"}} for name in "fg"]
    config = {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": declared}, {"googleSearch": {}}, {"codeExecution": {}}],
        "toolConfig": {"functionCallingConfig": config},
    }
    choice = translate("gemini", "responses", body)[0]["tool_choice"]
    functions = [{"type": "function", "name": name} for name in "fg"]
    natives = [SEARCH, {"type": "code_interpreter"}]
    assert choice == {"type": "allowed_tools", "mode": "required", "tools": [*functions, *natives]}
