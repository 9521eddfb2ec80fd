"""Each rewrite rule in isolation: what it changes, and that all other bytes stay the same."""

import json

import pytest

from dragoman.intercept.document import GeminiDocument
from dragoman.intercept.history_rules import insert_results, remove_prompt, restore_conversation
from dragoman.intercept.plan import CallerTools, CapturedToolCall, Group, RewritePlan, digest_of
from dragoman.intercept.replies import TurnRequest, parse_turn_request
from dragoman.intercept.rewrite import RULES, inject_tools, rewrite_request, set_instructions, set_model, strip_tools

MARK = "dt-0123456789abcdef"
OTHER = "dt-fedcba9876543210"
PART = b'{ "functionCall" : {"name":"look","args":{"a": 1.0}}, "thoughtSignature":"c2ln" }'
RESULT = b'{"functionResponse":{"name":"look","response":{"result":"rain"}}}'
TOOLS = CallerTools(objects=(b'{"functionDeclarations":[{"name":"look"}]}',), names=frozenset({"look"}))


def group(mark=MARK, **more):
    call = CapturedToolCall(id=f"c-{mark}", name="look", part=PART)
    return Group(mark=mark, calls=(call,), **{"results": (RESULT,), **more})


def plan(*groups, **more):
    return RewritePlan(placeholder="Wait ({id}).", prompt="go on", groups={one.mark: one for one in groups}, **more)


def user(*texts):
    return {"role": "user", "parts": [{"text": text} for text in texts]}


