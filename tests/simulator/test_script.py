"""Scripts: exact turns, and requests held to what is expected of them."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.simulator.faults import read_fault
from dragoman.simulator.script import Received, TomlScript, Unmet
from dragoman.simulator.talk import Answer, Ask, Call, Result, Turn

USER = Turn(role="user", text="The WEATHER in Paris?")
CALL = Call(id="1", name="get_weather", arguments={"city": "Paris"})
RESULT = Result(call_id="1", name="get_weather", text="sunny")


def script(tmp_path: Path, text: str) -> TomlScript:
    path = tmp_path / "script.toml"
    path.write_text(text)
    return TomlScript.read(path)


def received(*turns: Turn, body: Any = None, model: str = "gemini-3.8-flash", api: str = "gemini") -> Received:
    return Received(api=api, ask=Ask(model=model, turns=turns or (USER,)), body=body or {})


def test_steps_are_taken_in_order_and_then_the_model_answers(tmp_path):
    steps = script(
        tmp_path,
        """
        [[step]]
        text = "first"
        [[step]]
        thought = "hm"
        calls = [{ name = "get_weather", arguments = { city = "Paris" } }, { name = "sql", arguments = "select 1", id = "x" }]
        [[step]]
        text = "cut off"
        end = "length"
        """,
    )
    assert steps(received()) == Answer(text="first")
    called = steps(received())
    assert isinstance(called, Answer)
    assert (called.thought, called.end) == ("hm", "calls")
    assert [(call.name, call.arguments) for call in called.calls] == [
        ("get_weather", {"city": "Paris"}),
        ("sql", "select 1"),
    ]
    assert called.calls[1].id == "x"
    assert called.calls[0].id
    assert steps(received()) == Answer(text="cut off", end="length")
    assert steps(received()) is None


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ('contains = "weather"', True),
        ('contains = "rain"', False),
        ('model = "gemini-*"', True),
        ('model = "gpt-*"', False),
        ('api = "gemini"', True),
        ('api = "chat"', False),
        ("turn = 2", True),
        ("turn = 1", False),
        ('after = "get_weather"', True),
        ('after = "other"', False),
        ('contains = "weather", turn = 1', False),
    ],
)
def test_a_step_applies_when_all_its_conditions_hold(tmp_path, when, holds):
    steps = script(tmp_path, f'[[step]]\nwhen = {{ {when} }}\ntext = "yes"\n')
    turns = (USER, Turn(role="assistant", calls=(CALL,)), Turn(role="user", results=(RESULT,)))
    assert steps(received(*turns)) == (Answer(text="yes") if holds else None)


def test_a_step_with_a_condition_applies_again_and_again_unless_told_how_often(tmp_path):
    steps = script(tmp_path, '[[step]]\nwhen = { turn = 1 }\ntimes = 2\ntext = "a"\n[[step]]\nwhen = {}\ntext = "b"\n')
    assert [steps(received()).text for _ in range(4)] == ["a", "a", "b", "b"]


def test_a_step_may_be_a_fault(tmp_path):
    steps = script(tmp_path, '[[step]]\nfault = "429,retry-after=1"\n')
    assert steps(received()) == read_fault("429,retry-after=1")


def test_a_request_that_is_not_what_is_expected_is_told_with_the_difference(tmp_path):
    steps = script(
        tmp_path,
        '[[step]]\nexpect = { "/temperature" = 0.2, "/tools/0/name" = "f", "/tools/1" = "(absent)" }\ntext = "a"\n',
    )
    with pytest.raises(Unmet) as caught:
        steps(received(body={"temperature": 0.7, "tools": [{"name": "f"}]}))
    told = str(caught.value).splitlines()
    assert '- "/temperature": 0.2,' in told
    assert '+ "/temperature": 0.7,' in told
    assert '  "/tools/0/name": "f",' in told
    assert steps(received(body={"temperature": 0.2, "tools": [{"name": "f"}]})) == Answer(text="a")


@pytest.mark.parametrize(
    "text", ["step = 1", "[[step]]\nsay = 1", '[[step]]\nwhen = { maybe = "x" }', "[[step]\n", "[[steps]]\n"]
)
def test_a_file_that_is_no_script_is_told_by_name(tmp_path, text):
    with pytest.raises(ValueError, match=r"script\.toml is not a script"):
        script(tmp_path, text)
