"""A web search that the target lacks: run by the caller of the translation, or lost and mentioned in the prompt."""

import json

import pytest
from msgspec import structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.translate import parse_request, translate_request
from dragoman.interpreter.translation import TranslationTask, TurnFunctionsNeeded
from interpreter.workbench import NEWEST, encode

USER = {"role": "user", "content": "Go."}
CONTENTS = [{"role": "user", "parts": [{"text": "Go."}]}]
BODIES = {
    "responses": {"model": "m", "input": [USER], "tools": [{"type": "web_search"}]},
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "system": "Be brief.",
        "messages": [USER],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
    "gemini": {"contents": CONTENTS, "tools": [{"googleSearch": {}}]},
}
NOTICE = "You have no web search"


def task_of(source, target, *, model="", body=None, **more):
    call = Call(encode(body or BODIES[source]), "m")
    return TranslationTask(call, dialect_named(source), dialect_named(target), model or NEWEST[target], **more)


def translate(task):
    return parse_request(task).translate(None)


@pytest.mark.parametrize("source", BODIES)
def test_a_search_that_nobody_can_run_is_a_material_loss_and_the_prompt_says_so(source):
    translation = translate(task_of(source, "chat"))
    sent = json.loads(translation.call.body)
    assert "tools" not in sent
    instructions = [message["content"] for message in sent["messages"] if message["role"] in {"system", "developer"}]
    assert NOTICE in instructions[-1]
    (loss,) = [loss for loss in translation.losses if loss.where.startswith("/tools")]
    assert (loss.kind, loss.grade) == ("dropped", "material")
    assert "can search the web" in loss.what


@pytest.mark.parametrize("source", BODIES)
def test_strict_mode_rejects_a_search_that_nobody_can_run(source):
    with pytest.raises(Problem, match="can search the web") as caught:
        translate(task_of(source, "chat", strict=True))
    assert caught.value.status == 400


@pytest.mark.parametrize("text_calls", ["", "json"])
@pytest.mark.parametrize("source", BODIES)
def test_a_caller_that_can_search_learns_that_it_has_to(source, text_calls):
    task = task_of(source, "chat", text_calls=text_calls, turn_functions=frozenset({"search", "other"}))
    for _ in range(2):
        with pytest.raises(TurnFunctionsNeeded) as caught:
            translate(task)
        assert caught.value.purposes == {"search"}
        assert caught.value.where.startswith("/tools/0")


def test_what_one_caller_translated_is_not_taken_for_another_with_other_functions():
    plain = task_of("messages", "chat")
    searching = structs.replace(plain, turn_functions=frozenset({"search"}))
    assert NOTICE in translate(plain).call.body.decode()
    with pytest.raises(TurnFunctionsNeeded):
        translate(searching)
    assert NOTICE in translate(plain).call.body.decode()


@pytest.mark.parametrize(
    ("source", "target"), [("messages", "gemini"), ("gemini", "responses"), ("responses", "messages")]
)
def test_a_target_that_searches_itself_needs_no_function_and_no_notice(source, target):
    translation = translate(task_of(source, target, turn_functions=frozenset({"search"})))
    assert NOTICE not in translation.call.body.decode()


def test_a_model_that_takes_a_search_or_functions_but_not_both_needs_the_function():
    function = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    body = {**BODIES["messages"], "tools": [*BODIES["messages"]["tools"], function]}
    task = task_of("messages", "gemini", model="gemini-2.5-flash", body=body)
    translation = translate(task)
    assert NOTICE in translation.call.body.decode()
    assert "/tools/0" in [loss.where for loss in translation.losses]
    with pytest.raises(TurnFunctionsNeeded):
        translate(structs.replace(task, turn_functions=frozenset({"search"})))


def test_a_choice_that_forbids_calls_needs_no_function():
    body = {**BODIES["messages"], "tool_choice": {"type": "none"}}
    assert (
        NOTICE
        in translate(task_of("messages", "chat", body=body, turn_functions=frozenset({"search"}))).call.body.decode()
    )


def test_the_notice_follows_the_clients_own_instructions():
    sent = json.loads(
        translate_request(task_of("messages", "chat").call, "messages", "chat", model="gpt-5.6").call.body
    )
    text = json.dumps(sent["messages"])
    assert text.index("Be brief.") < text.index(NOTICE)
