"""A store that an older version wrote: everything in it is read, and every conversation continues.

The dumps hold what clients did with a gateway of that version: a chat with a signed tool call, a named conversation, a
stored response with a call, a conversation with metadata, a background response, an MCP session, and an agent run that
stopped in the middle of a tool call.
"""

import asyncio
import json
import sqlite3
from pathlib import Path

import openai
import psycopg
import pytest
from mcp import Client

from dragoman.agent import closed
from dragoman.config import Config, ServerTable, SessionsTable, UpstreamTable
from dragoman.core.parts import Text, ToolCall, ToolResult
from dragoman.core.serialization import decode_messages
from dragoman.gateway.agents.settings import AgentTable
from dragoman.http.server import run_in_thread
from dragoman.mcp.settings import McpTable
from dragoman.server.runner import running
from dragoman.sessions.conversations import Conversations
from dragoman.sessions.runs import RunMessage
from dragoman.sessions.store import Store, open_store
from dragoman.simulator.runner import in_thread
from dragoman.tools import tool
from sessions.stored_runs import find_run

DUMPS = Path(__file__).parent / "dumps"
OWNER = "local"
QUESTION = "What is the weather in Tokyo?"
CITY = '{"city":"Tokyo"}'
SIGNED_CALL = "euj3tojj"
RESPONSE, RESPONSE_CALL = "resp_42369bdbc0744434b85ee1df8949ec5a", "3jradiq0"
TRIP_CALL = "3qxc2xmv"
CONVERSATION, LAST_RESPONSE = "conv_9833c2ec6ffc43ba9924e98276bea36b", "resp_512f13dd619943cfb6a6c3fe39d3da10"
BACKGROUND = "resp_259fc3b0279746d885c715b888187304"
INTERRUPTED = "resp_4466a1e7c0f34e79b9b90f5615f2c3de"


@pytest.fixture(params=["sqlite", "postgresql"])
def old_store(request, tmp_path):
    """The URL of a database with the rows of the dump."""
    dump = (DUMPS / f"{request.param}.sql").read_text(encoding="utf-8")
    if request.param == "sqlite":
        path = tmp_path / "sessions.sqlite3"
        connection = sqlite3.connect(path)
        connection.executescript(dump)
        connection.close()
        yield f"sqlite:///{path}"
        return
    server_url = request.getfixturevalue("postgres_url")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE old_store")
        url = server_url.replace("/postgres?", "/old_store?")
        with psycopg.connect(url) as other:
            other.execute(dump)
        yield url
        connection.execute("DROP DATABASE old_store WITH (FORCE)")


def with_store(url, use):
    async def run():
        store = open_store(url)
        try:
            return await use(store)
        finally:
            await store.close()

    return asyncio.run(run())


def test_every_kind_of_row_is_read(old_store):
    async def read(store: Store) -> None:
        conversation, history = await store.load_conversation(OWNER, CONVERSATION)
        assert conversation.metadata == b'{"topic":"weather"}'
        assert [item.is_output for item in history.items] == [False, False, True]
        assert json.loads(history.items[0].body)["content"] == "My name is Ann."
        assert history.last.id == LAST_RESPONSE
        turn = await store.find_turn(OWNER, RESPONSE)
        assert dict(turn.calls) == {RESPONSE_CALL: "get_weather"}
        assert json.loads(turn.settings)["tools"][0]["name"] == "get_weather"
        item = turn.items[-1]
        assert await store.find_items(OWNER, [item.id]) == {item.id: item.body}
        signatures = await store.signatures.find(OWNER, [SIGNED_CALL, TRIP_CALL, RESPONSE_CALL])
        assert signatures.keys() == {SIGNED_CALL, TRIP_CALL, RESPONSE_CALL}
        assert {row.issuer for found in signatures.values() for row in found.values()} == {"google"}
        assert await store.find_blobs(OWNER, ["call_aside"]) == {"call_aside": b'{"kept":"aside"}'}
        finished = await find_run(store, OWNER, "a-finished-run")
        assert (finished.status, finished.summary) == ("finished", b'{"turns":1}')
        assert finished.entries == (b'{"first":1}', b'{"second":2}')
        assert (await find_run(store, OWNER, "a-silent-run")).status == "interrupted"
        assert RunMessage(OWNER, "a-silent-run", "q1", b'{"yes":true}') in await store.runs.list_messages()
        # The holder is long gone, so the claim is free.
        assert await store.claims.acquire(OWNER, "a claim", "another holder")

    with_store(old_store, read)


