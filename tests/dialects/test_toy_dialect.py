"""A dialect and an upstream added from outside the package, as the how-to pages `add-a-*.md` say it."""

import json
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cli.console import run
from dialects.toy import DIALECT
from dialects.toy.upstream import KIND
from dragoman import Call, Context, Problem, StreamTranslator, translate_error, translate_request, translate_response
from dragoman.config import ConfigError, UpstreamTable, load, read_upstreams
from dragoman.dialects import NAMES
from dragoman.dialects import registry as dialects
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.job import dialect_of
from dragoman.simulator import Answer, Received
from dragoman.simulator import Call as Made
from dragoman.simulator.runner import in_thread
from dragoman.upstreams import registry as upstreams
from server import processes
from server.conftest import run_server_gateway

FAULTS = {
    model: (f"gemini/gemini-3.8-flash~{fault}",)
    for model, fault in {"busy": "429,retry-after=50", "broken*": "stream-error*", "stalled": "stall,after=2"}.items()
}
"""Models that fail, as the simulator reads it behind their names; the fault's options may follow `broken`."""
TOOL = {
    "tool": "get_weather",
    "about": "Tell the weather.",
    "takes": {"type": "object", "properties": {"city": {"type": "string"}}},
}
ASKED = {
    "model": "toy-1",
    "lines": [
        {"type": "say", "by": "rule", "text": "Be brief."},
        {"type": "say", "by": "human", "text": "How warm is Tokyo?"},
        {"type": "call", "id": "c1", "tool": "get_weather", "input": '{"city":"Tokyo"}'},
        {"type": "result", "of": "c1", "text": "21 degrees"},
    ],
    "tools": [TOOL],
    "limit": 500,
}
REPLY = {
    "id": "toy_1",
    "model": "toy-1",
    "lines": [
        {"type": "say", "by": "model", "text": "I will look."},
        {"type": "call", "id": "c2", "tool": "get_weather", "input": '{"city":"Oslo"}'},
    ],
    "end": "calls",
    "tokens": {"read": 7, "written": 5},
}
STREAM = [
    {"start": {"id": "toy_1", "model": "toy-1"}},
    {"open": {"type": "say", "by": "model", "text": ""}},
    {"more": "I will "},
    {"more": "look."},
    {"close": True},
    {"open": {"type": "call", "id": "c2", "tool": "get_weather", "input": ""}},
    {"more": '{"city":'},
    {"more": '"Oslo"}'},
    {"close": True},
    {"end": "calls", "tokens": {"read": 7, "written": 5}},
]
SSE = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in STREAM)
QUESTION = "How warm is Tokyo?"


@pytest.fixture
def toy():
    dialects.register(DIALECT)
    upstreams.register(KIND)
    yield
    upstreams.unregister(KIND.name)
    dialects.unregister(DIALECT.name)


def encode(value) -> bytes:
    return json.dumps(value).encode()


def frames(stream: bytes) -> list:
    return [json.loads(line[6:]) for line in stream.split(b"\n") if line.startswith(b"data: ")]


def lines_of(stream: bytes) -> list[dict]:
    """Put the lines of a stream together."""
    lines = []
    for frame in frames(stream):
        if "open" in frame:
            lines.append(frame["open"])
        elif "more" in frame:
            grown = "text" if lines[-1]["type"] == "say" else "input"
            lines[-1][grown] += frame["more"]
    return lines


