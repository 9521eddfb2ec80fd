"""The benchmark's requests are what its modes say, and its yardstick translates them."""

import asyncio
import json

import pytest
from benchmarks.bodies import DIALECTS, SIZES, render
from benchmarks.gateway import translator, upstream
from benchmarks.gateway.cases import ROUTES, Case, all_cases, chosen
from benchmarks.gateway.load import Post, WrongAnswer, send
from benchmarks.gateway.traffic import GROWTH, TICKET, traffic
from benchmarks.streams import gemini_whole

from oracles import check_pairs, check_request

KILOBYTES = {"small": (1.5, 2.5), "medium": (28, 34), "large": (280, 330)}
VARIED = ("newmsg", "clients5", "agents2", "fresh")


def bodies(mode, count, start=1, size="small", dialect="chat"):
    return [render(dialect, one.conversation) for one in traffic(size, mode, count, start)]


def tools(mode, count, start=1):
    return [json.dumps(one.conversation.tools) for one in traffic("small", mode, count, start)]


@pytest.mark.parametrize("mode", ["same", *VARIED])
def test_the_same_arguments_make_the_same_bytes(mode):
    assert bodies(mode, 20) == bodies(mode, 20)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_has_its_size_and_is_valid(size, dialect):
    body = bodies("fresh", 1, size=size, dialect=dialect)[0]
    least, most = KILOBYTES[size]
    assert least < len(body) / 1000 < most
    assert check_request(dialect, body, older_model=True) == []
    assert check_pairs(dialect, body, older_model=True) == []


def test_one_mode_repeats_itself():
    assert len(set(bodies("same", 9))) == 1
    assert bodies("same", 1, start=5) == bodies("same", 1, start=9)


@pytest.mark.parametrize("mode", VARIED)
def test_no_request_of_the_others_comes_twice(mode):
    sent = [*bodies(mode, 40, start=1), *bodies(mode, 40, start=41)]
    assert len(set(sent)) == len(sent)


@pytest.mark.parametrize(("mode", "distinct"), [("newmsg", 1), ("clients5", 5), ("agents2", 2), ("fresh", 40)])
def test_tools_are_repeated_or_new_as_the_mode_requires(mode, distinct):
    assert len(set(tools(mode, 40))) == distinct
    assert len({*tools(mode, 40), *tools(mode, 40, start=41)}) == (80 if mode == "fresh" else distinct)


def test_an_agents_conversation_grows_by_a_round_and_then_begins_anew():
    sent = [one.conversation.turns for one in traffic("small", "agents2", 2 * (GROWTH + 1), 1)]
    for agent in (0, 1):
        first, *later, anew = sent[agent::2]
        for turns in later:
            assert turns[: len(first)] == first
            assert [turn.kind for turn in turns[len(first) :]] == ["call", "result"]
            first = turns
        assert len(first) == 1 + 2 * (GROWTH - 1)
        assert len(anew) == 1


@pytest.mark.parametrize("mode", VARIED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_last_ticket_of_a_request_is_its_own(mode, dialect):
    sent = traffic("small", mode, 40, 7)
    for one in sent:
        body = render(dialect, one.conversation)
        assert body[body.rfind(TICKET) :].startswith(one.ticket)
    assert len({one.ticket for one in sent}) == len(sent)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="clients"):
        traffic("small", "clients", 1, 1)


def test_cases_are_chosen_by_name_and_pattern():
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names)
    assert {case.route for case in all_cases()} == set(ROUTES)
    assert [case.name for case in chosen("chat-gemini:large:*")] == [
        name for name in names if name.startswith("chat-gemini:large:")
    ]
    assert chosen("chat-openai:medium:clients7") == [Case(route="chat-openai", size="medium", mode="clients7")]


@pytest.mark.parametrize(
    "name", ["nowhere:small:fresh", "chat-gemini:huge:fresh", "chat-gemini", "chat-gemini:small:fresh:x"]
)
def test_a_case_that_cannot_be_is_refused(name):
    with pytest.raises(ValueError, match="ROUTE:SIZE:MODE"):
        chosen(name)


@pytest.mark.parametrize("size", SIZES)
def test_the_yardstick_translates_requests_that_gemini_takes(size):
    for one in traffic(size, "agents1", 3, 1):
        request = translator._decode_request(render("chat", one.conversation))
        written = translator.to_gemini(request)
        assert check_request("gemini", written) == []
        assert written[written.rfind(TICKET) :].startswith(one.ticket)


def test_the_yardstick_translates_replies():
    reply = json.loads(translator.to_chat(gemini_whole(), "m"))
    message = reply["choices"][0]["message"]
    assert message["content"].startswith("I read both tables")
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["table_00_read", "table_01_read"]
    stream = translator.ChatStream("m")
    pieces = [piece.split(b"\r\n", 1)[1] for piece in upstream._PIECES["gemini"]]
    written = b"".join(stream.feed(piece) for piece in pieces)
    assert written.count(b"data: ") == upstream.EVENTS + 1
    assert written.endswith(b'"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n')


@pytest.mark.parametrize("dialect", upstream._PIECES)
def test_every_stream_of_the_upstream_has_as_many_events_and_a_ticket(dialect):
    assert len(upstream._PIECES[dialect]) == upstream.EVENTS
    assert sum(TICKET in piece for piece in upstream._PIECES[dialect][:4]) == 1
    assert TICKET in upstream._WHOLE[dialect]


@pytest.mark.parametrize(
    "answer", [b"200 OK\r\ncontent-length: 2\r\n\r\nno", b"500 Oops\r\ncontent-length: 3\r\n\r\nyes"]
)
def test_a_wrong_answer_is_noticed(answer):
    async def answered(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 " + answer)
        await reader.read()
        writer.close()

    async def ask():
        async with await asyncio.start_server(answered, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await send(f"http://127.0.0.1:{port}/", [Post(b"", (b"yes",))], 1)

    with pytest.raises(WrongAnswer):
        asyncio.run(ask())
