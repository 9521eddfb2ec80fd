"""Reasoning goes back to its vendor, also from a client that keeps only the text and the calls of an answer.

The law: what the vendor gets from such a client is byte for byte what it gets from one that keeps everything.
"""

import copy
import json
import time

import httpx2
import pytest

from databases import postgres
from dragoman.config import KeyTable, SessionsTable
from dragoman.simulator import Answer
from dragoman.simulator import Call as Made
from dragoman.simulator.apis.messages.write import REDACTED_THINKING_TRIGGER
from dragoman.simulator.runner import in_thread
from dragoman.tools import Registry
from end_to_end.clients import chat, gemini, messages, responses
from end_to_end.scenarios import WEATHER, Scenario
from end_to_end.talk import Result
from server.conftest import run_server_gateway

CLIENTS = {"chat": chat, "messages": messages, "responses": responses, "gemini": gemini}
MODELS = {
    "sonnet-4-5": ("anthropic/claude-sonnet-4-5",),
    "opus-4-8": ("anthropic/claude-opus-4-8",),
    "opus-5-5": ("anthropic/claude-opus-5-5",),
    "gpt-5.2": ("responses/gpt-5.2",),
    "gemini-3.8": ("gemini/gemini-3.8-flash",),
}
DIALECTS = {"anthropic": "messages", "responses": "responses", "gemini": "gemini"}
CELLS = [
    (client, model)
    for client in CLIENTS
    for model, (target,) in MODELS.items()
    if DIALECTS[target.partition("/")[0]] != client
]
RESULTS = (Result(value={"temperature": 41}), Result(value={"temperature": 72}))
THOUGHT = "Two cities: two calls."
QUESTION = "What is the weather in Paris and in Tokyo?"
STORY = "Tell me a story."


def scenario(prompt=QUESTION):
    return Scenario(name="", prompt=prompt, tools=(WEATHER,), thinks=True, answer=Answer(text=""))


def script(received):
    """Call twice, then quote the results; a prompt for a text gets a text."""
    turns = received.request.turns
    if any(turn.results for turn in turns):
        return None
    if "story" in turns[-1].text:
        return Answer(text="Once upon a time.", thought="A story, then.")
    calls = tuple(
        Made(id=f"{at:024x}", name="get_weather", arguments={"city": city}) for at, city in ((1, "Paris"), (2, "Tokyo"))
    )
    return Answer(text="I look it up.", thought=THOUGHT, calls=calls, end="calls")


@pytest.fixture(scope="module")
def gateway():
    with in_thread(script=script) as simulator, run_server_gateway(simulator, models=MODELS) as running:
        yield running


def open_client(gateway, client, model, prompt=QUESTION):
    answers = []
    http = gateway.open(httpx2.Client(timeout=60, event_hooks={"response": [answers.append]}))
    talk = CLIENTS[client].Client(gateway.base_url, http, model, scenario(prompt))
    talk.answers = answers
    return talk


def find_losses(gateway, talk):
    """Return the losses of the last exchange, which may be recorded a moment after its response."""
    exchange, deadline = talk.answers[-1].headers["x-dragoman-exchange"], time.monotonic() + 20
    while True:
        found = [record for record in list(gateway.records) if record.id == exchange]
        if found or time.monotonic() > deadline:
            return (*found[0].losses, *found[0].reply_losses)
        time.sleep(0.005)


def histories(talk):
    return next(value for name, value in vars(talk).items() if name in {"_messages", "_input", "_contents"})


def last_body(gateway):
    """Return what the vendor got last; the thoughts that Gemini does not sign may be left out."""
    body = json.loads(gateway.simulator.requests[-1].body)
    for turn in body.get("contents", ()):
        turn["parts"] = [part for part in turn["parts"] if not part.get("thought") or part.get("thoughtSignature")]
    return body


def find_signed(body):
    """Return every signed part of a request, in sequence."""
    if "contents" in body:
        return [part for turn in body["contents"] for part in turn["parts"] if part.get("thoughtSignature")]
    if "input" in body:
        return [item for item in body["input"] if item.get("type") == "reasoning"]
    blocks = [block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
    return [block for block in blocks if block["type"] in {"thinking", "redacted_thinking"}]


def ask_twice(gateway, talk, *, streamed=False):
    """Continue once as a client that keeps all and once as one that forgets; return both upstream requests."""
    reply = talk.turn(streamed=streamed)
    history = histories(talk)
    before = copy.deepcopy(history)
    go_on(talk, reply, streamed=streamed)
    kept = last_body(gateway)
    history[:] = before
    talk.forget()
    go_on(talk, reply, streamed=streamed)
    return kept, last_body(gateway)


def go_on(talk, reply, *, streamed=False):
    if reply.calls:
        talk.answer(reply.calls, RESULTS[: len(reply.calls)])
    else:
        history = histories(talk)
        following = (
            {"parts": [{"text": "Go on with the story."}]} if hasattr(talk, "_contents") else {"content": "Go on."}
        )
        history.append({"role": "user", **following})
    return talk.turn(streamed=streamed)


def ask_forgetfully(gateway, talk, *, streamed=False):
    """Continue as a client that forgets; return what the vendor gets."""
    reply = talk.turn(streamed=streamed)
    talk.forget()
    go_on(talk, reply, streamed=streamed)
    return last_body(gateway)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("client", "model"), CELLS)
