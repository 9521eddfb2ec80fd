"""A request for another model of its own dialect: only the members change that the model rejects."""

import json

import pytest

from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from laws.documents import DIALECTS, requests
from shelf import needs_shelf

PLACEHOLDER = "skip_thought_signature_validator"
HISTORIES = {"messages", "input", "contents"}
OTHERS = {"chat": "gpt-5.6", "responses": "gpt-5", "messages": "claude-opus-5-5", "gemini": "gemini-3.8-flash"}
PARAMETERS = {
    "chat": {
        "model",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "presence_penalty",
        "frequency_penalty",
        "reasoning_effort",
        "reasoning",
        "thinking",
        "enable_thinking",
        "chat_template_kwargs",
        "verbosity",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "prediction",
    },
    "responses": {
        "model",
        "max_output_tokens",
        "temperature",
        "top_p",
        "reasoning",
        "include",
        "top_logprobs",
        "prompt_cache_options",
    },
    "messages": {
        "model",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "thinking",
        "output_config",
        "tool_choice",
        "system",
    },
    "gemini": {"model", "generationConfig", "generation_config"},
}


def drop_signs(value):
    """Return a history without Google's placeholders for the signatures of calls, and without OpenAI's cache marks."""
    if isinstance(value, list):
        return [drop_signs(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {name: item for name, item in value.items() if name != "prompt_cache_breakpoint" and item != PLACEHOLDER}
    return {name: drop_signs(item) for name, item in kept.items()}


def translate(dialect, model, body):
    return translate_request(Call(body, "asked"), dialect, dialect, model=model)


@needs_shelf
@pytest.mark.parametrize("dialect", DIALECTS)
def test_in_recorded_requests_only_parameters_change_and_each_change_is_reported(dialect):
    changed = 0
    for _, document in requests(dialect):
        body = json.dumps(document).encode()
        result = translate(dialect, OTHERS[dialect], body)
        before, after = document, json.loads(result.call.body)
        different = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert different - HISTORIES <= PARAMETERS[dialect]
        for name in different & HISTORIES:
            assert drop_signs(before[name]) == drop_signs(after[name])
        reported = {loss.where.split("/")[1] for loss in result.losses}
        assert different - {"model"} <= reported
        # A second adaptation has nothing left to change.
        again = translate(dialect, OTHERS[dialect], result.call.body)
        assert json.loads(again.call.body) == after
        changed += bool(different - {"model"})
    assert changed


def test_members_keep_the_spelling_of_the_document():
    body = b'{"contents":[],"generation_config":{"thinking_config":{"thinking_budget":9000}}}'
    expected = b'{"contents":[],"generation_config":{"thinking_config":{"thinkingLevel":"HIGH"}}}'
    assert translate("gemini", "gemini-3.8-flash", body).call.body == expected


def test_members_in_an_envelope_of_the_client_are_adapted_where_they_are():
    body = (
        b'{"model":"a","project":"p","request":{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"topP":0.5}}}'
    )
    result = translate_request(Call(body, "a"), "gemini", "gemini", model="gemini-3.8-flash", form="code_assist")
    assert "generationConfig" not in json.loads(result.call.body)["request"]
    assert [loss.where for loss in result.losses] == ["/request/generationConfig"]


def test_a_body_that_cannot_be_parsed_is_left_to_the_vendor():
    body = b'{"model":"a","messages":"none","temperature":"hot"}'
    assert translate("chat", "gpt-5", body).call.body == body.replace(b'"a"', b'"gpt-5"')


def test_only_the_last_turns_of_a_history_are_parsed():
    turns = b'{"role":"user","content":[{"type":"text","text":"x"}]},' * 3
    body = b'{"model":"a","messages":[7,' + turns.rstrip(b",") + b'],"max_tokens":9}'
    expected = body.replace(b'"a"', b'"gpt-5"').replace(b',"max_tokens":9', b',"max_completion_tokens":9')
    assert translate("chat", "gpt-5", body).call.body == expected


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        ({"type": "between_tools"}, {"type": "disabled"}),
        ({"type": "disabled"}, {"type": "disabled"}),
        ({"type": "adaptive", "display": "omitted"}, {"type": "adaptive", "display": "omitted"}),
    ],
)
def test_thinking_that_the_model_accepts_stays(thinking, expected):
    body = json.dumps({"model": "a", "max_tokens": 9, "messages": [], "thinking": thinking}).encode()
    assert json.loads(translate("messages", "claude-opus-5", body).call.body)["thinking"] == expected


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        ("gemini-3-pro", {"thinkingBudget": 9}, {"thinkingBudget": 9}),
        ("gemini-2.5-flash", {"thinkingBudget": -1}, {"thinkingBudget": -1}),
        ("gemini-2.5-flash", {"thinkingBudget": 90000}, {"thinkingBudget": 24576}),
        ("gemini-3-flash", {"thinkingLevel": "minimal"}, {"thinkingLevel": "minimal"}),
        ("gemini-2.0-flash", {"includeThoughts": True}, None),
    ],
)
def test_gemini_thinking_settings_change_only_if_the_model_rejects_them(model, settings, expected):
    body = json.dumps({"contents": [], "generationConfig": {"seed": 1, "thinkingConfig": settings}}).encode()
    config = json.loads(translate("gemini", model, body).call.body)["generationConfig"]
    assert config.get("thinkingConfig") == expected
    assert config["seed"] == 1