class TestLibrary:
    @pytest.mark.parametrize("other", NAMES)
    def test_a_request_goes_there_and_back_without_loss(self, toy, other):
        forward = translate_request(Call(encode(ASKED)), "toy", other, model=dialect_named(other).api.default_model)
        assert not [loss for loss in forward.losses if loss.kind == "dropped"]
        back = translate_request(forward.call, other, "toy", model="toy-1")
        body = json.loads(back.call.body)
        assert body["lines"][:2] == ASKED["lines"][:2]
        call, result = body["lines"][2:]
        assert (call["tool"], json.loads(call["input"])) == ("get_weather", {"city": "Tokyo"})
        assert "21 degrees" in result["text"]
        assert call["id"] == result["of"]
        assert body["tools"] == ASKED["tools"]

    @pytest.mark.parametrize("other", NAMES)
    def test_a_reply_with_a_call_goes_there_and_back(self, toy, other):
        forward = translate_response(encode(REPLY), "toy", other)
        assert not forward.losses
        back = json.loads(translate_response(forward.body, other, "toy").body)
        assert [line["type"] for line in back["lines"]] == ["say", "call"]
        assert json.loads(back["lines"][1]["input"]) == {"city": "Oslo"}
        assert (back["end"], back["tokens"]) == ("calls", REPLY["tokens"])

    @pytest.mark.parametrize("other", NAMES)
    @pytest.mark.parametrize("size", [1, 7, 10_000])
    def test_a_stream_goes_there_and_back_in_pieces_of_any_size(self, toy, other, size):
        forward, back = StreamTranslator("toy", other), StreamTranslator(other, "toy")
        events = b"".join(forward.feed(SSE[at : at + size]) for at in range(0, len(SSE), size)) + forward.close()
        events = back.feed(events) + back.close()
        assert [line["type"] for line in lines_of(events)] == ["say", "call"]
        assert json.loads(lines_of(events)[1]["input"]) == {"city": "Oslo"}
        assert frames(events)[-1] == STREAM[-1]

    @pytest.mark.parametrize("other", NAMES)
    def test_an_error_is_translated_in_both_directions(self, toy, other):
        error = encode({"error": {"kind": "rate_limit", "message": "slower, please"}})
        forward = translate_error(429, {}, error, "toy", other)
        assert (forward.status, b"slower, please" in forward.body) == (429, True)
        back = translate_error(forward.status, {}, forward.body, other, "toy")
        assert json.loads(back.body) == json.loads(error)

    def test_a_cut_stream_ends_in_an_error(self, toy):
        translator = StreamTranslator("toy", "chat")
        events = translator.feed(SSE[: SSE.index(b'data: {"close"')]) + translator.close()
        assert b"the stream ended before its last event" in events

    def test_unknown_fields_are_losses_elsewhere_and_stay_in_the_same_dialect(self, toy):
        asked = {**ASKED, "loud": False, "pitch": 3}
        assert [loss.where for loss in translate_request(Call(encode(asked)), "toy", "chat").losses] == ["/pitch"]
        parsed = DIALECT.parse_request(Call(encode(asked)))
        assert json.loads(DIALECT.render_request(parsed, DIALECT.traits[0][1]).body) == asked

    def test_a_scalar_field_is_one_row_in_wire(self, toy):
        asked = {**ASKED, "heat": 0.5}
        forward = translate_request(Call(encode(asked)), "toy", "chat", model="gpt-4.1")
        assert json.loads(forward.call.body)["temperature"] == 0.5
        assert json.loads(translate_request(forward.call, "chat", "toy").call.body)["heat"] == 0.5
        lost = translate_request(Call(encode(asked)), "toy", "messages", model="claude-opus-5").losses
        assert [loss.where for loss in lost] == ["/heat"]

    def test_thoughts_that_toy_cannot_express_are_reported(self, toy):
        reply = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
        content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "yes"}]
        translated = translate_response(
            encode({**reply, "content": content, "usage": {}}), "messages", "toy", Context()
        )
        assert [line["text"] for line in json.loads(translated.body)["lines"]] == ["yes"]
        assert [(loss.where, loss.leaves) for loss in translated.losses] == [("/content/0", 3)]

    def test_a_request_is_recognised_by_the_name_of_its_conversation(self, toy):
        assert dialect_of(encode(ASKED)) == "toy"


class TestRegistry:
    def test_a_name_is_taken_once(self, toy):
        with pytest.raises(ValueError, match="toy"):
            dialects.register(DIALECT)
        with pytest.raises(ValueError, match="toyland"):
            upstreams.register(KIND)

    def test_what_the_package_has_cannot_be_removed(self):
        with pytest.raises(ValueError, match="chat"):
            dialects.unregister("chat")
        with pytest.raises(ValueError, match="openai"):
            upstreams.unregister("openai")

    def test_without_registration_the_dialect_is_unknown(self, tmp_path):
        with pytest.raises(Problem, match="unknown dialect 'toy'"):
            translate_request(Call(encode(ASKED)), "toy", "chat")
        file = tmp_path / "dragoman.toml"
        file.write_text('[upstreams.t]\nkind = "toyland"\n')
        with pytest.raises(ConfigError, match="use one of gemini"):
            load(file, {})


def install(directory: Path) -> None:
    """Write what an installer writes for a package with entry points."""
    metadata = directory / "toy_dragoman-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-dragoman\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[dragoman.dialects]\ntoy = dialects.toy:DIALECT\n[dragoman.upstreams]\ntoyland = dialects.toy.upstream:KIND\n"
    )


@pytest.fixture
def installed(tmp_path, monkeypatch):
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    dialects.unregister("toy")
    upstreams.unregister("toyland")