def test_a_session_of_mcp_is_restored_as_messages(old_store):
    async def read(store: Store) -> None:
        opened = await Conversations(store, hours=0, max_messages=0).open(OWNER, "notes")
        assert opened.messages[0].parts == (Text(text="Who are you?"),)
        assert [message.role for message in opened.messages] == ["user", "assistant"]

    with_store(old_store, read)


def lookup(word: str) -> str:
    """Look a word up."""
    return f"{word}: an interpreter"


@pytest.fixture
def simulator():
    with in_thread() as simulator:
        yield simulator


@pytest.fixture
def gateway(old_store, simulator):
    config = Config(
        server=ServerTable(log="off"),
        upstreams={"gemini": UpstreamTable(kind="gemini", base_url=simulator.base_url, api_key="k")},
        models={"gem": ("gemini/gemini-3.8-flash",)},
        # The dump is old: nothing in it may expire.
        sessions=SessionsTable(url=old_store, keep_days=0),
        mcp=McpTable(session_hours=0),
        agents={"helper": AgentTable(model="gem", tools=("lookup",))},
    )
    with run_in_thread(lambda: running(config, port=0, grace=0.5, tools=[tool(lookup)]), "gateway") as started:
        yield started


@pytest.fixture
def client(gateway):
    with openai.OpenAI(base_url=f"{gateway.base_url}/v1", api_key="k", max_retries=0) as client:
        yield client


def result_of(call):
    return {"type": "function_call_output", "call_id": call, "output": '{"temp":72}'}


def test_a_stored_response_is_shown_and_continues(client):
    shown = client.responses.retrieve(RESPONSE)
    assert shown.output[-1].arguments == CITY
    (asked,) = client.responses.input_items.list(RESPONSE).data
    assert asked.content[0].text == QUESTION
    following = client.responses.create(
        model="gem", previous_response_id=RESPONSE, input=[result_of(RESPONSE_CALL)], tools=[]
    )
    assert "72" in following.output_text
    assert client.responses.retrieve(BACKGROUND).status == "completed"


def test_a_conversation_with_metadata_continues(client):
    assert client.conversations.retrieve(CONVERSATION).metadata == {"topic": "weather"}
    client.responses.create(model="gem", conversation=CONVERSATION, input="Who am I?")
    items = client.conversations.items.list(CONVERSATION, order="asc").data
    assert [item.role for item in items] == ["user", "user", "assistant", "user", "assistant"]
    assert client.conversations.delete(CONVERSATION).deleted


def test_a_conversation_named_by_a_header_continues(client, simulator):
    reply = client.chat.completions.create(
        model="gem",
        messages=[{"role": "tool", "tool_call_id": TRIP_CALL, "content": '{"temp":72}'}],
        extra_headers={"x-dragoman-conversation": "trip"},
    )
    assert "72" in reply.choices[0].message.content
    sent = simulator.requests[-1].json()
    assert sent["contents"][0]["parts"] == [{"text": QUESTION}]


def test_a_stored_signature_goes_back_on_the_call_of_a_client_that_dropped_it(client, simulator, old_store):
    called = {"id": SIGNED_CALL, "type": "function", "function": {"name": "get_weather", "arguments": CITY}}
    reply = client.chat.completions.create(
        model="gem",
        messages=[
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": SIGNED_CALL, "content": '{"temp":72}'},
        ],
    )
    assert "72" in reply.choices[0].message.content
    stored = with_store(old_store, lambda store: store.signatures.find(OWNER, [SIGNED_CALL]))
    (row,) = stored[SIGNED_CALL].values()
    sent = simulator.requests[-1].json()["contents"]
    assert [part["thoughtSignature"] for turn in sent for part in turn["parts"] if "functionCall" in part] == [
        row.value
    ]


def test_an_interrupted_run_has_failed_and_its_history_continues(client, simulator, old_store):
    assert client.responses.retrieve(INTERRUPTED).status == "failed"
    run = with_store(old_store, lambda store: find_run(store, OWNER, f"run_{INTERRUPTED}"))
    assert run.status == "interrupted"
    history = closed([message for entry in run.entries for message in decode_messages(entry)])
    assert [type(part) for message in history for part in message.parts] == [Text, ToolCall, ToolResult]
    following = client.responses.create(model="helper", previous_response_id=INTERRUPTED, input="Go on.")
    assert following.status == "completed"
    assert "Please use lookup." in simulator.requests[-1].body.decode()


def test_a_session_of_mcp_continues(gateway, simulator):
    async def query():
        async with Client(f"{gateway.base_url}/mcp") as client:
            return await client.call_tool("query", {"prompt": "And what can you do?", "session_id": "notes"})

    assert asyncio.run(query()).structured_content["session_id"] == "notes"
    sent = simulator.requests[-1].json()["contents"]
    assert [turn["role"] for turn in sent] == ["user", "model", "user"]
