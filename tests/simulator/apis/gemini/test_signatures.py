import json
from base64 import b64encode, urlsafe_b64encode

import pytest

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.gemini import API
from dragoman.simulator.apis.gemini.signatures import SKIP_TOKENS
from simulator.apis.gemini.asking import (
    ANSWERS,
    NEW,
    OLD,
    build_request,
    judge,
    occasion,
    require_accepted,
    require_rejected,
    result,
    situation,
    user,
)


def content(name="calls"):
    """Return the model's content as it was received."""
    reply = json.loads(API.render_reply(ANSWERS[name], require_accepted(build_request()), occasion()))
    return reply["candidates"][0]["content"]


def results(output):
    calls = [part["functionCall"] for part in output["parts"] if "functionCall" in part]
    return user(*(result(call["name"], id=call["id"]) for call in calls))


def follow(output, *more):
    return build_request(user("Weather?"), output, results(output), *more)


def test_the_models_own_reply_is_accepted_in_a_history():
    for name in ("call", "calls"):
        require_accepted(follow(content(name)))
    require_accepted(build_request(user("Hi."), content("text"), user("And?")))


def test_numbers_and_the_order_of_members_may_change_on_the_way():
    output = content("call")
    arguments = output["parts"][0]["functionCall"]["args"]
    output["parts"][0]["functionCall"]["args"] = {"days": 3.0, "city": arguments["city"]}
    require_accepted(follow(output))


def test_the_alphabet_and_padding_of_base64_do_not_matter():
    output = content("call")
    token = output["parts"][0]["thoughtSignature"]
    output["parts"][0]["thoughtSignature"] = token.replace("+", "-").replace("/", "_").rstrip("=")
    require_accepted(follow(output))


def test_a_streamed_answer_may_come_back_in_its_pieces():
    frames = API.render_stream(ANSWERS["text"], require_accepted(build_request()), occasion(size=4))
    parts = [part for frame in frames for part in json.loads(frame[6:])["candidates"][0]["content"]["parts"]]
    require_accepted(build_request(user("Hi."), {"role": "model", "parts": parts}, user("And?")))


def test_a_missing_signature_is_refused_on_the_first_call_of_a_step_only():
    output = content()
    del output["parts"][1]["thoughtSignature"]
    found = require_rejected(follow(output))
    assert found.rule == "gemini.signature-missing"
    assert "function call `default_api:get_weather` , position 2." in found.message
    require_accepted(follow(output), situation(OLD))


def test_every_step_of_the_current_turn_is_signed():
    first = content("call")
    second = content("call")
    token = API.render_reply(ANSWERS["call"], require_accepted(build_request()), occasion()).decode()
    assert first["parts"][0]["thoughtSignature"] in token
    del second["parts"][0]["thoughtSignature"]
    found = require_rejected(follow(first, second, results(second)))
    assert (found.rule, found.where) == ("gemini.signature-missing", "/contents/3/parts/0")


def test_an_earlier_turn_needs_no_signature():
    output = content("call")
    del output["parts"][0]["thoughtSignature"]
    require_accepted(follow(output, {"role": "model", "parts": [{"text": "18C"}]}, user("Thanks.")))


@pytest.mark.parametrize("word", SKIP_TOKENS)
def test_the_documented_skip_values_replace_a_signature(word):
    output = content()
    for form in (word, b64encode(word.encode()).decode(), urlsafe_b64encode(word.encode()).decode().rstrip("=")):
        output["parts"][1]["thoughtSignature"] = form
        require_accepted(follow(output))
        output["parts"][2]["thoughtSignature"] = form
        require_accepted(follow(output))


def test_an_altered_signature_is_corrupted():
    output = content("call")
    token = output["parts"][0]["thoughtSignature"]
    output["parts"][0]["thoughtSignature"] = token[:40] + ("A" if token[40] != "A" else "B") + token[41:]
    found = require_rejected(follow(output))
    assert (found.rule, found.message) == ("gemini.signature-altered", "Corrupted thought signature.")


