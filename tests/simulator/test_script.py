"""Scripts: fixed replies, and requests checked against expectations."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.simulator.apis.conversation import Answer, AnswerSource, Call, ModelRequest, RequestResult, RequestTurn
from dragoman.simulator.faults import read_fault
from dragoman.simulator.script import Received, TomlScript, Unmet, read_script

USER = RequestTurn(role="user", text="The WEATHER in Paris?")
CALL = Call(id="1", name="get_weather", arguments={"city": "Paris"})
RESULT = RequestResult(call_id="1", name="get_weather", text="sunny")


def script(tmp_path: Path, text: str) -> TomlScript:
    path = tmp_path / "script.toml"
    path.write_text(text)
    return TomlScript.read(path)


def get_received(
    *turns: RequestTurn, body: Any = None, model: str = "gemini-3.8-flash", api: str = "gemini"
) -> Received:
    return Received(api=api, request=ModelRequest(model=model, turns=turns or (USER,)), body=body or {})


def test_a_step_may_be_for_one_chat_compatible_server(tmp_path):
    steps = script(tmp_path, '[[step]]\nwhen = { api = "deepseek" }\ntext = "deep"\n')
    assert steps(get_received(api="chat")) is None
    answer = steps(get_received(api="deepseek"))
    assert isinstance(answer, Answer)
    assert answer.text == "deep"


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
    assert steps(get_received()) == Answer(text="first")
    called = steps(get_received())
    assert isinstance(called, Answer)
    assert (called.thought, called.end) == ("hm", "calls")
    assert [(call.name, call.arguments) for call in called.calls] == [
        ("get_weather", {"city": "Paris"}),
        ("sql", "select 1"),
    ]
    assert called.calls[1].id == "x"
    assert called.calls[0].id
    assert steps(get_received()) == Answer(text="cut off", end="length")
    assert steps(get_received()) is None


def test_a_step_can_search_the_web(tmp_path):
    steps = script(
        tmp_path,
        """
        [[step]]
        text = "It rains."
        query = "weather in Rome"
        sources = [{ url = "https://a.org", title = "A", quote = "rains" }, { url = "https://b.org" }]
        """,
    )
    sources = (
        AnswerSource(url="https://a.org", title="A", quote="rains"),
        AnswerSource(url="https://b.org", title="", quote=""),
    )
    assert steps(get_received()) == Answer(text="It rains.", query="weather in Rome", sources=sources)


@pytest.mark.parametrize(
    ("when", "matches"),
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
def test_a_step_applies_when_all_its_conditions_hold(tmp_path, when, matches):
    steps = script(tmp_path, f'[[step]]\nwhen = {{ {when} }}\ntext = "yes"\n')
    turns = (USER, RequestTurn(role="assistant", calls=(CALL,)), RequestTurn(role="user", results=(RESULT,)))
    assert steps(get_received(*turns)) == (Answer(text="yes") if matches else None)


def test_a_step_with_a_condition_applies_repeatedly_unless_limited(tmp_path):
    steps = script(tmp_path, '[[step]]\nwhen = { turn = 1 }\ntimes = 2\ntext = "a"\n[[step]]\nwhen = {}\ntext = "b"\n')
    assert [steps(get_received()).text for _ in range(4)] == ["a", "a", "b", "b"]


def test_a_step_may_be_a_refusal(tmp_path):
    steps = script(tmp_path, '[[step]]\nrefusal = "I will not."\n')
    assert steps(get_received()) == Answer(refusal="I will not.", end="stop")


def test_a_step_may_be_a_fault(tmp_path):
    steps = script(tmp_path, '[[step]]\nfault = "429,retry-after=1"\n')
    assert steps(get_received()) == read_fault("429,retry-after=1")


def test_an_unexpected_request_is_reported_with_the_difference(tmp_path):
    steps = script(
        tmp_path,
        '[[step]]\nexpect = { "/temperature" = 0.2, "/tools/0/name" = "f", "/tools/1" = "(absent)" }\ntext = "a"\n',
    )
    with pytest.raises(Unmet) as caught:
        steps(get_received(body={"temperature": 0.7, "tools": [{"name": "f"}]}))
    lines = str(caught.value).splitlines()
    assert '- "/temperature": 0.2,' in lines
    assert '+ "/temperature": 0.7,' in lines
    assert '  "/tools/0/name": "f",' in lines
    assert steps(get_received(body={"temperature": 0.2, "tools": [{"name": "f"}]})) == Answer(text="a")


def test_an_expected_date_is_reported_like_any_other_value(tmp_path):
    steps = script(tmp_path, '[[step]]\nexpect = { "/day" = 2027-03-05 }\ntext = "a"\n')
    with pytest.raises(Unmet, match="2027-03-05"):
        steps(get_received(body={"day": "never"}))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step = 1", "array"),
        ("[[step]]\nsay = 1", "say"),
        ('[[step]]\nwhen = { maybe = "x" }', "maybe"),
        ('[[step]]\nwhen = { api = "gemni" }', "gemni"),
        ('[[step]]\nend = "banana"', "banana"),
        ('[[step]]\nfault = "burn"', "not a fault: 'burn'"),
        ('[[step]]\nfault = "429"\ntext = "a"', "a step with `fault` cannot have"),
        ('[[step]]\nfault = "429"\nrefusal = "No."', "a step with `fault` cannot have"),
        ('[[step]]\nfault = "429"\nquery = "q"', "a step with `fault` cannot have"),
        ('[[step]]\nsources = [{ url = "u" }]', "a step with `sources` needs a `query`"),
        ('[[step]]\nrefusal = "No."\ntext = "a"', "cannot have `text` or `calls`"),
        ('[[step]]\nexpect = { "temperature" = 1 }', "must begin with a slash"),
        ("[[step]\n", "line 1"),
        ("[[steps]]\n", "step"),
    ],
)
def test_an_invalid_script_file_is_reported_by_name_and_reason(tmp_path, text, words):
    with pytest.raises(ValueError, match=r"script\.toml is not a script") as caught:
        script(tmp_path, text)
    assert words in str(caught.value)


def test_a_binary_file_is_reported_by_name(tmp_path):
    path = tmp_path / "script.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"script\.toml is not a script"):
        TomlScript.read(path)


def test_a_file_in_python_has_a_function(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("from dragoman.simulator import Answer\ndef script(received):\n return Answer(text=received.api)\n")
    assert read_script(path)(get_received()) == Answer(text="gemini")


def test_a_file_in_toml_is_read_as_such(tmp_path):
    path = tmp_path / "script.toml"
    path.write_text('[[step]]\ntext = "a"\n')
    assert read_script(path)(get_received()) == Answer(text="a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("answer = 1", "no function `script`"),
        ("script = 1", "no function `script`"),
        ("1 / 0", "ZeroDivisionError"),
        ("def", "SyntaxError"),
    ],
)
def test_a_python_file_that_is_no_script_is_reported_by_name(tmp_path, text, words):
    path = tmp_path / "script.py"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"script\.py is not a script") as caught:
        read_script(path)
    assert words in str(caught.value)
