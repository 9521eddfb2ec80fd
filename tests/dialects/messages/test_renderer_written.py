"""Values that were not read from this dialect, each written to its last field; whole replies both ways."""

import json
from typing import Any

import pytest

from dragoman.core.parts import (
    AnyPart,
    Citation,
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Stored,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.messages.renderer import render_request

HI = Text(text="hi")
MARK = {"type": "ephemeral"}


def render(*messages: Message, **fields: Any) -> dict[str, Any]:
    request = Request(model="m", messages=messages, **fields)
    return json.loads(render_request(request, Traits(dialect="messages")).body)


def own(**fields: bytes) -> Extras:
    return Extras("messages", {f"/{name}": raw for name, raw in fields.items()})


def medium(kind: Any, source: Any, media_type: str = "", **fields: Any) -> Media:
    return Media(kind=kind, media_type=media_type, source=source, **fields)


def result(*content: Any, **fields: Any) -> ToolResult:
    return ToolResult(call_id="c", content=content, **fields)


def encode(media_type: str, data: str = "aGk=") -> dict[str, Any]:
    return {"type": "base64", "media_type": media_type, "data": data}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Text(text="x", cache=""), {"type": "text", "text": "x", "cache_control": MARK}),
        (Text(text="x", cache="1h"), {"type": "text", "text": "x", "cache_control": {**MARK, "ttl": "1h"}}),
        (Text(text="x", extras=own(a=b"1")), {"type": "text", "text": "x", "a": 1}),
        (Text(text="x", extras=Extras("chat", {"/a": b"1"})), {"type": "text", "text": "x"}),
        (
            Text(
                text="x",
                cache="",
                citations=(
                    Citation("chat", b"{}", url="u", title="t", quote="q"),
                    Citation("chat", b"{}"),
                    Citation("chat", b"{}", url="v"),
                ),
            ),
            {
                "type": "text",
                "text": "x",
                "cache_control": MARK,
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": "u",
                        "title": "t",
                        "cited_text": "q",
                        "encrypted_index": "ZHJhZ29tYW4x",
                    },
                    {
                        "type": "web_search_result_location",
                        "url": "v",
                        "title": None,
                        "cited_text": "",
                        "encrypted_index": "ZHJhZ29tYW4x",
                    },
                ],
            },
        ),
        (Text(text="x", citations=(Citation("chat", b"{}"),)), {"type": "text", "text": "x"}),
        (Refusal(text="no", cache=""), {"type": "text", "text": "no", "cache_control": MARK}),
        (Data(json=b"[1]", cache=""), {"type": "text", "text": "[1]", "cache_control": MARK}),
        (Opaque(dialect="messages", raw=b'{"a":1}'), {"a": 1}),
        (Opaque(dialect="chat", raw=b"{}"), None),
        (Reasoning(texts=("a", "b")), {"type": "thinking", "thinking": "a\n\nb", "signature": ""}),
        (Reasoning(texts=("a",), spelling="unsigned"), {"type": "thinking", "thinking": "a"}),
        (
            Reasoning(texts=("a",), signature=Signature("x", "s"), spelling="unsigned"),
            {"type": "thinking", "thinking": "a", "signature": "s"},
        ),
        (Reasoning(redacted=True, signature=Signature("x", "s")), {"type": "redacted_thinking", "data": "s"}),
        (Reasoning(redacted=True), None),
        (
            ToolCall(id="c", name="f", arguments='{"a":1}', cache=""),
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}, "cache_control": MARK},
        ),
        (ToolCall(id="c", name="f", arguments=""), {"type": "tool_use", "id": "c", "name": "f"}),
        (ToolCall(id="c", name="f", arguments="{", complete=False), None),
        (result(HI), {"type": "tool_result", "tool_use_id": "c", "content": "hi"}),
        (
            result(HI, failed=True, cache=""),
            {"type": "tool_result", "tool_use_id": "c", "content": "hi", "is_error": True, "cache_control": MARK},
        ),
        (result(), {"type": "tool_result", "tool_use_id": "c"}),
        (result(HI, HI), {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "hi"}] * 2}),
        (
            result(Data(json=b"1")),
            {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "1"}]},
        ),
        (
            result(Text(text="x", cache="")),
            {
                "type": "tool_result",
                "tool_use_id": "c",
                "content": [{"type": "text", "text": "x", "cache_control": MARK}],
            },
        ),
        (medium("image", Inline("aGk=")), {"type": "image", "source": encode("image/png")}),
        (
            medium("image", Inline("aGk="), "image/gif", cache=""),
            {"type": "image", "source": encode("image/gif"), "cache_control": MARK},
        ),
        (
            medium("image", Link("u"), cache=""),
            {"type": "image", "source": {"type": "url", "url": "u"}, "cache_control": MARK},
        ),
        (
            medium("image", Stored("x", "f"), cache=""),
            {"type": "image", "source": {"type": "file", "file_id": "f"}, "cache_control": MARK},
        ),
        (medium("image", Plain("x")), None),
        (medium("audio", Inline("aGk=")), None),
        (
            medium("document", Inline("aGk="), name="n", cache=""),
            {"type": "document", "source": encode("application/pdf"), "title": "n", "cache_control": MARK},
        ),
        (
            medium("document", Inline("aGk="), "text/csv"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
        ),
        (
            medium("document", Inline("aGk="), "text/csv", spelling="base64"),
            {"type": "document", "source": encode("text/csv")},
        ),
        (medium("document", Inline("/w=="), "text/csv"), {"type": "document", "source": encode("text/csv", "/w==")}),
        (medium("document", Inline("!"), "text/csv"), {"type": "document", "source": encode("text/csv", "!")}),
        (medium("document", Link("u")), {"type": "document", "source": {"type": "url", "url": "u"}}),
        (medium("document", Stored("x", "f")), {"type": "document", "source": {"type": "file", "file_id": "f"}}),
        (
            medium("document", Plain("x")),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
        ),
        (
            medium("document", Plain("x"), "text/csv"),
            {"type": "document", "source": {"type": "text", "media_type": "text/csv", "data": "x"}},
        ),
    ],
)
def test_a_part_is_written_whole(part: AnyPart, block: Any):
    content = [{"type": "text", "text": "hi"}] if block is None else [{"type": "text", "text": "hi"}, block]
    body = render(Message(role="user", parts=(HI, part), extras=own(b=b"2")))
    assert body == {"model": "m", "messages": [{"role": "user", "content": content, "b": 2}]}
    alone = render(Message(role="user", parts=(part,)))["messages"][0]["content"]
    assert alone == (
        [] if block is None else "x" if block == {"type": "text", "text": "x"} and not part.citations else [block]
    )  # pyright: ignore[reportAttributeAccessIssue]


