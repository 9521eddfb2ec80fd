"""The forms in which Chat-compatible servers take thinking are read, and reach other dialects."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.core.request import Thinking
from dragoman.dialects.chat import DIALECT
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import Translation


def write(**members: Any) -> Call:
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}], "max_tokens": 9000, **members}
    return Call(json.dumps(body).encode(), "m")


def read(**members: Any) -> Thinking | None:
    """Parse a request; rendered again it is the same."""
    call = write(**members)
    request = DIALECT.parse_request(call)
    rendered = DIALECT.render_request(request, traits_for("chat", "m"))
    assert json.loads(rendered.body) == json.loads(call.body)
    return request.thinking


def get_values(thinking: Thinking | None) -> tuple[Any, ...]:
    assert thinking is not None
    return thinking.mode, thinking.effort, thinking.budget, thinking.visible


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"thinking": {"type": "disabled"}}, ("disabled", None, None, None)),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "max"}, ("enabled", "max", None, None)),
        ({"thinking": {"type": "enabled", "budget_tokens": 2048}}, ("enabled", None, 2048, None)),
        ({"thinking": {"type": "adaptive"}}, ("adaptive", None, None, None)),
        ({"enable_thinking": False}, ("disabled", None, None, None)),
        ({"enable_thinking": True, "thinking_budget": 2048}, ("enabled", None, 2048, None)),
        ({"thinking_token_budget": 0}, (None, None, 0, None)),
        ({"chat_template_kwargs": {"enable_thinking": False}}, ("disabled", None, None, None)),
        ({"chat_template_kwargs": {"thinking": True}}, ("enabled", None, None, None)),
        ({"chat_template_kwargs": {"thinking": True, "enable_thinking": True}}, ("enabled", None, None, None)),
        ({"reasoning": {"effort": "high"}}, (None, "high", None, None)),
        ({"reasoning": {"max_tokens": 2048, "exclude": True}}, (None, None, 2048, False)),
        ({"reasoning": {"enabled": False}}, ("disabled", None, None, None)),
        ({"reasoning": {"effort": "high"}, "reasoning_effort": "high"}, (None, "high", None, None)),
    ],
)
def test_each_form_is_read_and_rendered_again_as_it_was(members, expected):
    assert get_values(read(**members)) == expected


@pytest.mark.parametrize(
    "members",
    [
        {"thinking": {"type": "sometimes"}},
        {"thinking_budget": -1},
        {"chat_template_kwargs": {"custom": 1}},
        {"reasoning": {"effort": "huge"}},
        {"reasoning": {"exclude": False}},
    ],
)
def test_any_other_value_is_kept_and_reported(members):
    assert read(**members) is None
    (name,) = members
    losses = translate_request(write(**members), "chat", "messages", model="claude-opus-5").losses
    assert [loss.grade for loss in losses if loss.where.startswith(f"/{name}")] == ["material"]


@pytest.mark.parametrize(
    ("member", "value", "expected"),
    [
        ("thinking", 5, "an object"),
        ("thinking", True, "an object"),
        ("chat_template_kwargs", "x", "an object"),
        ("chat_template_kwargs", [], "an object"),
        ("reasoning", "high", "an object"),
        ("enable_thinking", "yes", "true or false"),
        ("enable_thinking", 1, "true or false"),
        ("thinking_budget", True, "an integer"),
        ("thinking_token_budget", 1.5, "an integer"),
        ("thinking", {"type": 5}, "type must be a string"),
        ("thinking", {"type": "enabled", "budget_tokens": "many"}, "budget_tokens must be an integer"),
        ("reasoning", {"effort": 3}, "effort must be a string"),
        ("reasoning", {"enabled": "yes"}, "enabled must be true or false"),
        ("reasoning", {"max_tokens": 1.5}, "max_tokens must be an integer"),
    ],
)
@pytest.mark.parametrize("target", ["messages", "responses", "gemini"])
def test_a_value_of_a_wrong_type_is_an_error_that_names_the_member(member, value, expected, target):
    with pytest.raises(Problem) as caught:
        translate_request(write(**{member: value}), "chat", target, model="m")
    assert caught.value.kind == "invalid_request"
    below, _, rest = expected.partition(" must be ")
    place, words = (f"{member}.{below}", rest) if rest else (member, expected)
    assert (caught.value.where, caught.value.message) == (f"/{place.replace('.', '/')}", f"{place} must be {words}")


@pytest.mark.parametrize("model", ["", "llama-4", "deepseek-v4"])
def test_a_value_of_a_wrong_type_is_left_to_a_server_of_the_dialect(model):
    call = write(thinking=5)
    expected = json.loads(call.body) | ({"model": model} if model else {})
    assert json.loads(translate_request(call, "chat", "chat", model=model).call.body) == expected


def test_null_says_nothing():
    assert DIALECT.parse_request(write(thinking=None, enable_thinking=None, reasoning=None)).thinking is None


def translate(target: str, model: str, **members: Any) -> tuple[Translation, dict[str, Any]]:
    translation = translate_request(write(**members), "chat", target, model=model)
    return translation, json.loads(translation.call.body)


@pytest.mark.parametrize(
    "members",
    [
        {"thinking": {"type": "disabled"}},
        {"enable_thinking": False},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"chat_template_kwargs": {"thinking": False}},
        {"reasoning": {"enabled": False}},
        {"reasoning": {"effort": "none"}},
    ],
)
def test_thinking_that_a_client_turns_off_is_off_in_each_dialect(members):
    for target, model, member, expected in (
        ("messages", "claude-opus-5", "thinking", {"type": "disabled"}),
        ("messages", "claude-sonnet-4-5", "thinking", {"type": "disabled"}),
        ("responses", "gpt-5.5", "reasoning", {"effort": "none"}),
    ):
        translation, body = translate(target, model, **members)
        assert body[member] == expected
        assert translation.losses == ()
    _, body = translate("gemini", "gemini-2.5-flash", **members)
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 0


def test_a_budget_reaches_a_model_with_budgets_and_is_an_effort_elsewhere():
    for members in ({"thinking_budget": 2048}, {"thinking_token_budget": 2048}, {"reasoning": {"max_tokens": 2048}}):
        translation, body = translate("messages", "claude-sonnet-4-5", **members)
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
        assert translation.losses == ()
        translation, body = translate("responses", "gpt-5.5", **members)
        assert body["reasoning"] == {"effort": "medium"}
        (loss,) = translation.losses
        assert (loss.kind, loss.where.split("/")[1]) == ("approximated", next(iter(members)))


def test_members_beside_those_that_are_read_are_reported_and_kept_at_home():
    members = {
        "chat_template_kwargs": {"enable_thinking": False, "a/b": 1},
        "thinking": {"type": "disabled", "keep": 1},
    }
    assert get_values(read(**members)) == ("disabled", None, None, None)
    translation, body = translate("messages", "claude-opus-5", **members)
    assert body["thinking"] == {"type": "disabled"}
    assert [loss.where for loss in translation.losses] == ["/chat_template_kwargs/a~1b", "/thinking/keep"]


def test_the_second_of_two_values_that_contradict_each_other_is_reported():
    members = {"enable_thinking": False, "thinking": {"type": "enabled"}, "reasoning_effort": "low"}
    thinking = read(**members, reasoning={"effort": "high"})
    assert get_values(thinking) == ("enabled", "low", None, None)
    translation, _ = translate("messages", "claude-opus-5", **members)
    assert [loss.where for loss in translation.losses] == ["/enable_thinking"]
