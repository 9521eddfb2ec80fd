import json

from dragoman.core.parts import (
    Data,
    Inline,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message, NativeTool, OutputFormat, Request, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.dialects.responses import DIALECT

TRAITS = Traits(dialect="responses")


def render(request):
    return json.loads(DIALECT.render_request(request, TRAITS).body)


FOREIGN = Request(
    model="gpt",
    messages=(
        Message(role="system", parts=(Text(text="S"), Text(text="T"))),
        Message(role="system", parts=(Text(text="later"),)),
        Message(role="user", parts=(Text(text="hi"),)),
        Message(
            role="assistant",
            parts=(
                Reasoning(texts=("why",), signature=Signature("openai", "blob")),
                Text(text="a"),
                ToolCall(id="1", name="f", arguments="{}", extras=None),
                Text(text="b"),
                ToolCall(id="2", name="g", arguments="x", form="text"),
            ),
        ),
        Message(
            role="user",
            parts=(
                Text(text="go on"),
                ToolResult(call_id="1", name="f", content=(Data(json=b'{"a": 1}'),)),
                ToolResult(
                    call_id="2",
                    form="text",
                    content=(Text(text="x"), Media(kind="image", media_type="image/png", source=Inline("AA"))),
                ),
                Media(kind="document", media_type="", source=Plain("hello")),
                Opaque(dialect="messages", raw=b"{}"),
            ),
        ),
    ),
    tools=(
        Tool(name="f", description="d"),
        Tool(name="g", form="text", grammar=b'{"type":"grammar","syntax":"regex","definition":"x"}'),
        Tool(name="h", parameters=b'{"type":"object"}', strict=True),
    ),
    tool_choice=ToolChoice(mode="required", names=("f", "g"), parallel=True),
    output=OutputFormat(kind="json_schema", schema=b"{}"),
    user="u",
)


def test_a_foreign_conversation_becomes_items_in_order():
    body = render(FOREIGN)
    assert body["instructions"] == "S\n\nT"
    assert [item.get("role") or item["type"] for item in body["input"]] == [
        "developer",
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "assistant",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
        "user",
    ]
    assert not any("id" in item for item in body["input"])
    assert body["input"][2] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "why"}],
        "encrypted_content": "blob",
    }
    assert body["input"][7]["output"] == '{"a": 1}'
    assert [part["type"] for part in body["input"][8]["output"]] == ["input_text", "input_image"]
    assert body["input"][9]["content"][1] == {
        "type": "input_file",
        "file_data": "data:text/plain;base64,aGVsbG8=",
        "filename": "document.txt",
    }


def test_strict_is_never_left_to_the_server():
    body = render(FOREIGN)
    assert [tool.get("strict") for tool in body["tools"]] == [False, None, True]
    assert body["tools"][0]["parameters"] == {"type": "object", "properties": {}}
    assert body["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}],
    }
    assert "store" not in body
    assert body["safety_identifier"] == "u"


def test_the_official_types_accept_a_foreign_request():
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
    from pydantic import TypeAdapter

    body = render(FOREIGN)
    body["input"][2]["id"] = "rs_1"  # Optional in the service, required in the type.
    TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(body)
    assert body["model"] == "gpt"


def test_a_marked_system_message_stays_an_item():
    message = Message(role="system", parts=(Text(text="S", cache="1h"),))
    body = render(Request(model="m", messages=(message,)))
    assert "instructions" not in body
    assert body["input"][0]["role"] == "developer"
    assert body["input"][0]["content"][0]["prompt_cache_breakpoint"] == {"mode": "explicit", "ttl": "1h"}


def test_what_is_foreign_and_left_over_is_left_out():
    part = Opaque(dialect="gemini", raw=b'{"executableCode":{}}')
    tool = NativeTool(dialect="gemini", raw=b'{"googleSearch":{}}')
    body = render(Request(model="m", messages=(Message(role="assistant", parts=(part,)),), tools=(tool,)))
    assert body["input"] == []
    assert body["tools"] == []