def test_a_client_that_drops_reasoning_sends_the_vendor_what_one_that_keeps_it_sends(gateway, client, model, streamed):
    kept, forgotten = ask_twice(gateway, open_client(gateway, client, model), streamed=streamed)
    assert find_signed(kept)
    assert forgotten == kept


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", ["chat", "responses", "gemini"])
def test_redacted_thinking_goes_back_to_claude(gateway, client, streamed):
    talk = open_client(gateway, client, "sonnet-4-5", f"{QUESTION} {REDACTED_THINKING_TRIGGER}")
    kept, forgotten = ask_twice(gateway, talk, streamed=streamed)
    assert [block["type"] for block in find_signed(kept)] == ["redacted_thinking"]
    assert forgotten == kept


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
def test_the_signature_of_a_text_goes_back_on_it(gateway, client, streamed):
    talk = open_client(gateway, client, "gemini-3.8", STORY)
    body = ask_forgetfully(gateway, talk, streamed=streamed)
    (signed,) = find_signed(body)
    assert signed.keys() == {"text", "thoughtSignature"}
    assert signed["text"] == "Once upon a time."
    assert not [loss for loss in find_losses(gateway, talk) if "thoughtSignature" in loss.where]


@pytest.mark.parametrize("model", ["opus-5-5", "gpt-5.2"])
def test_reasoning_before_an_answer_without_calls_is_not_kept(gateway, model):
    """Another conversation may have the same answer, and no vendor requires it."""
    assert not find_signed(ask_forgetfully(gateway, open_client(gateway, "chat", model, STORY)))


def test_one_block_before_several_calls_goes_back_once_and_first(gateway):
    talk = open_client(gateway, "chat", "sonnet-4-5")
    body = ask_forgetfully(gateway, talk)
    assert body["thinking"]["type"] == "enabled"
    answer = body["messages"][-2]["content"]
    assert [block["type"] for block in answer] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer[0]["thinking"] == THOUGHT


def test_thinking_is_off_and_reported_if_the_call_was_changed(gateway):
    talk = open_client(gateway, "chat", "sonnet-4-5")
    reply = talk.turn(streamed=False)
    talk.forget()
    talk._messages[-1]["tool_calls"][0]["function"]["arguments"] = '{"city":"Oslo"}'
    go_on(talk, reply)
    body = last_body(gateway)
    assert body["thinking"] == {"type": "disabled"}
    assert not find_signed(body)
    losses = find_losses(gateway, talk)
    assert "thinking is off in a tool loop" in next(loss.what for loss in losses if loss.where == "/reasoning_effort")


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_tool_loop_without_thinking_blocks_is_reported_where_the_model_goes_on_without(gateway, client):
    talk = open_client(gateway, client, "opus-4-8")
    reply = talk.turn(streamed=False)
    go_on(talk, reply)
    assert find_signed(last_body(gateway))
    assert "without thinking blocks" not in str(find_losses(gateway, talk))
    talk = open_client(gateway, client, "opus-4-8")
    reply = talk.turn(streamed=False)
    history = copy.deepcopy(histories(talk))
    talk.forget()
    changed = json.loads(json.dumps(histories(talk)).replace("Paris", "Oslo"))
    assert changed != history
    histories(talk)[:] = changed
    go_on(talk, reply)
    body = last_body(gateway)
    assert not find_signed(body)
    assert body["thinking"]["type"] == "adaptive"
    (loss,) = [loss for loss in find_losses(gateway, talk) if "without thinking blocks" in loss.what]
    assert (loss.kind, loss.grade) == ("approximated", "informational")


def test_a_client_that_returns_the_text_of_reasoning_loses_nothing(gateway):
    talk = open_client(gateway, "chat", "sonnet-4-5")
    reply = talk.turn(streamed=True)
    text = talk._messages[-1]["reasoning_content"]
    assert text == THOUGHT
    talk.forget()
    talk._messages[-1]["reasoning_content"] = text
    go_on(talk, reply)
    assert [block["thinking"] for block in find_signed(last_body(gateway))] == [THOUGHT]
    assert not [loss for loss in find_losses(gateway, talk) if "reasoning_content" in loss.where]


