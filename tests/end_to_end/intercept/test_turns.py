"""A caller adds tools to a program's request and the model calls them: what either side sees, in every dialect."""

import json

import pytest

from intercept.clients import CITY, MODEL, PROMPT, Caller, Client, last_request
from intercept.surroundings import is_awaited, session_of, start_caller, until


def turns_of(body):
    """Roles, and what the parts of each turn are."""
    return [
        (
            turn["role"],
            [
                "text" if "text" in part else next(name for name in part if name.startswith("f"))
                for part in turn["parts"]
            ],
        )
        for turn in body["contents"]
    ]


@pytest.mark.parametrize("dialect", ["responses", "chat", "messages", "gemini"])
@pytest.mark.parametrize(
    "manner",
    [
        ("whole", False, False),
        ("events", False, True),
        ("items", False, True),
        ("whole", True, True),
        ("events", True, False),
    ],
    ids=lambda manner: " ".join(map(str, manner)),
)
def test_calls_come_to_the_caller_and_its_results_to_the_model(middle, pool, simulator, dialect, manner):
    form, wrapped, streamed = manner
    entry = "inside" if wrapped else "me"
    session = f"{dialect}-{form}-{wrapped}"
    client = Client(f"{middle.base_url}/intercept/{entry}@{session}", form, wrapped=wrapped)
    caller = Caller(middle, dialect, f"{entry}:{session}", {"look": CITY}, streamed=streamed)
    waiting = start_caller(pool, middle, entry, session, caller.ask, "call look")
    first = client.say("Let me see: call look")
    assert first.startswith("Let me see:")
    assert "Waiting for tools: dt-" in first
    assert last_request(simulator)["tools"][0]["functionDeclarations"][0]["name"] == "look"
    words, calls = waiting.result(10)
    assert words.startswith("Let me see:")
    assert [(one["name"], json.loads(one["arguments"])) for one in calls] == [("look", {"city": "Paris"})]
    waiting = start_caller(pool, middle, entry, session, caller.answer, [(calls[0], "rain")])
    last = client.say(PROMPT)
    assert last.startswith("They said: ")
    assert "rain" in last
    assert waiting.result(10) == (last, [])
    assert turns_of(last_request(simulator)) == [
        ("user", ["text"]),
        ("model", ["text", "functionCall"]),
        ("user", ["functionResponse"]),
    ]
    received = last_request(simulator)["contents"]
    assert received[1]["parts"][1]["thoughtSignature"]
    assert received[2]["parts"][0]["functionResponse"]["id"] == received[1]["parts"][1]["functionCall"]["id"]