class TestCommand:
    def test_translate_offers_the_dialect_of_an_installed_package(self, installed, monkeypatch, tmp_path):
        code, written, _ = run(
            monkeypatch,
            tmp_path,
            ["translate", "request", "--from", "toy", "--to", "messages", "--model", "claude-opus-5"],
            encode(ASKED),
        )
        assert (code, json.loads(written)["system"]) == (0, "Be brief.")
        code, written, _ = run(monkeypatch, tmp_path, ["translate", "stream", "--from", "toy", "--to", "chat"], SSE)
        assert (code, written.endswith(b"data: [DONE]\n\n")) == (0, True)
        code, written, _ = run(
            monkeypatch, tmp_path, ["translate", "response", "--from", "toy", "--to", "core"], encode(REPLY)
        )
        assert [part["type"] for part in json.loads(written)["parts"]] == ["text", "tool_call"]

    def test_a_batch_takes_it_too(self, installed, monkeypatch, tmp_path):
        line = encode(
            {"id": 1, "op": "request", "from": "toy", "to": "gemini", "model": "gemini-3-flash", "body": ASKED}
        )
        code, written, _ = run(monkeypatch, tmp_path, ["translate", "--batch"], line)
        assert (code, json.loads(written)["ok"]) == (0, True)

    def test_a_configuration_may_name_its_upstream(self, installed, tmp_path):
        file = tmp_path / "dragoman.toml"
        file.write_text('[upstreams.t]\nkind = "toyland"\napi_key = "k"\n')
        assert load(file, {}).upstreams["t"].kind == "toyland"
        assert read_upstreams({"TOY_API_KEY": "k"})["toyland"].api_key == "k"
        file.write_text('[upstreams.t]\nkind = "toyland"\n')
        with pytest.raises(ConfigError, match="TOY_API_KEY"):
            load(file, {})

    def test_serve_serves_it_in_a_process_of_its_own(self, tmp_path):
        install(tmp_path)
        tests = Path(__file__).parents[1]
        paths = os.pathsep.join([str(tmp_path), str(tests), os.environ.get("PYTHONPATH", "")])
        with processes.serve(tmp_path, PYTHONPATH=paths) as command:
            asked = {
                "model": "gemini-3-flash",
                "lines": [{"type": "say", "by": "human", "text": "Hello"}],
                "stream": False,
            }
            assert talk(command.base_url, asked)[-1]["by"] == "model"


def script(received: Received) -> Answer | None:
    """Call the tool at the question; the answer to its result is the simulator's own."""
    calls = (Made(id="0" * 24, name="get_weather", arguments={"city": "Tokyo"}),)
    return None if received.request.turns[-1].results else Answer(calls=calls, end="calls")


@pytest.fixture
def gateways(toy):
    """A gateway whose upstreams are simulators, and one whose only upstream is the first, in Toy."""
    with in_thread(script=script) as simulator, run_server_gateway(simulator, models=FAULTS) as near:
        far = {"toys": UpstreamTable(kind="toyland", base_url=near.base_url)}
        models = {f"toy-{model}": (f"toys/{model}",) for model in ("gem", *FAULTS)}
        with run_server_gateway(simulator, upstreams=far, models=models) as behind:
            yield near.base_url, behind.base_url


