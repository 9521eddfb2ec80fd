import json

from dialects.messages import official
from dragoman.core.parts import (
    Data,
    Inline,
    Link,
    Media,
    Opaque,
    Plain,
    Reasoning,
    Refusal,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.request import Message, OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.messages import DIALECT


def render(request):
    return json.loads(DIALECT.render_request(request, Traits(dialect="messages")).body)


def foreign_request():
    """A request with one of everything, as an interpreter hands it over."""
    return Request(
        model="claude-opus-5-5",
        messages=(
            Message(role="system", parts=(Text(text="be brief"),)),
            Message(
                role="user",
                parts=(
                    Text(text="look", cache=""),
                    Media(kind="image", media_type="image/png", source=Inline("AA==")),
                    Media(kind="image", media_type="", source=Link("https://x/y.png")),
                    Media(kind="document", media_type="application/pdf", source=Inline("AA=="), name="a.pdf"),
                    Media(kind="document", media_type="text/markdown", source=Inline("aGVsbG8=")),
                    Media(kind="document", media_type="text/plain", source=Plain("hello")),
                ),
            ),
            Message(
                role="assistant",
                parts=(
                    Reasoning(texts=("a", "b"), signature=Signature("anthropic", "c2ln")),
                    Reasoning(redacted=True, signature=Signature("anthropic", "ZGF0YQ==")),
                    Text(text="calling"),
                    ToolCall(id="toolu_1", name="weather", arguments='{"city": "Paris"}'),
                    ToolCall(id="toolu_2", name="weather", arguments="{}"),
                ),
            ),
            Message(
                role="user",
                parts=(
                    ToolResult(call_id="toolu_1", content=(Data(json=b'{"t": 18}'),)),
                    ToolResult(call_id="toolu_2", content=(Text(text="no city"),), failed=True),
                ),
            ),
            Message(role="assistant", parts=(Refusal(text="I cannot"),)),
            Message(role="user", parts=(Text(text="go on"),)),
        ),
        tools=(Tool(name="weather", description="d", parameters=b'{"type":"object"}', strict=True, cache="1h"),),
        tool_choice=ToolChoice(mode="required", names=("weather",), parallel=False),
        sampling=Sampling(max_tokens=100, stop=("END",), temperature=0.5, top_p=0.9, top_k=5),
        thinking=Thinking(mode="adaptive", effort="high", visible=True),
        output=OutputFormat(kind="json_schema", schema=b'{"type":"object"}', name="x"),
        stream=True,
        user="u",
    )


def test_what_is_rendered_for_a_foreign_request_passes_the_official_types():
    body = render(foreign_request())
    official.accepts_request(
        {name: value for name, value in body.items() if name not in ("top_p", "top_k", "temperature")}
    )
    assert body["system"] == "be brief"
    user, assistant, results, refusal, _ = body["messages"]
    assert user["content"][4]["source"] == {"type": "text", "media_type": "text/plain", "data": "hello"}
    assert assistant["content"][0] == {"type": "thinking", "thinking": "a\n\nb", "signature": "c2ln"}
    assert assistant["content"][1] == {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": '{"t": 18}'}]},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no city", "is_error": True},
    ]
    assert refusal["content"] == [{"type": "text", "text": "I cannot"}]
    assert body["metadata"] == {"user_id": "u"}


def test_unsupported_parts_are_omitted_rather_than_raised():
    parts = (
        Text(text="a"),
        Opaque(dialect="gemini", raw=b"{}"),
        Media(kind="audio", media_type="audio/wav", source=Inline("AA==")),
        Reasoning(redacted=True),
        ToolCall(id="t", name="n", arguments='{"a', complete=False),
    )
    body = render(Request(model="m", messages=(Message(role="user", parts=parts),)))
    assert body["messages"][0]["content"] == [{"type": "text", "text": "a"}]


def test_spellings_and_extras_of_other_dialects_are_ignored():
    foreign = Extras("chat", {"/strange": b"1"})
    part = ToolResult(call_id="t", content=(Text(text="a", extras=foreign),), spelling="whatever", extras=foreign)
    message = Message(role="user", parts=(part,), spelling="parts", extras=foreign)
    body = render(Request(model="m", messages=(message,), extras=foreign, spelling=frozenset({"max_tokens"})))
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a"}]}],
    }
