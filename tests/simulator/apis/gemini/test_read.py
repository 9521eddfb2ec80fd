import pytest

from dragoman.simulator.apis.conversation import Call, RequestResult, RequestTool, RequestToolChoice, RequestTurn
from simulator.apis.gemini.asking import (
    OLD,
    WEATHER,
    build_request,
    call,
    model,
    require_accepted,
    result,
    situation,
    user,
)

SKIP = "skip_thought_signature_validator"
OBJECT = {"type": "OBJECT", "properties": {"it": {"type": "STRING", "nullable": True, "enum": ["a"]}}}


def ask(body, given=None):
    return require_accepted(body, given).model_request


def test_a_conversation_is_read_as_turns():
    body = build_request(
        user("Weather", " in Paris?"),
        model({"text": "hidden", "thought": True}, "Let me see.", call(signature=SKIP, id="c1")),
        user(result(id="c1")),
        systemInstruction={"parts": {"text": "Be brief."}},
    )
    assert ask(body).turns == (
        RequestTurn(role="system", text="Be brief."),
        RequestTurn(role="user", text="Weather in Paris?"),
        RequestTurn(
            role="assistant",
            text="Let me see.",
            calls=(Call(id="c1", name="get_weather", arguments={"city": "Paris"}),),
        ),
        RequestTurn(role="user", results=(RequestResult(call_id="c1", name="get_weather", text="18C"),)),
    )


def test_results_without_ids_answer_the_calls_in_their_order():
    body = build_request(
        user("a"), model(call("f"), call("g")), user(result("f"), result("g", response={"error": "off"})), user("b")
    )
    turns = ask(body, situation(OLD)).turns
    assert [made.call_id for made in turns[2].results] == [made.id for made in turns[1].calls]
    assert [(made.text, made.failed) for made in turns[2].results] == [("18C", False), ("off", True)]
    assert turns[2].text == "b"


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"output": {"sky": "grey"}}, '{"sky": "grey"}', False),
        ({"result": "x"}, '{"result": "x"}', False),
        ({"error": {"code": 5}}, '{"code": 5}', True),
        ({"output": "fine", "error": ""}, "fine", False),
        ({}, "{}", False),
    ],
)
def test_a_result_is_its_output_its_error_or_all_of_it(response, text, failed):
    body = build_request(user("a"), model(call(signature=SKIP)), user(result(response=response)))
    [made] = ask(body).turns[-1].results
    assert (made.text, made.failed) == (text, failed)


def test_media_are_seen_by_their_type_also_within_results():
    image = {"inlineData": {"mimeType": "image/png", "data": ""}}
    body = build_request(
        user("a", image, {"fileData": {"fileUri": "https://example.com/a", "mimeType": "application/pdf"}}),
        model(call(signature=SKIP)),
        user(result(parts=[image])),
    )
    turns = ask(body).turns
    assert (turns[0].media, turns[2].media) == (("image/png", "application/pdf"), ("image/png",))


def test_tools_are_functions_searches_and_others():
    tools = [
        {"functionDeclarations": [WEATHER, {"name": "g", "parameters": OBJECT}, {"name": "h"}]},
        {"googleSearch": {}},
        {"codeExecution": {}},
    ]
    given = build_request(tools=tools, toolConfig={"includeServerSideToolInvocations": True})
    assert ask(given).tools == (
        RequestTool(name="get_weather", description="Current weather", schema=WEATHER["parametersJsonSchema"]),
        RequestTool(
            name="g", schema={"type": "object", "properties": {"it": {"type": ["string", "null"], "enum": ["a"]}}}
        ),
        RequestTool(name="h", schema={"type": "object"}),
        RequestTool(name="google_search", kind="search"),
        RequestTool(name="code_execution", kind="other"),
    )


@pytest.mark.parametrize(
    ("calling", "choice"),
    [
        ({}, RequestToolChoice()),
        ({"mode": "AUTO"}, RequestToolChoice()),
        ({"mode": "none"}, RequestToolChoice(mode="none")),
        (
            {"mode": "ANY", "allowed_function_names": ["get_weather"]},
            RequestToolChoice(mode="required", names=("get_weather",)),
        ),
        ({"mode": "VALIDATED"}, RequestToolChoice(mode="validated")),
    ],
)
def test_modes_are_choices(calling, choice):
    assert ask(build_request(toolConfig={"functionCallingConfig": calling})).choice == choice


def test_how_to_write_is_read():
    config = {
        "maxOutputTokens": 9,
        "stopSequences": ["END"],
        "seed": 5,
        "responseMimeType": "application/json",
        "responseSchema": {**OBJECT, "required": ["it"], "description": "d"},
    }
    read = ask({"contents": [user("a")], "generationConfig": config})
    assert (read.max_tokens, read.stop, read.seed, read.candidates) == (9, ("END",), 5, 1)
    assert read.output_schema == {
        "type": "object",
        "description": "d",
        "properties": {"it": {"type": ["string", "null"], "enum": ["a"]}},
        "required": ["it"],
    }


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({}, None),
        ({"responseMimeType": "text/plain"}, None),
        ({"responseMimeType": "application/json"}, {}),
        ({"responseMimeType": "application/json", "responseJsonSchema": {"type": "array"}}, {"type": "array"}),
        (
            {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["a", "b"]}},
            {"type": "string", "enum": ["a", "b"]},
        ),
        (
            {
                "responseMimeType": "application/json",
                "responseSchema": {"type": "INTEGER", "format": "enum", "enum": ["1", "2"]},
            },
            {"type": "integer", "format": "enum", "enum": [1, 2]},
        ),
    ],
)
def test_the_schema_of_the_answer_is_read(config, schema):
    assert ask({"contents": [user("a")], "generationConfig": config}).output_schema == schema


def test_a_schema_of_vertex_may_refer_within_itself():
    schema = {"type": "OBJECT", "properties": {"it": {"ref": "#/defs/A"}}, "defs": {"A": {"type": "STRING"}}}
    config = {"responseMimeType": "application/json", "responseSchema": schema}
    read = ask({"contents": [user("a")], "generationConfig": config}, situation(vertex=True)).output_schema
    assert read["properties"]["it"] == {"$ref": "#/$defs/A"}
    assert read["$defs"] == {"A": {"type": "string"}}


@pytest.mark.parametrize(
    ("name", "config", "thinks"),
    [
        ("gemini-3.8-flash", {}, True),
        ("gemini-2.5-flash", {}, True),
        ("gemini-2.5-flash", {"thinkingConfig": {"thinkingBudget": 0}}, False),
        ("gemini-2.0-flash", {}, False),
    ],
)
def test_models_think_from_2_5_on_unless_disabled(name, config, thinks):
    assert ask({"contents": [user("a")], "generationConfig": config}, situation(name)).thinks is thinks