def test_a_moved_signature_is_invalid():
    output = content()
    output["parts"][2]["thoughtSignature"] = output["parts"][1].pop("thoughtSignature")
    assert require_rejected(follow(output)).rule == "gemini.signature-missing"
    output["parts"][1]["thoughtSignature"] = SKIP_TOKENS[0]
    found = require_rejected(follow(output))
    assert (found.rule, found.where) == ("gemini.signature-moved", "/contents/1/parts/2/thoughtSignature")
    output = content("text")
    output["parts"].append(content("call")["parts"][0])
    output["parts"][1]["thoughtSignature"] = output["parts"][0].pop("thoughtSignature")
    assert require_rejected(follow(output)).rule == "gemini.signature-moved"


def test_a_signature_comes_back_once():
    output = content("call")
    found = require_rejected(follow(output, output, results(output)))
    assert found.rule == "gemini.signature-twice"
    require_accepted(follow(output, output, results(output)), situation(OLD))


def test_a_result_may_repeat_the_signature_of_a_call():
    output = content("call")
    answered = results(output)
    answered["parts"][0]["thoughtSignature"] = output["parts"][0]["thoughtSignature"]
    require_accepted(build_request(user("Hi."), output, answered))
    answered["parts"][0]["thoughtSignature"] = content("text")["parts"][0]["thoughtSignature"][:-8]
    assert require_rejected(build_request(user("Hi."), output, answered)).rule == "gemini.signature-altered"


def test_a_foreign_signature_passes_only_in_a_recording():
    output = content("call")
    output["parts"][0]["thoughtSignature"] = "b3BhcXVlLXNpZ25hdHVyZS0x"
    assert require_rejected(follow(output)).rule == "gemini.signature-foreign"
    require_accepted(follow(output), situation(NEW, recorded=True))
    require_accepted(follow(output), situation(OLD))
    found = judge(follow(content("call")), signer=TokenSigner(seed=5))
    assert found.rule == "gemini.signature-altered"


def build_content(name, kind="call", **members):
    """Return a model's content as it was received."""
    reply = json.loads(
        API.render_reply(ANSWERS[kind], require_accepted(build_request(), situation(name, **members)), occasion())
    )
    return reply["candidates"][0]["content"]


@pytest.mark.parametrize("other", ["gemini-3-pro-preview", "gemini-3.6-flash", "gemini-4-argon", "never-heard-of"])
def test_a_signature_of_another_model_is_refused(other):
    output = build_content(NEW)
    found = require_rejected(follow(output), situation(other))
    assert (found.rule, found.message) == ("gemini.signature-model", "Invalid thought signature.")
    assert require_rejected(follow(output), situation(other, vertex=True)).rule == "gemini.signature-model"


def test_a_signature_on_a_text_of_another_model_is_refused():
    body = build_request(user("Hi."), build_content(NEW, "text"), user("And?"))
    assert require_rejected(body, situation("gemini-3.6-flash")).rule == "gemini.signature-model"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NEW, f"models/{NEW}"),
        ("gemini-3-pro", "gemini-3-pro-preview-11-2025"),
        ("gemini-flash-latest", "gemini-3.6-flash"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro-preview-customtools"),
    ],
)
def test_a_model_accepts_its_signatures_under_all_its_names_and_on_all_apis(one, other):
    require_accepted(follow(build_content(one)), situation(other))
    require_accepted(follow(build_content(one)), situation(other, vertex=True))
    require_accepted(follow(build_content(other, vertex=True)), situation(one))


def test_a_model_that_does_not_check_takes_any_signature():
    require_accepted(follow(build_content(NEW)), situation(OLD))


def test_a_signature_cut_in_half_is_corrupted():
    output = build_content(NEW)
    token = output["parts"][0]["thoughtSignature"]
    for half in (token[: len(token) // 2], token + token):
        output["parts"][0]["thoughtSignature"] = half
        assert require_rejected(follow(output)).rule == "gemini.signature-altered"
