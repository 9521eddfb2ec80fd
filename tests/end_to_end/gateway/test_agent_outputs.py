"""Whatever a tool of an agent returns, the conversation continues on every kind of upstream."""

import pytest

from dragoman.core.parts import Inline, Media, Plain, Text, ToolResult
from dragoman.core.request import Tool
from dragoman.gateway.agents.settings import AgentTable
from dragoman.simulator import Answer, Call
from dragoman.simulator.runner import in_thread
from dragoman.tools import Handler, Registry
from server.agents import Client
from server.conftest import run_server_gateway

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
UPSTREAMS = ["gem", "vgem", "claude", "gpt", "resp"]


def inline(kind, media_type, data="QUJD"):
    return Media(kind=kind, media_type=media_type, source=Inline(data))


OUTPUTS = {
    "picture": inline("image", "image/png", PIXEL),
    "drawing": inline("image", "image/svg+xml"),
    "sound": inline("audio", "audio/wav"),
    "film": inline("video", "video/mp4"),
    "paper": inline("document", "application/pdf", "JVBERi0xLjQK"),
    "page": Media(kind="document", media_type="text/html", source=Plain("<p>"), name="x://page"),
    "table": inline("document", "text/csv", "YSxi"),
    "bytes": b"\xfe\xdc",
    "archive": inline("document", "application/zip"),
    "nothing": None,
    "blank": "",
    "empty": ToolResult(call_id="", content=()),
    "failed_picture": ToolResult(
        call_id="", content=(Text(text="no"), inline("image", "image/png", PIXEL)), failed=True
    ),
}


def write_script(received):
    turns = received.request.turns
    if any(turn.results for turn in turns):
        return Answer(text="I go on.")
    return Answer(calls=(Call(id="c0", name=turns[0].text, arguments={}),), end="calls")


def toolbox():
    tools = Registry()
    for name, output in OUTPUTS.items():

        async def give(_arguments, output=output):
            return output

        definition = Tool(name=name, description="Give something.", parameters=b'{"type": "object"}')
        tools.register(Handler(definition=definition, run=give))
    return tools


@pytest.fixture(scope="module")
def gateway():
    agents = {f"my-{name}": AgentTable(model=name, tools=tuple(OUTPUTS)) for name in UPSTREAMS}
    with (
        in_thread(script=write_script) as simulator,
        run_server_gateway(simulator, agents=agents, tools=toolbox()) as running,
    ):
        yield running


def ways():
    """Every output to every upstream; those that an upstream is particular about in the fast part."""
    quick = {("page", "claude"), ("bytes", "gem"), ("table", "gem"), ("sound", "gem"), ("failed_picture", "claude")}
    for way in ((output, upstream) for output in OUTPUTS for upstream in UPSTREAMS):
        yield pytest.param(*way, id="-".join(way), marks=() if way in quick else pytest.mark.slow)


@pytest.mark.parametrize(("output", "upstream"), list(ways()))
def test_no_output_of_a_tool_ends_a_conversation(gateway, output, upstream):
    assert Client(gateway, "chat", stream=False, model=f"my-{upstream}").ask(output).text == "I go on."