def test_system_messages_are_written_whole():
    def system(*parts: AnyPart, **fields: Any) -> Message:
        return Message(role="system", parts=parts, **fields)

    hi = {"type": "text", "text": "hi"}
    assert render(system(HI))["system"] == "hi"
    assert render(system(HI, spelling="blocks"))["system"] == [hi]
    assert render(system(Text(text="hi", cache="")))["system"] == [{**hi, "cache_control": MARK}]
    assert render(system(HI), system(HI))["system"] == [hi, hi]
    assert "system" not in render(system())
    user = Message(role="user", parts=(HI,))
    assert render(system(HI, spelling="string inline"), user)["messages"][0] == {"role": "system", "content": "hi"}
    assert render(system(HI), user, system(HI))["messages"][1] == {"role": "system", "content": "hi"}


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        (Tool(name="f"), {"name": "f", "input_schema": {"type": "object", "properties": {}}}),
        (
            Tool(name="f", description="d", parameters=b"{}", strict=True, cache="1h", extras=own(a=b"1")),
            {
                "name": "f",
                "description": "d",
                "input_schema": {},
                "strict": True,
                "cache_control": {**MARK, "ttl": "1h"},
                "a": 1,
            },
        ),
        (NativeTool(dialect="messages", raw=b'{"type":"x"}'), {"type": "x"}),
    ],
)
def test_a_tool_is_written_whole(tool: Any, value: Any):
    assert render(tools=(tool,)) == {"model": "m", "messages": [], "tools": [value]}


@pytest.mark.parametrize(
    ("choice", "value"),
    [
        (ToolChoice(), None),
        (ToolChoice(parallel=True), None),
        (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(mode="none", parallel=False), {"type": "none"}),
        (ToolChoice(mode="auto", names=("f",)), {"type": "auto"}),
        (
            ToolChoice(mode="required", names=("f", "g"), parallel=True),
            {"type": "any", "disable_parallel_tool_use": False},
        ),
        (ToolChoice(mode="required", names=("f",), extras=own(a=b"1")), {"type": "tool", "name": "f", "a": 1}),
    ],
)
def test_a_choice_is_written_whole(choice: ToolChoice, value: Any):
    assert render(tools=(Tool(name="f"),), tool_choice=choice).get("tool_choice") == value
    assert "tool_choice" not in render(tool_choice=ToolChoice(parallel=False))


def test_settings_are_written_whole():
    assert render(
        sampling=Sampling(temperature=0, top_p=1, top_k=2, max_tokens=3, stop=("a",), seed=4),
        thinking=Thinking(mode="adaptive", effort="low", visible=True),
        output=OutputFormat(kind="json_schema"),
        user="u",
        stream=True,
        extras=own(z=b"1"),
    ) == {
        "model": "m",
        "max_tokens": 3,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "low", "format": {"type": "json_schema"}},
        "temperature": 0,
        "top_p": 1,
        "top_k": 2,
        "stop_sequences": ["a"],
        "metadata": {"user_id": "u"},
        "stream": True,
        "messages": [],
        "z": 1,
    }
    assert render(output=OutputFormat(kind="json"), thinking=Thinking(visible=True)) == {"model": "m", "messages": []}
    assert render(thinking=Thinking(mode="enabled", budget=5, visible=False))["thinking"] == {
        "type": "enabled",
        "budget_tokens": 5,
        "display": "omitted",
    }
    assert render(thinking=Thinking(mode="disabled", budget=5, visible=True))["thinking"] == {"type": "disabled"}
