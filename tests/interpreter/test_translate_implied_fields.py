"""Fields that state the default, or that are applied to the reply, are no losses; any other value is."""

import pytest

from cases.through import flow, loss_pointers, translate_to

HI = {"messages": [{"role": "user", "content": "hi"}]}
HELLO = {"max_tokens": 1000, **HI}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CLAUDE, GEMINI, GPT = "claude-opus-4-8", "gemini-3.8-flash", "gpt-4.1"


@pytest.mark.parametrize(
    ("implied", "lost"),
    [
        ({"temperature": 1}, {"temperature": 0.9}),
        ({"temperature": 1.0}, {"temperature": 0}),
        ({"presence_penalty": 0}, {"presence_penalty": 0.1}),
        ({"frequency_penalty": 0.0}, {"frequency_penalty": -1}),
        ({"verbosity": "medium"}, {"verbosity": "low"}),
        ({"metadata": {}}, {"metadata": {"a": "b"}}),
    ],
)
@pytest.mark.parametrize(("target", "model"), [("messages", CLAUDE), ("gemini", GEMINI)])
def test_a_value_that_changes_nothing_is_not_missed(implied, lost, target, model):
    request = translate_to("chat", target, {**HI, **implied}, model=model, strict=True)
    assert not request.body.keys() & {*implied}
    (name,) = lost
    assert any(
        where.startswith(f"/{name}")
        for where in loss_pointers(translate_to("chat", target, {**HI, **lost}, model=model))
    )


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("messages", {**HELLO, "thinking": {"type": "disabled"}}),
        ("gemini", {**CONTENTS, "generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
        ("gemini", {**CONTENTS, "generationConfig": {"thinkingConfig": {"includeThoughts": False}}}),
        ("responses", {"input": "hi", "reasoning": {"effort": "none"}}),
    ],
)
def test_disabled_thinking_is_implied_for_a_model_without_thinking(source, body):
    assert translate_to(source, "chat", body, model=GPT, strict=True).losses == ()


def test_hidden_thinking_is_reported_only_if_the_target_may_show_it():
    body = {**HELLO, "thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}}
    assert "/thinking/display" not in loss_pointers(translate_to("messages", "chat", body, model="gpt-5.2"))
    assert "/thinking/display" in loss_pointers(translate_to("messages", "chat", body, model="a-server-of-ones-own"))


@pytest.mark.parametrize("signature", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])
@pytest.mark.parametrize("target", ["chat", "responses", "messages"])
def test_the_placeholder_for_a_missing_signature_is_not_a_signature(signature, target):
    def sign(word):
        call = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": word}
        result = {"functionResponse": {"name": "look", "response": {"output": "sunny"}}}
        turns = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
        return {"contents": [*CONTENTS["contents"], *turns]}

    models = {"chat": GPT, "responses": GPT, "messages": CLAUDE}
    place = "/contents/1/parts/0/thoughtSignature"
    assert place not in loss_pointers(translate_to("gemini", target, sign(signature), model=models[target]))
    assert place in loss_pointers(translate_to("gemini", target, sign("c2lnbmVk"), model=models[target]))


FRAMES = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]},
    {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}},
]


@pytest.mark.parametrize(
    ("options", "actual"), [({"include_usage": True}, True), ({"include_usage": False}, False), (None, False)]
)
def test_a_chat_stream_ends_with_the_usage_only_if_requested(options, actual):
    body = {**HI, "stream": True, **({"stream_options": options} if options else {})}
    request = translate_to("chat", "gemini", body, model=GEMINI, strict=True)
    frames = [frame for frame in flow("gemini", "chat", FRAMES, request).body if isinstance(frame, dict)]
    assert [frame["usage"]["total_tokens"] for frame in frames if frame.get("usage")] == ([5] if actual else [])


@pytest.mark.parametrize(
    ("source", "target", "body"),
    [
        ("chat", "gemini", {**HI, "store": True}),
        ("chat", "messages", {**HI, "store": True}),
        ("chat", "responses", {**HI, "store": True}),
        ("responses", "gemini", {"input": "hi", "store": True}),
    ],
)
def test_what_is_to_be_kept_and_cannot_be_had_again_is_a_loss(source, target, body):
    model = {"gemini": GEMINI, "messages": CLAUDE, "responses": GPT}[target]
    assert loss_pointers(translate_to(source, target, body, model=model)) == {"/store"}


def test_parsed_arguments_of_the_sdk_are_a_loss_only_if_they_differ():
    def make_call(parsed):
        function = {"name": "look", "arguments": '{"city": "Rome"}', "parsed_arguments": parsed}
        call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        return {"messages": [*HI["messages"], call, {"role": "tool", "tool_call_id": "c", "content": "sunny"}]}

    assert translate_to("chat", "messages", make_call({"city": "Rome"}), model=CLAUDE, strict=True).losses == ()
    lost = loss_pointers(translate_to("chat", "messages", make_call({"city": "Bonn"}), model=CLAUDE))
    assert lost == {"/messages/1/tool_calls/0/function/parsed_arguments"}


@pytest.mark.parametrize(("title", "lost"), [("Day", set()), ("Other", {"/response_format/json_schema/name"})])
def test_a_format_name_equal_to_the_schema_title_is_sent(title, lost):
    schema = {"type": "object", "title": title, "properties": {"a": {"type": "string"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "Day", "schema": {**schema, "additionalProperties": False}}}
    request = translate_to("chat", "messages", {**HI, "response_format": form}, model=CLAUDE)
    assert loss_pointers(request) == lost
    assert request.body["output_config"]["format"]["schema"]["title"] == title


def test_tools_that_are_all_strict_are_held_to_their_schemas_by_geminis_mode():
    tool = {"name": "look", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}, "strict": True}
    body = {**HI, "tools": [{"type": "function", "function": tool}]}
    for _ in range(2):  # the second time it is known
        request = translate_to("chat", "gemini", body, model=GEMINI, strict=True)
        assert request.body["toolConfig"]["functionCallingConfig"]["mode"] == "VALIDATED"