@pytest.mark.parametrize("stream", [False, True])
class TestGateway:
    @pytest.mark.parametrize("model", ["gem", "claude", "gpt", "resp"])
    def test_a_client_uses_toy_and_the_upstream_another_dialect(self, gateways, model, stream):
        asked = {
            "model": model,
            "lines": [{"type": "say", "by": "human", "text": QUESTION}],
            "tools": [TOOL],
            "stream": stream,
        }
        call = talk(gateways[0], asked)[-1]
        assert (call["tool"], json.loads(call["input"])) == ("get_weather", {"city": "Tokyo"})
        asked["lines"] += [call, {"type": "result", "of": call["id"], "text": "21 degrees"}]
        assert "21 degrees" in talk(gateways[0], asked)[-1]["text"]

    def test_a_client_uses_chat_and_the_upstream_toy(self, gateways, stream):
        function = {"name": "get_weather", "parameters": TOOL["takes"]}
        asked = {
            "model": "toy-gem",
            "messages": [{"role": "user", "content": QUESTION}],
            "stream": stream,
            "tools": [{"type": "function", "function": function}],
        }
        reply = httpx2.post(f"{gateways[1]}/v1/chat/completions", json=asked)
        assert (reply.status_code, reply.headers["x-dragoman-upstream"]) == (200, "toys")
        assert ("text/event-stream" in reply.headers["content-type"]) == stream
        assert reply.text.endswith("data: [DONE]\n\n") == stream
        assert chat_call(reply.content, stream) == ("get_weather", {"city": "Tokyo"})

    def test_a_client_and_the_upstream_use_toy(self, gateways, stream):
        asked = {
            "model": "toy-gem",
            "lines": [{"type": "say", "by": "human", "text": QUESTION}],
            "tools": [TOOL],
            "stream": stream,
        }
        assert talk(gateways[1], asked)[-1]["tool"] == "get_weather"

    def test_a_conversation_is_stored(self, gateways, stream):
        headers = {"x-dragoman-conversation": f"weather-{stream}"}
        asked = {
            "model": "gem",
            "lines": [{"type": "say", "by": "human", "text": QUESTION}],
            "tools": [TOOL],
            "stream": stream,
        }
        call = talk(gateways[0], asked, headers)[-1]
        asked["lines"] = [{"type": "result", "of": call["id"], "text": "21 degrees"}]
        assert "21 degrees" in talk(gateways[0], asked, headers)[-1]["text"]

    @pytest.mark.parametrize(("at", "prefix"), [(0, ""), (1, "toy-")])
    def test_an_upstreams_error_reaches_a_client_of_toy(self, gateways, stream, at, prefix):
        asked = {"model": f"{prefix}busy", "lines": [{"type": "say", "by": "human", "text": "Hi"}], "stream": stream}
        reply = httpx2.post(f"{gateways[at]}/toy/talk", json=asked)
        assert (reply.status_code, reply.json()["error"]["kind"]) == (429, "rate_limit")

    def test_an_error_of_a_toy_upstream_reaches_a_client_of_messages(self, gateways, stream):
        asked = {"model": "toy-busy", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        reply = httpx2.post(f"{gateways[1]}/v1/messages", json={**asked, "stream": stream})
        assert (reply.status_code, reply.json()["error"]["type"]) == (429, "rate_limit_error")

    def test_errors_are_in_toy(self, gateways, stream):
        reply = httpx2.post(f"{gateways[0]}/toy/talk", json={"model": "nobody", "lines": [], "stream": stream})
        assert (reply.status_code, reply.json()["error"]["kind"]) == (404, "not_found")
        for path in ("/toy/elsewhere", "/toy/talk"):
            assert set(httpx2.get(gateways[0] + path).json()["error"]) == {"kind", "message"}


class TestGatewayStream:
    @pytest.mark.parametrize(("at", "prefix"), [(0, ""), (1, "toy-")])
    def test_the_first_text_arrives_while_the_upstream_is_still_sending(self, gateways, at, prefix):
        with open_stream(gateways[at], f"{prefix}stalled") as reply:
            arrived = (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: "))
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert [*next(arrived), *next(arrived), *next(arrived)] == ["start", "open", "more"]

    @pytest.mark.parametrize(("at", "prefix"), [(0, ""), (1, "toy-")])
    def test_an_error_in_the_middle_of_a_stream_is_its_last_frame(self, gateways, at, prefix):
        # An error that arrives in one packet with the first words has its true status; on a busy machine it must wait.
        for delay in (0.05, 0.5, 3):
            with open_stream(gateways[at], f"{prefix}broken,delay={delay}") as reply:
                body = reply.read()
            if reply.status_code == 200:
                break
            assert (reply.status_code, b"Simulated error in the stream" in body) == (502, True), body
        received = frames(body)
        assert reply.status_code == 200
        assert [next(iter(frame)) for frame in received[:3]] == ["start", "open", "more"], body
        assert set(received[-1]["error"]) == {"kind", "message"}
        assert not [frame for frame in received if "end" in frame]


def open_stream(base_url: str, model: str):
    lines = [{"type": "say", "by": "human", "text": "Tell me more about the weather in Tokyo."}]
    return httpx2.stream("POST", f"{base_url}/toy/talk", json={"model": model, "lines": lines, "stream": True})


def chat_call(body: bytes, stream: bool) -> tuple[str, Any]:
    """Return the name and the arguments of the only call in a reply of Chat."""
    member = "delta" if stream else "message"
    replies = frames(body.replace(b"data: [DONE]", b"")) if stream else [json.loads(body)]
    choices = [choice[member] for reply in replies for choice in reply["choices"]]
    functions = [call["function"] for choice in choices for call in choice.get("tool_calls") or ()]
    name = "".join(function.get("name") or "" for function in functions)
    return name, json.loads("".join(function["arguments"] for function in functions))


def talk(base_url: str, asked: dict, headers: dict[str, str] | None = None) -> list[dict]:
    reply = httpx2.post(f"{base_url}/toy/talk", json=asked, headers=headers or {})
    assert reply.status_code == 200, reply.text
    return lines_of(reply.content) if asked["stream"] else reply.json()["lines"]


def test_models_of_its_family_go_to_its_upstream_and_are_listed(toy):
    toys = UpstreamTable(kind="toyland")
    with in_thread() as simulator, run_server_gateway(simulator, upstreams={"toys": toys}) as gateway:
        reply = httpx2.post(f"{gateway.base_url}/toy/talk", json={"model": "toy-7", "lines": []})
        assert reply.headers["x-dragoman-upstream"] == "toys"
        for path in ("/toy/toys", "/v1/models"):
            listed = httpx2.get(gateway.base_url + path, headers={"x-toy": "1"}).json()["toys"]
            assert "gemini-3.8-flash" in {row["toy"] for row in listed}
