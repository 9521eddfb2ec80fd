"""Calls of tools of MCP servers as items, in the shape that the official SDK reads, and back."""

from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from dragoman.core.parts import Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.dialects.responses.remote import render_call, restore_calls
from dragoman.dialects.responses.wire import NAME

CALL = ToolCall(id="mcp_1", name="fail", arguments="{}")


def test_a_failed_call_has_the_error_form_of_the_official_types():
    (item,) = render_call(
        "loc", CALL, ToolResult(call_id="mcp_1", content=(Text(text="no such file"),), failed=True), ""
    )
    read = TypeAdapter(ResponseOutputItem).validate_json(item)
    assert read.status == "failed"
    assert read.error.type == "mcp_tool_execution_error"
    assert read.error.content == [{"type": "text", "text": "no such file"}]


def test_the_error_of_a_failed_call_survives_a_round_trip():
    (item,) = render_call(
        "loc", CALL, ToolResult(call_id="mcp_1", content=(Text(text="no such file"),), failed=True), ""
    )
    history = (Message(role="assistant", parts=(Opaque(dialect=NAME, raw=item),)),)
    parts = [part for message in restore_calls(history, {"loc"}) for part in message.parts]
    result = next(part for part in parts if isinstance(part, ToolResult))
    assert (result.failed, result.content[0].text) == (True, "no such file")
