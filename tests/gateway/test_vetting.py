"""What is known of tools that came before: in one dialect, among the same settings, and no further."""

import asyncio
import json

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.vetting import is_known_to_mean, require_meaningful, require_readable
from dragoman.wire.outline import Outlines

BODY = b'{"model":"m","messages":[],"input":"","tools":[{"type":"function","function":{"name":"read"},"name":5}]}'


def test_what_one_dialect_reads_is_looked_at_again_in_another():
    require_readable(Call(BODY, "m", stream=False), dialect_named("chat"))
    with pytest.raises(Problem):
        require_readable(Call(BODY, "m", stream=False), dialect_named("responses"))


def outlined(outlines, text, **rest):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **rest}).encode()
    return Call(body, "m", outline=outlines.of(body, "messages"))


def test_tools_are_known_to_mean_something_only_among_the_settings_in_which_they_were_looked_at():
    chat, outlines = dialect_named("chat"), Outlines()
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    for text in ("a", "b"):
        call = outlined(outlines, text, tools=tools)
        assert not is_known_to_mean(call, chat)
        asyncio.run(require_meaningful(call, chat, chat.parse_request(call)))
    assert is_known_to_mean(outlined(outlines, "c", tools=tools), chat)
    assert not is_known_to_mean(outlined(outlines, "c", tools=tools), dialect_named("messages"))
    chosen = {"type": "function", "function": {"name": "write"}}
    for text in ("a", "b", "c"):
        call = outlined(outlines, text, tools=tools, tool_choice=chosen)
        assert not is_known_to_mean(call, chat)
        with pytest.raises(Problem, match="is not among the tools"):
            asyncio.run(require_meaningful(call, chat, chat.parse_request(call)))


def test_tools_that_nobody_could_read_are_refused_however_often_they_come():
    responses, outlines = dialect_named("responses"), Outlines()
    for text in ("a", "b", "c", "d"):
        body = BODY.replace(b'"input":""', b'"input":[{"role":"user","content":"%b"}]' % text.encode())
        with pytest.raises(Problem):
            require_readable(Call(body, "m", outline=outlines.of(body, "input")), responses)