@pytest.mark.parametrize("model", ["gpt-5.1", "gpt-5.2", "gpt-5.4"])
def test_models_that_do_not_think_by_default_keep_the_temperature(model):
    for dialect, history in (("chat", "messages"), ("responses", "input")):
        body = json.dumps({"model": "a", history: [], "temperature": 0.2}).encode()
        assert json.loads(translate(dialect, model, body).call.body)["temperature"] == 0.2
        thinks = {"chat": {"reasoning_effort": "low"}, "responses": {"reasoning": {"effort": "low"}}}[dialect]
        body = json.dumps({"model": "a", history: [], "temperature": 0.2, **thinks}).encode()
        assert "temperature" not in json.loads(translate(dialect, model, body).call.body)


LOGPROBS, SEALED = "message.output_text.logprobs", "reasoning.encrypted_content"


@pytest.mark.parametrize(
    ("dialect", "model", "members", "kept", "lost"),
    [
        ("chat", "gpt-5.6", {"logprobs": True, "top_logprobs": 0}, {}, {"/logprobs": "material", "/top_logprobs": "informational"}),
        ("chat", "gpt-5.2", {"logprobs": True}, {"logprobs": True}, {}),
        ("chat", "gpt-5.6", {"reasoning_effort": "none", "logprobs": True}, {"reasoning_effort": "none", "logprobs": True}, {}),
        ("chat", "gpt-5.2", {"logit_bias": {"5": 1}}, {}, {"/logit_bias": "material"}),
        ("chat", "gpt-5.2", {"logit_bias": {}, "prediction": None}, {"logit_bias": {}, "prediction": None}, {}),
        ("chat", "gpt-4.1", {"logit_bias": {"5": 1}, "logprobs": True}, {"logit_bias": {"5": 1}, "logprobs": True}, {}),
        ("chat", "gpt-5.4", {"prompt_cache_options": {"ttl": "30m"}}, {}, {"/prompt_cache_options": "informational"}),
        ("chat", "gpt-5.6", {"prompt_cache_options": {"ttl": "30m"}}, {"prompt_cache_options": {"ttl": "30m"}}, {}),
        ("chat", "llama-4", {"logit_bias": {"5": 1}}, {"logit_bias": {"5": 1}}, {}),
        ("responses", "gpt-4.1", {"include": [SEALED]}, {}, {"/include": "informational"}),
        ("responses", "gpt-4.1", {"include": [LOGPROBS, SEALED]}, {"include": [LOGPROBS]}, {"/include/1": "informational"}),
        ("responses", "gpt-5", {"include": [LOGPROBS, SEALED]}, {"include": [SEALED]}, {"/include/0": "material"}),
        ("responses", "gpt-5", {"include": "x"}, {"include": "x"}, {}),
        ("responses", "gpt-5", {"top_logprobs": 3}, {}, {"/top_logprobs": "material"}),
        ("responses", "gpt-5.4", {"prompt_cache_options": {"mode": "auto"}}, {}, {"/prompt_cache_options": "informational"}),
    ],
)  # fmt: skip
def test_other_fields_that_the_model_rejects_are_removed(dialect, model, members, kept, lost):
    history = {"messages": []} if dialect == "chat" else {"input": []}
    result = translate(dialect, model, json.dumps({"model": "asked", **history, **members}).encode())
    assert json.loads(result.call.body) == {"model": model, **history, **kept}
    assert {loss.where: loss.grade for loss in result.losses} == lost


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.6"])
@pytest.mark.parametrize(("dialect", "kind"), [("chat", "text"), ("responses", "input_text")])
def test_cache_marks_are_removed_for_a_model_that_rejects_them(dialect, kind, model):
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}

    def build(mark):
        turn = {"role": "user", "content": [{"type": kind, "text": "a"}, {"type": kind, "text": "b", **mark}]}
        return {"model": model, "messages" if dialect == "chat" else "input": [turn] * 3}

    result = translate(dialect, model, json.dumps({**build(mark), "model": "asked"}).encode())
    has_marks = model == "gpt-5.6"
    assert json.loads(result.call.body) == build(mark if has_marks else {})
    assert [loss.grade for loss in result.losses] == [] if has_marks else ["informational"] * 3


def test_calls_without_a_signature_get_googles_placeholder_for_a_model_that_requires_one():
    signed = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2lnbmVk"}
    plain = {"functionCall": {"name": "f", "args": {}}}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]}

    def build(*steps):
        turns = [{"role": "user", "parts": [{"text": "go"}]}]
        for parts in steps:
            turns += [{"role": "model", "parts": list(parts)}, result]
        return json.dumps({"contents": turns}, indent=1).encode()

    body = build([plain, plain], [signed, plain])
    sent = translate("gemini", "gemini-3.8-flash", body)
    placed = {**plain, "thoughtSignature": PLACEHOLDER}
    assert json.loads(sent.call.body) == json.loads(build([placed, plain], [signed, plain]))
    assert [(loss.where, loss.grade) for loss in sent.losses] == [("/contents/1/parts/0", "informational")]
    assert translate("gemini", "gemini-2.5-pro", body).call.body == body
    assert translate("gemini", "gemini-3.8-flash", build([signed, plain])).call.body == build([signed, plain])
    assert translate_request(Call(body), "gemini", "gemini").call.body == body
