import itertools
import json
import random

import pytest

import shelf
from dragoman.simulator.apis.gemini import API
from dragoman.simulator.apis.rule import Violation
from simulator.apis.gemini.asking import (
    NEW,
    OLD,
    SIGNER,
    WEATHER,
    build_request,
    call,
    judge,
    load_recordings,
    model,
    recordings,
    require_accepted,
    require_rejected,
    result,
    shuffle,
    situation,
    user,
)
from simulator.apis.gemini.mutators import CIRCUMSTANCES, MUTATORS, UNBROKEN

SKIP = "skip_thought_signature_validator"
CASES = 40
VERTEX = situation(OLD, vertex=True)
FUNCTION = {"name": "f"}


def is_accepted_under(rule):
    """Return recorded bodies that are accepted where a rule applies, with their contexts."""
    for one in shuffle(recordings()):
        given = CIRCUMSTANCES.get(rule.name) or load_recordings(one)
        if one["op"] == "generate" and not isinstance(judge(one["request"], given), Violation):
            yield one["request"], given


@shelf.needs_shelf
@pytest.mark.parametrize("rule", [one for one in API.rules if one.name not in UNBROKEN], ids=lambda rule: rule.name)
def test_what_breaks_a_rule_is_refused_by_its_name(rule):
    chance = random.Random(rule.name)  # noqa: S311  reproducible on purpose
    broken = (
        (changed, given) for body, given in is_accepted_under(rule) for changed in MUTATORS[rule.name](body, chance)
    )
    seen = 0
    for changed, given in itertools.islice(broken, CASES):
        found = API.accept(json.dumps(changed).encode(), given, SIGNER)
        assert isinstance(found, Violation), changed
        assert found.rule == rule.name, found
        seen += 1
    assert seen


def test_every_rule_has_a_mutator():
    assert MUTATORS.keys() == {rule.name for rule in API.rules}


def test_rules_have_unique_names_and_a_source():
    names = [rule.name for rule in API.rules]
    assert len(set(names)) == len(names)
    assert all(name.startswith("gemini.") for name in names)
    assert all(rule.says.endswith(".") and rule.source for rule in API.rules)
    assert set(CIRCUMSTANCES) <= set(names)


def declare(**members):
    return {"contents": [user("Hi.")], "tools": [{"functionDeclarations": [{"name": "f", **members}]}]}


def parse_typed(**schema):
    return declare(parameters={"type": "OBJECT", "properties": {"it": schema}})


