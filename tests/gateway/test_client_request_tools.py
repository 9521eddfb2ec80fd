"""Tools are validated once for the same bytes of one dialect, and invalid ones are rejected every time."""

import asyncio
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway import client_request as vetting
from dragoman.gateway.client_request import require_valid_tools
from dragoman.interpreter.passthrough import require_readable
from dragoman.interpreter.tools_cache import ToolsCache

BODY = b'{"model":"m","messages":[],"input":"","tools":[{"type":"function","function":{"name":"read"},"name":5}]}'
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def test_tools_validated_in_one_dialect_are_validated_again_in_another():
    cache = ToolsCache()
    require_readable(Call(BODY, "m", stream=False), dialect_named("chat"), cache)
    with pytest.raises(Problem):
        require_readable(Call(BODY, "m", stream=False), dialect_named("responses"), cache)


def test_unreadable_tools_are_rejected_every_time():
    responses, cache = dialect_named("responses"), ToolsCache()
    for text in ("a", "b", "c", "d"):
        body = BODY.replace(b'"input":""', b'"input":[{"role":"user","content":"%b"}]' % text.encode())
        with pytest.raises(Problem):
            require_readable(Call(body, "m"), responses, cache)


def build_call(tools, **rest):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": tools, **rest}).encode()
    return Call(body, "m")


@pytest.fixture
def validated(monkeypatch):
    """The tools that were validated."""
    seen = []
    are_valid = vetting.are_valid
    monkeypatch.setattr(vetting, "are_valid", lambda tools, proofs: (seen.append(tools), are_valid(tools, proofs))[1])
    return seen


def require(call, cache):
    chat = dialect_named("chat")
    sets = []

    def read(raw, where):
        sets.append(cache.read(chat, raw, where))
        return sets[-1].tools

    asyncio.run(require_valid_tools(call, chat, chat.parse_request(call, read_tools=read), sets[-1]))


def test_the_same_tools_are_validated_once(validated):
    cache = ToolsCache()
    for _ in range(3):
        require(build_call(TOOLS), cache)
    assert len(validated) == 1


def test_a_choice_is_held_to_the_tools_of_each_request():
    cache = ToolsCache()
    chosen = {"type": "function", "function": {"name": "write"}}
    for _ in range(2):
        require(build_call(TOOLS), cache)
        with pytest.raises(Problem, match="which is not in tools"):
            require(build_call(TOOLS, tool_choice=chosen), cache)


def test_a_tool_of_a_type_that_chat_does_not_have_is_refused_by_name():
    for tool in ({"type": "shell_of_mine"}, {"type": "bash_20990101", "name": "bash"}):
        with pytest.raises(Problem, match=f'this API has no tools of the type "{tool["type"]}"') as caught:
            require(build_call([*TOOLS, tool]), ToolsCache())
        assert (caught.value.status, caught.value.code) == (400, "invalid_tool")
        assert caught.value.where == f"/tools/{len(TOOLS)}/type"


def test_tools_with_a_fault_are_refused_however_often_they_come():
    cache = ToolsCache()
    wrong = [{"type": "function", "function": {"name": "read", "parameters": {"type": "nothing"}}}]
    for _ in range(2):
        with pytest.raises(Problem) as caught:
            require(build_call(wrong), cache)
        assert caught.value.code == "invalid_tool"
