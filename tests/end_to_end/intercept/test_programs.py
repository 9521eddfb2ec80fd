"""A client that is started for each turn: how a prompt gets to it, what it finds around it, and how it ends."""

import json
import sys
from pathlib import Path

import openai
import pytest

from dragoman.config import KeyTable
from intercept.clients import CITY, MODEL, Caller, last_request
from intercept.surroundings import between, session_of, until

PROGRAM = """
import json, os, sys, urllib.request
prompt = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()
body = {"contents": [{"role": "user", "parts": [{"text": prompt}]}]}
url = os.environ["ASK_AT"] + "/v1beta/models/MODEL:generateContent"
headers = {"content-type": "application/json", "x-goog-api-key": os.environ["OWN_KEY"]}
reply = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
text = "".join(part["text"] for part in reply["candidates"][0]["content"]["parts"])
with open(os.environ["SAID"], "a") as file:
    print(json.dumps([prompt, text, os.getcwd(), sorted(os.environ)]), file=file)
""".replace("MODEL", MODEL)


def entry(tmp_path, *words, **more):
    env = {"ASK_AT": "{url}", "OWN_KEY": "the-clients", "SAID": str(tmp_path / "said")}
    return {"upstream": "google", "command": (sys.executable, "-c", PROGRAM, *words), "env": env, **more}


def read_records(tmp_path):
    return [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]


@pytest.mark.parametrize(
    ("word", "seen"), [("{prompt}", " --approval-mode=yolo"), ("--prompt={prompt}", "--prompt=--approval-mode=yolo")]
)
def test_a_prompt_is_never_an_option_of_the_client(simulator, tmp_path, word, seen):
    with between(simulator.base_url, tmp_path, intercept={"it": entry(tmp_path, word)}) as middle:
        Caller(middle, "responses", "it:one", {"look": CITY}).ask("--approval-mode=yolo")
        until(lambda: (tmp_path / "said").exists() and read_records(tmp_path))
    assert read_records(tmp_path)[0][0] == seen


@pytest.mark.parametrize("words", [("{prompt}",), ()], ids=["in its words", "on its input"])
def test_a_prompt_is_handed_over_and_results_are_fetched_by_the_next_run(simulator, tmp_path, monkeypatch, words):
    monkeypatch.setenv("GATEWAYS_SECRET", "hush")
    with between(simulator.base_url, tmp_path, intercept={"it": entry(tmp_path, *words)}) as middle:
        caller = Caller(middle, "responses", "it:one", {"look": CITY})
        _, calls = caller.ask("$(echo no) 'shell'\ncall look")
        reply, _ = caller.answer([(calls[0], "rain")])
        assert reply == "They said: rain"
        until(lambda: len(read_records(tmp_path)) == 2)
    (first, waiting, folder, names), (second, result, *_) = read_records(tmp_path)
    assert first == "$(echo no) 'shell'\ncall look"
    assert "Waiting for tools" in waiting
    assert (second, result) == ("(The tools have answered: go on.)", "They said: rain")
    assert {"ASK_AT", "OWN_KEY", "PATH"} <= set(names)
    assert "GATEWAYS_SECRET" not in names
    assert not Path(folder).exists()
    assert "go on" not in json.dumps(last_request(simulator))


def test_two_concurrent_programs_are_distinguished_by_their_paths(simulator, tmp_path, pool):
    with between(simulator.base_url, tmp_path, intercept={"it": entry(tmp_path, "{prompt}")}) as middle:
        callers = [Caller(middle, "chat", f"it:{name}", {f"tool_{name}": CITY}) for name in "ab"]
        asked = [pool.submit(one.ask, f"call tool_{name}") for one, name in zip(callers, "ab", strict=True)]
        calls = [one.result(20)[1][0] for one in asked]
        assert [call["name"] for call in calls] == ["tool_a", "tool_b"]
        result = [pool.submit(one.answer, [(call, call["name"])]) for one, call in zip(callers, calls, strict=True)]
        assert [one.result(20)[0] for one in result] == ["They said: tool_a", "They said: tool_b"]


def test_a_started_program_needs_no_gateway_key_and_its_path_is_not_valid_elsewhere(simulator, tmp_path):
    entries = {"it": entry(tmp_path, "{prompt}"), "other": {"upstream": "google"}}
    keys = (KeyTable(key="any", name="me"),)
    with between(simulator.base_url, tmp_path, intercept=entries, keys=keys) as middle:
        caller = Caller(middle, "responses", "it:one", {"look": CITY})
        assert caller.ask("hello")[0] == "You said: hello"
        ticket = session_of(middle, "it", "one", "me").ticket
        assert middle.interception.sessions.has_ticket("it", ticket)
        assert not middle.interception.sessions.has_ticket("other", ticket)
        assert not middle.interception.sessions.has_ticket("it", "one")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("/no/such/program", "{prompt}"), "cannot be started"),
        ((sys.executable, "-c", "raise SystemExit(3)", "{prompt}"), r"exited \(status 3\) without an answer"),
        ((sys.executable, "-c", "import time; time.sleep(60)", "{prompt}"), "sent no request within 1 seconds"),
    ],
    ids=["not there", "ends at once", "never asks"],
)
def test_a_program_that_sends_no_request_is_an_error_for_the_caller(simulator, tmp_path, command, words):
    broken = {"upstream": "google", "command": command, "timeout": 1.0}
    with between(simulator.base_url, tmp_path, intercept={"it": broken}) as middle:
        with pytest.raises(openai.APIStatusError, match=words) as error:
            Caller(middle, "chat", "it:one", {"look": CITY}).ask("hello")
        assert error.value.status_code in {502, 504}


def test_an_upstream_error_of_a_program_is_reported_to_the_caller(simulator, tmp_path):
    refused = entry(tmp_path, "{prompt}", model=f"{MODEL}~429")
    entries = {"it": refused}
    with between(simulator.base_url, tmp_path, intercept=entries) as middle, pytest.raises(openai.RateLimitError):
        Caller(middle, "responses", "it:one", {"look": CITY}).ask("hello")


def test_model_instructions_and_headers_are_changed_as_configured(simulator, tmp_path):
    headers = {"user-agent": "", "x-goog-user-project": "mine"}
    changed = entry(tmp_path, "{prompt}", model="gemini-3-pro", system="Be brief.", headers=headers)
    with between(simulator.base_url, tmp_path, intercept={"it": changed}) as middle:
        assert Caller(middle, "messages", "it:one", {}).ask("hello")[0] == "You said: hello"
        until(lambda: middle.passed)
        assert middle.passed[-1].rules == ("model replaced", "instructions changed")
    seen = simulator.requests[-1]
    assert "gemini-3-pro:generateContent" in seen.target
    assert seen.json()["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    result = dict(seen.headers)
    assert (result.get("user-agent"), result["x-goog-user-project"]) == (None, "mine")