def test_several_calls_of_one_turn_are_answered_together_in_their_order(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@several", "events")
    caller = Caller(middle, "responses", "me:several", {"one": CITY, "two": CITY, "three": CITY})
    waiting = start_caller(pool, middle, "me", "several", caller.ask, "go")
    client.say("call one, two, three")
    _, calls = waiting.result(10)
    assert [one["name"] for one in calls] == ["one", "two", "three"]
    waiting = start_caller(
        pool, middle, "me", "several", caller.answer, [(one, one["name"] * 2) for one in reversed(calls)]
    )
    client.say(PROMPT)
    waiting.result(10)
    results = [part["functionResponse"]["name"] for part in last_request(simulator)["contents"][-1]["parts"]]
    assert results == ["one", "two", "three"]
    assert len(client.history[1]["parts"]) == 1


def test_an_answered_placeholder_stays_rewritten_and_our_prompt_stays_out(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@later")
    caller = Caller(middle, "responses", "me:later", {"look": CITY})
    for _ in range(2):
        waiting = start_caller(pool, middle, "me", "later", caller.ask, "call look")
        client.say("call look")
        _, calls = waiting.result(10)
        waiting = start_caller(pool, middle, "me", "later", caller.answer, [(calls[0], "rain")])
        client.say(PROMPT)
        waiting.result(10)
    client.say("and now?")
    round_of_calls = [
        ("user", ["text"]),
        ("model", ["functionCall"]),
        ("user", ["functionResponse"]),
        ("model", ["text"]),
    ]
    assert turns_of(last_request(simulator)) == [*round_of_calls, *round_of_calls, ("user", ["text"])]
    assert "Waiting" not in json.dumps(last_request(simulator))
    assert "go on" not in json.dumps(last_request(simulator))
    first, second = session_of(middle, "me", "later").groups.values()
    assert not first.before, "only the last conversation is held"
    assert second.before


def test_a_program_that_continues_while_calls_wait_gets_the_same_reply_and_its_text_is_kept(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@early", "events")
    caller = Caller(middle, "responses", "me:early", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "early", caller.ask, "call look")
    first = client.say("call look")
    _, calls = waiting.result(10)
    count = len(simulator.requests)
    assert client.say("are you there?") == first
    assert len(simulator.requests) == count
    until(lambda: middle.passed and middle.passed[-1].blocked)
    waiting = start_caller(pool, middle, "me", "early", caller.answer, [(calls[0], "rain")])
    assert client.say(PROMPT) == "They said: rain; you said: are you there?"
    assert waiting.result(10)[0] == "They said: rain; you said: are you there?"
    assert turns_of(last_request(simulator)) == [
        ("user", ["text"]),
        ("model", ["functionCall"]),
        ("user", ["functionResponse"]),
        ("user", ["text"]),
    ]


def test_two_sessions_at_once_never_see_each_others_tools_or_calls(middle, pool, simulator):
    clients = [Client(f"{middle.base_url}/intercept/me@pair-{name}") for name in "ab"]
    callers = [Caller(middle, "responses", f"me:pair-{name}", {f"tool_{name}": CITY}) for name in "ab"]
    waiting = [start_caller(pool, middle, "me", f"pair-{name}", callers[at].ask, "go") for at, name in enumerate("ab")]
    for client, name in zip(clients, "ab", strict=True):
        client.say(f"call tool_{name}")
        declared = last_request(simulator)["tools"][0]["functionDeclarations"]
        assert [one["name"] for one in declared] == [f"tool_{name}"]
    calls = [one.result(10)[1][0] for one in waiting]
    assert [one["name"] for one in calls] == ["tool_a", "tool_b"]
    with pytest.raises(Exception, match="no call 'id-tool_b-1' is waiting"):
        callers[0].answer([(calls[1], "not mine")])
    answers = [
        start_caller(pool, middle, "me", f"pair-{name}", callers[at].answer, [(calls[at], f"for {name}")])
        for at, name in reversed(list(enumerate("ab")))
    ]
    for client, name in zip(clients, "ab", strict=True):
        assert f"for {name}" in client.say(PROMPT)
    assert ["for b" in one.result(10)[0] for one in answers] == [True, False]


def test_a_prompt_with_results_reaches_the_model_after_them(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@beside")
    caller = Caller(middle, "messages", "me:beside", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "beside", caller.ask, "call look")
    client.say("call look")
    _, calls = waiting.result(10)
    waiting = start_caller(pool, middle, "me", "beside", caller.answer, [(calls[0], "rain")], "and be brief")
    client.say("and be brief")
    assert waiting.result(10)[0] == "They said: rain; you said: and be brief"
    assert turns_of(last_request(simulator))[-2:] == [("user", ["functionResponse"]), ("user", ["text"])]


def test_a_programs_own_calls_are_forwarded_to_it_and_all_results_are_in_one_turn(middle, pool, simulator):
    own = [{"functionDeclarations": [{"name": "own", "parametersJsonSchema": CITY}]}]
    client = Client(f"{middle.base_url}/intercept/kept@mixed", tools=own)
    caller = Caller(middle, "responses", "kept:mixed", {"look": CITY})
    waiting = start_caller(pool, middle, "kept", "mixed", caller.ask, "go")
    client.say("call own, look")
    declared = last_request(simulator)["tools"][0]["functionDeclarations"]
    assert [one["name"] for one in declared] == ["own", "look"]
    _, calls = waiting.result(10)
    assert [one["name"] for one in calls] == ["look"]
    call = client.history[-1]["parts"][0]["functionCall"]
    result = {"functionResponse": {"id": call["id"], "name": "own", "response": {"result": "mine"}}}
    client.history.append({"role": "user", "parts": [result]})
    client.say()
    waiting = start_caller(pool, middle, "kept", "mixed", caller.answer, [(calls[0], "theirs")])
    client.say(PROMPT)
    waiting.result(10)
    received = last_request(simulator)["contents"]
    assert turns_of(last_request(simulator)) == [
        ("user", ["text"]),
        ("model", ["functionCall", "functionCall"]),
        ("user", ["functionResponse", "functionResponse"]),
    ]
    assert [part["functionResponse"]["name"] for part in received[-1]["parts"]] == ["own", "look"]


def test_the_caller_waits_until_a_program_with_its_own_tools_has_its_final_reply(middle, pool):
    own = [{"functionDeclarations": [{"name": "own", "parametersJsonSchema": CITY}]}]
    client = Client(f"{middle.base_url}/intercept/kept@own", tools=own)
    caller = Caller(middle, "chat", "kept:own", {"look": CITY})
    waiting = start_caller(pool, middle, "kept", "own", caller.ask, "go")
    client.say("First: call own")
    assert not waiting.done()
    call = client.history[-1]["parts"][-1]["functionCall"]
    result = {"functionResponse": {"id": call["id"], "name": "own", "response": {"result": "mine"}}}
    client.history.append({"role": "user", "parts": [result]})
    last = client.say()
    words, calls = waiting.result(10)
    assert words == "First:" + last
    assert not calls


def test_a_clients_aside_for_json_gets_no_tools_and_is_nobodys_answer(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@aside")
    caller = Caller(middle, "responses", "me:aside", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "aside", caller.ask, "go")
    aside = Client(client.base_url)
    aside.send(aside.request("which model?", generationConfig={"responseMimeType": "application/json"}))
    assert "tools" not in last_request(simulator)
    assert not waiting.done()
    assert client.say("hello") == waiting.result(10)[0]


def test_a_caller_without_tools_gets_the_reply_and_nothing_is_rewritten(middle, pool, simulator):
    client = Client(f"{middle.base_url}/intercept/me@plain", "events")
    caller = Caller(middle, "gemini", "me:plain", {})
    waiting = pool.submit(caller.ask, "go")
    until(lambda: is_awaited(middle, "me", "plain"))
    body = client.request("hello there")
    client.send(body)
    assert simulator.requests[-1].body == body
    assert waiting.result(10)[0] == "You said: hello there"


def test_a_second_concurrent_caller_gets_an_error(middle, pool):
    caller = Caller(middle, "responses", "me:twice", {"look": CITY})
    waiting = start_caller(pool, middle, "me", "twice", caller.ask, "go")
    with pytest.raises(Exception, match="another request is active"):
        Caller(middle, "responses", "me:twice", {"look": CITY}).ask("something else")
    Client(f"{middle.base_url}/intercept/me@twice").say("hello")
    assert waiting.result(10)[0] == "You said: hello"
    assert session_of(middle, "me", "twice").turn.is_delivered


def test_the_model_that_answered_is_named_to_the_caller(middle, pool):
    caller = Caller(middle, "responses", "me:named", {})
    waiting = start_caller(pool, middle, "me", "named", caller.ask, "go")
    Client(f"{middle.base_url}/intercept/me@named").say("hello")
    waiting.result(10)
    until(lambda: middle.passed and middle.passed[-1].session == "named")
    assert MODEL in middle.passed[-1].target