def model(*parts):
    return {"role": "model", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def change(rule, body, with_plan, *, wrapped=False):
    """Apply one rule; return what it says and what comes out."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    document = GeminiDocument(raw, wrapped=wrapped)
    did = rule(document, with_plan)
    written = document.encode()
    assert did or written == raw
    return did, json.loads(written)


@pytest.mark.parametrize("rule", [rule for _, rule in RULES], ids=[name for name, _ in RULES])
def test_no_rule_does_anything_without_a_reason(rule):
    body = b'{ "contents" : [ {"parts":[{"text":"hi"}]} ],\n "tools":[{"googleSearch":{}}], "odd": 1e400 }'
    did, _ = change(
        rule, json.dumps({"contents": [user("hi")], "tools": [{"googleSearch": {}}]}).encode(), RewritePlan()
    )
    assert not did
    document = GeminiDocument(body)
    assert not rule(document, RewritePlan())
    assert document.encode() == body


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "in the envelope"])
def test_untouched_bytes_stay_untouched_around_what_is_changed(wrapped):
    inner = b'{ "contents" : [ {"parts":[{"text":"h\\u00e9"}]} ],\r\n  "x" : 1.50, "tools" : [ ],"y":[ 1 ] }'
    body = b'{"model":"m" , "request": ' + inner + b', "z": 2}' if wrapped else inner
    document = GeminiDocument(body, wrapped=wrapped)
    assert inject_tools(document, RewritePlan(tools=TOOLS))
    expected = body.replace(b'"tools" : [ ]', b'"tools" : [' + TOOLS.objects[0] + b"]")
    assert document.encode() == expected


OWN = [
    {"functionDeclarations": [{"name": "read"}, {"name": "write"}]},
    {"googleSearch": {}},
    {"function_declarations": [{"name": "look"}]},
]


@pytest.mark.parametrize(
    ("strip", "left"),
    [
        ("all", None),
        ("none", [OWN[0], OWN[1]]),
        (("write", "googleSearch"), [{"functionDeclarations": [{"name": "read"}]}]),
        (("read", "write"), [OWN[1]]),
        (("unknown",), [OWN[0], OWN[1]]),
    ],
)
def test_tools_are_removed_by_name_and_those_with_the_callers_names_always(strip, left):
    _, result = change(strip_tools, {"contents": [], "tools": OWN}, RewritePlan(tools=TOOLS, strip=strip))
    assert result.get("tools") == left


def test_the_function_calling_config_is_removed_if_no_tools_are_left():
    body = {"tool_config": {"functionCallingConfig": {"mode": "ANY"}, "retrievalConfig": {"languageCode": "de"}}}
    _, result = change(strip_tools, body, RewritePlan(tools=TOOLS))
    assert result == {"tool_config": {"retrievalConfig": {"languageCode": "de"}}}


def test_functions_of_both_sides_are_in_one_list_and_the_callers_choice_applies():
    tools = CallerTools(objects=(*TOOLS.objects, b'{"googleSearch":{}}'), names=TOOLS.names, config=b'{"mode":"ANY"}')
    body = {
        "tools": [{"urlContext": {}}, {"function_declarations": [{"name": "own"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE", "streamFunctionCallArguments": True}, "x": 1},
    }
    _, result = change(inject_tools, body, RewritePlan(tools=tools))
    assert result == {
        "tools": [
            {"urlContext": {}},
            {"function_declarations": [{"name": "own"}, {"name": "look"}]},
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}, "x": 1},
    }


def test_calls_come_whole_also_where_the_client_wants_pieces():
    body = {"toolConfig": {"functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True}}}
    _, result = change(inject_tools, body, RewritePlan(tools=TOOLS))
    assert result["toolConfig"] == {"functionCallingConfig": {"mode": "AUTO"}}


CALL, ANSWER = json.loads(PART), {"role": "user", "parts": [json.loads(RESULT)]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([user("q"), model(f"Wait ({MARK}).")], [user("q"), model(CALL), ANSWER]),
        ([user("q"), model(f"Wait ({MARK})."), user("go on")], [user("q"), model(CALL), ANSWER, user("go on")]),
        ([user("q"), model(f"Well. Wait ({MARK}). So."), user("x")], [user("q"), model("Well. ", CALL, " So."), ANSWER, user("x")]),
        ([user("q"), model("Well.", f"Wait\n  ({MARK}).")], [user("q"), model("Well.", CALL), ANSWER]),
        ([user("q"), model("Well."), model(f"Wait ({MARK})."), model(" "), user("x")], [user("q"), model("Well."), model(CALL), model(" "), ANSWER, user("x")]),
        ([user("q"), model(f"Wait ({MARK})."), user("a"), model(f"Wait ({MARK})."), user("b")], [user("q"), model(CALL), ANSWER, user("a"), user("b")]),
        ([user("q"), model(f"Wait ({OTHER})."), user("a")], None),
        ([user(f"Wait ({MARK}).")], None),
    ],
    ids=["at the end", "before our prompt", "among words", "laid out anew", "in pieces", "told again", "not ours", "not the model's"],
)  # fmt: skip
def test_a_placeholder_becomes_calls_and_their_results_follow(before, after):
    did, result = change(insert_results, {"contents": before}, plan(group()))
    assert (did, result["contents"]) == (after is not None, after or before)


def test_calls_are_put_in_byte_for_byte():
    document = GeminiDocument(json.dumps({"contents": [model(f"Wait ({MARK}).")]}).encode())
    assert insert_results(document, plan(group()))
    assert PART in document.encode()
    assert RESULT in document.encode()


@pytest.mark.parametrize("more", [{"results": None}, {"is_given_up": True}], ids=["without results", "given up"])
def test_a_placeholder_without_results_stays_what_it_is(more):
    did, _ = change(insert_results, {"contents": [user("q"), model(f"Wait ({MARK})."), user("x")]}, plan(group(**more)))
    assert not did


def test_two_placeholders_each_have_their_own_results():
    contents = [user("q"), model(f"Wait ({MARK})."), user("go on"), model(f"Wait ({OTHER})."), user("go on")]
    _, result = change(insert_results, {"contents": contents}, plan(group(), group(OTHER)))
    assert result["contents"] == [user("q"), model(CALL), ANSWER, user("go on"), model(CALL), ANSWER, user("go on")]


def test_results_of_program_and_caller_are_in_the_order_of_the_calls():
    own = {"functionCall": {"name": "own", "id": "o"}}
    result = {"functionResponse": {"name": "own", "id": "o", "response": {}}}
    contents = [model(own, f"Wait ({MARK})."), {"role": "user", "parts": [{"text": "and"}, result]}]
    _, output = change(insert_results, {"contents": contents}, plan(group()))
    assert output["contents"] == [
        model(own, CALL),
        {"role": "user", "parts": [result, json.loads(RESULT)]},
        {"role": "user", "parts": [{"text": "and"}]},
    ]


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ([user("go on")], []),
        ([user("q")], []),
        ([user("context"), user("and more")], [user("and more")]),
        ([user("context", "go on")], []),
        ([], []),
    ],
    ids=["our prompt", "a retry", "a new prompt", "our prompt behind what stands before all", "nothing"],
)
def test_a_conversation_that_the_client_forgot_is_put_back(now, after):
    before = [user("context"), user("q")]
    one = group(before=json.dumps(before).encode(), last_turn_digest=digest_of(json.dumps(user("q")).encode()))
    _, result = change(restore_conversation, {"contents": now}, plan(one, ready=one))
    assert result["contents"] == [*before, model(CALL), ANSWER, *after]


def test_a_conversation_is_not_inserted_if_the_calls_are_already_there():
    one = group(before=b"[]")
    document = GeminiDocument(json.dumps({"contents": [user("q"), model(f"Wait ({MARK}).")]}).encode())
    assert insert_results(document, plan(one, ready=one))
    assert not restore_conversation(document, plan(one, ready=one))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([user("q"), ANSWER, user("go on")], [user("q"), ANSWER]),
        (
            [user("q"), ANSWER, user(" go on\n"), model("done"), user("x")],
            [user("q"), ANSWER, model("done"), user("x")],
        ),
        ([user("q"), ANSWER, user("go on", "and this")], [user("q"), ANSWER, user("and this")]),
        ([user("q"), model("words"), user("go on")], None),
        ([user("go on")], None),
        ([user("q"), model("words"), user("go on"), model("done"), user("x")], None),
        ([user("go on"), model("done"), user("x")], None),
        ([user("q"), model("go on"), user("please go on")], None),
    ],
    ids=[
        "last",
        "in between",
        "beside others",
        "else the model had the last word",
        "alone",
        "else the model spoke twice",
        "else the model spoke first",
        "words like it",
    ],
)
def test_the_placeholder_prompt_is_removed_unless_it_is_the_only_user_text(before, after):
    did, result = change(remove_prompt, {"contents": before}, plan(group()))
    assert (did, result["contents"]) == (after is not None, after or before)


@pytest.mark.parametrize(
    ("body", "wrapped", "after"),
    [
        ({"model": "models/a"}, False, {"model": "models/new"}),
        ({"model": "a", "request": {}}, True, {"model": "new", "request": {}}),
        ({"model": "new", "request": {}}, True, None),
        ({"contents": []}, False, None),
    ],
)
def test_another_model_is_named_where_one_is(body, wrapped, after):
    did, result = change(set_model, body, RewritePlan(model="new"), wrapped=wrapped)
    assert (did, result) == (after is not None, after or body)


@pytest.mark.parametrize(
    ("body", "mode", "after"),
    [
        ({}, "append", {"systemInstruction": {"parts": [{"text": "S"}]}}),
        ({"system_instruction": {"role": "user", "parts": [{"text": "a"}]}}, "append", {"system_instruction": {"role": "user", "parts": [{"text": "a"}, {"text": "S"}]}}),
        ({"systemInstruction": {"parts": {"text": "a"}}}, "append", {"systemInstruction": {"parts": [{"text": "a"}, {"text": "S"}]}}),
        ({"systemInstruction": "a"}, "append", {"systemInstruction": {"parts": [{"text": "a"}, {"text": "S"}]}}),
        ({"systemInstruction": "a"}, "replace", {"systemInstruction": {"parts": [{"text": "S"}]}}),
    ],
)  # fmt: skip
def test_instructions_are_added_or_replaced(body, mode, after):
    did, result = change(set_instructions, body, RewritePlan(system="S", system_mode=mode))
    assert (did, result) == (True, after)


@pytest.mark.parametrize(
    ("target", "turn"),
    [
        ("/v1beta/models/m:generateContent", TurnRequest(model="m")),
        ("/v1beta/models/m:streamGenerateContent?alt=sse&key=k", TurnRequest(model="m", stream=True, events=True)),
        (
            "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
            TurnRequest(model="m", stream=True),
        ),
        ("/v1internal:generateContent", TurnRequest(wrapped=True)),
        ("/v1internal:streamGenerateContent?alt=sse", TurnRequest(wrapped=True, stream=True, events=True)),
        ("/v1beta/tunedModels/m:generateContent", TurnRequest(model="m")),
        ("/v1/projects/p/locations/l/endpoints/7:streamGenerateContent", TurnRequest(model="7", stream=True)),
        ("/v1beta/models/m%3AstreamGenerateContent?$alt=sse", TurnRequest(model="m", stream=True, events=True)),
        ("/v1beta/files?name=/models/m:generateContent", None),
        ("/v1beta/models/m:countTokens", None),
        ("/v1internal:loadCodeAssist", None),
        ("/v1beta/models", None),
        ("/v1beta/files/models/m:generateContentX", None),
    ],
)
def test_turns_of_the_model_are_known_by_their_path(target, turn):
    assert parse_turn_request("POST", target) == turn
    assert parse_turn_request("GET", target) is None


def test_the_path_names_another_model_too():
    going = rewrite_request(
        "/v1beta/models/a:generateContent?x=1", b'{"contents":[]}', TurnRequest(model="a"), RewritePlan(model="b")
    )
    assert (going.target, going.rules) == ("/v1beta/models/b:generateContent?x=1", ("model replaced",))
    tuned = "/v1beta/tunedModels/a:generateContent"
    assert rewrite_request(tuned, b'{"contents":[]}', TurnRequest(model="a"), RewritePlan(model="b")).target == tuned


@pytest.mark.parametrize(
    "config",
    [{"responseMimeType": "application/json"}, {"response_mime_type": "text/x.enum"}, {"responseJsonSchema": {}}],
)
def test_a_request_for_json_gets_no_tools(config):
    body = json.dumps({"contents": [], "generationConfig": config}).encode()
    going = rewrite_request(
        "/v1beta/models/a:generateContent", body, TurnRequest(model="a"), RewritePlan(tools=TOOLS, system="S")
    )
    assert (going.is_side_request, going.body) == (True, body)