def test_reasoning_that_no_longer_fits_the_history_is_left_out_and_reported(gateway):
    talk = open_client(gateway, "chat", "opus-5-5")
    reply = talk.turn(streamed=False)
    talk.forget()
    talk._messages[0]["content"] = "You are talkative."
    before = len(gateway.simulator.requests)
    assert go_on(talk, reply).text
    assert len(gateway.simulator.requests) == before + 2
    assert not find_signed(last_body(gateway))
    assert "rejected the saved reasoning" in str(find_losses(gateway, talk))


def look() -> str:
    """Look again."""
    return "nothing new"


IN_RUN = {"x-dragoman-tools": "look"}


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_goes_on_without_reasoning_that_no_longer_fits_the_history(streamed):
    registry = Registry()
    registry.register(look)
    with in_thread(script=script) as simulator, run_server_gateway(simulator, models=MODELS, tools=registry) as gateway:
        talk = open_client(gateway, "chat", "opus-5-5")
        reply = talk.turn(streamed=streamed)
        talk.forget()
        talk._messages[0]["content"] = "You are talkative."
        talk._sdk = talk._sdk.with_options(default_headers=IN_RUN)
        before = len(gateway.simulator.requests)
        assert go_on(talk, reply, streamed=streamed).text
        assert len(gateway.simulator.requests) == before + 2
        assert not find_signed(last_body(gateway))
        assert "rejected the saved reasoning" in str(find_losses(gateway, talk))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("thinking", [None, {"type": "enabled", "budget_tokens": 2000}])
def test_a_run_goes_on_without_the_signatures_of_its_client_that_the_vendor_rejects(thinking, strict):
    registry = Registry()
    registry.register(look)
    blocks = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVkIGVsc2V3aGVyZQ=="},
        {"type": "tool_use", "id": "t1", "name": "mine", "input": {}},
    ]
    body = {
        "model": "sonnet-4-5",
        "max_tokens": 5000,
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "y"}]},
        ],
        "tools": [{"name": "mine", "input_schema": {"type": "object"}}],
    }
    if thinking is not None:
        body["thinking"] = thinking
    with in_thread() as simulator, run_server_gateway(simulator, models=MODELS, tools=registry) as gateway:
        headers = IN_RUN | ({"x-dragoman-strict": "true"} if strict else {})
        reply = httpx2.post(f"{gateway.base_url}/v1/messages", json=body, headers=headers, timeout=60)
        if strict:
            assert reply.status_code == 400
            assert len(gateway.simulator.requests) == 1
            return
        assert reply.status_code == 200, reply.text
        assert len(gateway.simulator.requests) == 2
        sent = json.loads(gateway.simulator.requests[-1].body)
        assert not find_signed(sent)
        assert sent.get("thinking", {}).get("type", "disabled") == "disabled"
        assert "rejected" in reply.headers["x-dragoman-losses"]


@pytest.fixture
def database(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/s.db"
        return
    with postgres() as server:
        yield server.url


@pytest.mark.parametrize("model", ["sonnet-4-5", "gpt-5.2"])
@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_reasoning_outlives_the_gateway_that_saved_it(database, model):
    sessions = SessionsTable(url=database)
    with in_thread(script=script) as simulator:
        with run_server_gateway(simulator, models=MODELS, sessions=sessions) as first:
            talk = open_client(first, "chat", model)
            reply = talk.turn(streamed=True)
        talk.forget()
        with run_server_gateway(simulator, models=MODELS, sessions=sessions) as second:
            again = open_client(second, "chat", model)
            histories(again)[:] = histories(talk)
            go_on(again, reply)
            assert len(find_signed(last_body(second))) == 1


def test_an_owner_gets_no_reasoning_of_another():
    keys = (KeyTable(key="a", name="ann"), KeyTable(key="b", name="bob"))
    with in_thread(script=script) as simulator, run_server_gateway(simulator, models=MODELS, keys=keys) as gateway:
        talks = {}
        for key in ("a", "b"):
            talks[key] = open_client(gateway, "chat", "sonnet-4-5")
            talks[key]._sdk = talks[key]._sdk.with_options(api_key=key)
        reply = talks["a"].turn(streamed=False)
        talks["a"].forget()
        histories(talks["b"])[:] = histories(talks["a"])
        for key, count in (("b", 0), ("a", 1)):
            go_on(talks[key], reply)
            assert len(find_signed(last_body(gateway))) == count