def tree(**members):
    children = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    node = {"type": "object", "properties": {"children": children}, **members}
    return {"type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}


def wordy(count):
    words = [f"word {number}" for number in range(count)]
    return {"type": "object", "properties": {"it": {"type": "string", "enum": words}}}


def show_result(uri):
    shown = [{"fileData": {"mimeType": "application/pdf", "fileUri": uri}}]
    return build_request(user("a"), model(call(signature=SKIP)), user(result(parts=shown)))


def configure(**config):
    return {"contents": [user("Hi.")], "generationConfig": config}


@pytest.mark.parametrize(
    ("body", "given", "words"),
    [
        ({"contents": []}, None, "contents is not specified"),
        ({}, VERTEX, "at least one contents field is required"),
        (
            {"contents": [{"role": "assistant", "parts": [{"text": "a"}]}]},
            None,
            "Please use a valid role: user, model.",
        ),
        ({"contents": [{"parts": [{"text": "a"}]}]}, VERTEX, "Please use a valid role: user, model."),
        ({"contents": [{"role": "user", "parts": []}]}, None, "contents[0].parts: contents.parts must not be empty."),
        ({"contents": [user({})]}, None, "contents[0].parts[0].data: required oneof field 'data' must have one"),
        ({"contents": [user("")]}, VERTEX, "it has an empty text parameter"),
        (
            {"contents": [user({"inlineData": {"mimeType": "image/gif", "data": ""}})]},
            None,
            "Unsupported MIME type: im",
        ),
        ({"contents": [user({"inlineData": {"mimeType": "image/gif", "data": ""}})]}, VERTEX, "value image/gif, which"),
        ({"contents": [user({"fileData": {"fileUri": "gs://a/b"}})]}, None, "Unsupported file uri: gs://a/b"),
        (declare(name="9"), None, "function_declarations[0].name: Invalid function name. Must start with a letter"),
        (
            build_request(tools=[{"functionDeclarations": [FUNCTION, FUNCTION]}]),
            None,
            "Duplicate function declaration found: f",
        ),
        (declare(parameters={"type": "OBJECT"}, parametersJsonSchema={}), None, "mutually exclusive with parameters"),
        (
            build_request(tools=[{"functionDeclarations": [FUNCTION]}, {"googleSearch": {}}]),
            situation(OLD),
            "Tool use with fun",
        ),
        (
            build_request(tools=[{"functionDeclarations": [FUNCTION], "googleSearch": {}}]),
            None,
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.",
        ),
        (
            {"contents": [user("a")], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            None,
            "Function calling config is set without function_declarations.",
        ),
        (
            build_request(
                toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["get_weather"]}}
            ),
            None,
            "Please set allowed_function_names only when function calling mode is ANY.",
        ),
        (
            build_request(toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["other"]}}),
            None,
            "allowed_function_names[0]: function `other` is not declared.",
        ),
        (parse_typed(type="ARRAY"), None, "parameters.properties[it].items: missing field."),
        (parse_typed(type="INTEGER", enum=["1"]), None, "parameters.properties[it].enum: only allowed for STRING type"),
        (parse_typed(type="STRING", enum=[""]), None, "properties[it].enum[0]: cannot be empty"),
        (parse_typed(type="STRING", format="uri"), None, "only 'enum' and 'date-time' are supported for STRING type"),
        (
            parse_typed(anyOf=[{"type": "STRING"}], description="x"),
            VERTEX,
            "When using any_of, it must be the only field set.",
        ),
        (
            declare(parameters={"type": "OBJECT", "required": ["it"]}),
            None,
            "function_declarations[0].parameters.required[0]: property is not defined",
        ),
        (
            declare(parameters={"type": "OBJECT", "properties": {}}),
            situation("gemini-1.5-pro"),
            "parameters.properties: should be non-empty for OBJECT type",
        ),
        (
            {"contents": [user(*[{"inlineData": {"mimeType": "image/png", "data": ""}}] * 4100)]},
            None,
            "The input token count (1057805) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (
            {"contents": [user({"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}})]},
            VERTEX,
            "it has an unsupported file uri: https://generativelanguage.googleapis.com/v1beta/files/a.",
        ),
        (declare(parametersJsonSchema=tree(required=["children"])), None, "only supported within non-required prop"),
        (
            {**declare(parametersJsonSchema=wordy(6000)), "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            None,
            "The specified schema produces a constraint that has too many states for serving.",
        ),
        (
            configure(responseMimeType="application/json", responseJsonSchema=wordy(6000)),
            None,
            "The specified schema produces a constraint that has too many states for serving.",
        ),
        (configure(temperature=3), None, "temperature must be in the range [0.0, 2.0]."),
        (configure(presencePenalty=1), None, "Penalty is not enabled for this model"),
        (configure(candidateCount=2), None, "Multiple candidates is not enabled for this model"),
        (
            configure(thinkingConfig={"thinkingLevel": "LOW"}),
            situation(OLD),
            "Thinking level is not supported for this",
        ),
        (configure(thinkingConfig={"thinkingLevel": "MINIMAL"}), None, "Thinking level MINIMAL is not supported"),
        (
            configure(thinkingConfig={"thinkingLevel": "LOW", "thinkingBudget": 5}),
            None,
            "You can only set only one of thinking budget and thinking level.",
        ),
        (
            configure(thinkingConfig={"thinkingBudget": 0}),
            situation("gemini-2.5-pro"),
            "Budget 0 is invalid. This model only works in thinking mode.",
        ),
        (
            {**build_request(), "generationConfig": {"responseMimeType": "application/json"}},
            situation(OLD),
            "Function calling with a response mime type: 'application/json' is unsupported",
        ),
        (
            {**build_request(), "cachedContent": "cachedContents/a"},
            None,
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.",
        ),
        (
            build_request(model(call(signature=SKIP)), user(result())),
            None,
            "Please ensure that function call turn comes immediat",
        ),
        (
            build_request(user("a"), model("b"), user(result())),
            None,
            "Please ensure that function response turn comes immediate",
        ),
        (
            build_request(user("a"), model("b")),
            None,
            "Requests ending with a model turn are not supported unless the last part",
        ),
        (
            build_request(user("a"), model(call(signature=SKIP)), user(result(), "And?")),
            None,
            "Requests ending with a model turn are not supported unless the last part",
        ),
        (
            build_request(user("a"), model(call(signature=SKIP), call()), user(result())),
            None,
            "Please ensure that the number of function response parts is equal to the number of function call parts of",
        ),
        (
            build_request(user("a"), model(call(signature=SKIP), call()), user(result()), user(result())),
            None,
            "Please ensure that the number of function response parts is equal to the number of function call parts of",
        ),
        (show_result("gs://bucket/a.pdf"), None, "Unsupported file uri: gs://bucket/a.pdf"),
        (
            show_result("https://generativelanguage.googleapis.com/v1beta/files/a"),
            situation(vertex=True),
            "it has an unsupported file uri",
        ),
        (
            build_request(user("a"), model(call(signature=SKIP, id="1")), user(result(id="2"))),
            None,
            "Please ensure that every function response has the id and the name of its function call",
        ),
        (
            build_request(user("a"), model(call()), user(result())),
            None,
            "Function call is missing a thought_signature in functionCall parts.",
        ),
        (
            build_request(user("a"), model(call()), user(result())),
            situation(vertex=True),
            "function call `default_api:get_weather` in the `2.` content block is missing a `thought_signature`",
        ),
    ],
)
def test_errors_have_googles_wording(body, given, words):
    found = require_rejected(body, given)
    assert words in found.message
    assert found.status == 400


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ({"contents": [{"parts": [{"text": "Without a role."}]}]}, situation()),
        ({"contents": [user("")]}, situation()),
        ({"contents": [user("a"), {"role": "model"}, user("b")]}, situation(OLD)),
        ({"contents": [user("a"), model("b")]}, situation("gemini-3.5-flash")),
        (build_request(user("a"), model(call()), user(result(), "And?")), situation(OLD)),
        (build_request(user("a"), model(call(signature=SKIP, id="1")), user(result())), situation()),
        (build_request(user("a"), model(call(), call()), user(result()), user(result())), situation(OLD)),
        (show_result("https://generativelanguage.googleapis.com/v1beta/files/a"), situation()),
        (show_result("gs://bucket/a.pdf"), situation(vertex=True)),
        (build_request(user("a"), model(call(signature=SKIP)), {**user(result()), "role": "function"}), situation()),
        (build_request(user("a"), model(call(signature=SKIP)), {**user(result()), "role": "model"}), situation()),
        (build_request(tools=[{"functionDeclarations": [WEATHER]}, {"googleSearch": {}}]), situation(vertex=True)),
        (parse_typed(type="STRING", format="uri"), VERTEX),
        (parse_typed(type="INTEGER", format="enum", enum=["1", "2"]), situation()),
        (parse_typed(anyOf=[{"type": "STRING"}], description="x"), situation()),
        (declare(parameters={"type": "OBJECT", "properties": {}}), situation()),
        (declare(name="ns.part:of-it_" + "x" * 113), situation()),
        (declare(parametersJsonSchema=tree()), situation()),
        (declare(parametersJsonSchema=wordy(6000)), situation()),
        (declare(parameters={"type": "OBJECT", "properties": {"a": {"ref": "#/defs/A"}}, "defs": {"A": {}}}), VERTEX),
        (configure(temperature=2, topP=1, topK=40.0, candidateCount=1), situation()),
        (configure(presencePenalty=1, candidateCount=8), situation("gemini-3.5-flash")),
        (configure(thinkingConfig={"thinkingBudget": 1000}), situation()),
        (configure(thinkingConfig={"thinkingBudget": -1, "includeThoughts": True}), situation("gemini-2.5-pro")),
        (configure(thinkingConfig={"thinkingLevel": "minimal"}), situation("gemini-3.6-flash")),
        ({**build_request(), "generationConfig": {"responseMimeType": "application/json"}}, situation()),
    ],
)
def test_what_google_takes_is_taken(body, given):
    require_accepted(body, given)


def test_strictness_follows_the_generation():
    ending = build_request(user("a"), model("b"))
    for name in ("gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-flash-latest", "gemini-4-argon", "unheard-of"):
        assert require_rejected(ending, situation(name)).rule == "gemini.last-turn"
    for name in ("gemini-2.5-pro", "gemini-3-flash-preview", "gemini-3.5-flash", "models/gemini-pro-latest"):
        require_accepted(ending, situation(name))


def test_results_apart_are_refused_from_gemini_3_on():
    apart = build_request(user("a"), model(call(signature=SKIP), call()), user(result()), user(result()))
    for name in ("gemini-3-flash", NEW):
        found = require_rejected(apart, situation(name))
        assert (found.rule, found.where) == ("gemini.results-together", "/contents/3/parts/0")
    require_accepted(apart, situation(OLD))
    require_accepted(build_request(user("a"), model(call(signature=SKIP), call()), user(result(), result())))


def test_a_mode_needs_functions_on_ai_studio_before_gemini_3():
    modes = {"functionCallingConfig": {"mode": "AUTO"}}
    searching = build_request(tools=[{"googleSearch": {}}], toolConfig=modes)
    assert require_rejected(searching, situation(OLD)).rule == "gemini.mode-without-tools"
    for given in (situation(NEW), VERTEX):
        require_accepted(searching, given)
    assert (
        require_rejected(build_request(tools=[], toolConfig=modes), situation(NEW)).rule == "gemini.mode-without-tools"
    )


def test_the_place_of_a_fault_is_a_pointer():
    assert require_rejected({"contents": [user("a", {})]}).where == "/contents/0/parts/1"
    body = parse_typed(type="OBJECT", properties={"a/b": {"type": "ARRAY"}})
    assert require_rejected(body).where == "/tools/0/functionDeclarations/0/parameters/properties/it/properties/a~1b"
    assert (
        require_rejected(build_request(user("a"), model(call()), user(result())), situation(NEW)).where
        == "/contents/1/parts/0"
    )
