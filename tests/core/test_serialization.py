"""Messages that are written down come back as they were."""

import pytest
from hypothesis import given, settings

from dragoman.core.parts import (
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
from dragoman.core.request import Message
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.core.value import Extras
from strategies import requests

SIGNED = Signature("google", "abc", "item")
PARTS = (
    Text(text="a", citations=(Citation("chat", b"{}", "https://a.example", places=("/x",)),), cache="5m"),
    Text(text="", signature=SIGNED, where="/messages/0", spelling="string"),
    Reasoning(texts=("one", "two"), signature=SIGNED),
    Reasoning(redacted=True, signature=SIGNED),
    ToolCall(id="c", name="n", arguments='{"a": 1}', form="text", namespace="s", complete=False, executor="provider"),
    ToolResult(
        call_id="c",
        content=(Text(text="\u2028 \x00"), Data(json=b"[1]"), Opaque(dialect="gemini", raw=b"{}", declares=True)),
        failed=True,
    ),
    Media(kind="image", media_type="image/png", source=Inline("aGk="), name="i"),
    Media(kind="document", media_type="", source=Link("https://a.example")),
    Media(kind="document", media_type="", source=Plain("text")),
    Media(kind="audio", media_type="", source=Stored("openai", "file-1")),
    Refusal(text="no"),
    Opaque(dialect="chat", raw=b"\xff\x00", extras=Extras("chat", {"": b"1", "/is": b"2"})),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_part_comes_back_with_all_that_is_in_it(part):
    message = Message(role="assistant", parts=(part,), name="x", extras=Extras("chat", {"/y": b"3"}))
    (back,) = decode_messages(encode_messages([message]))
    assert repr(back) == repr(message)


@settings(max_examples=5)
@given(requests())
def test_every_message_comes_back_as_it_was(request):
    assert decode_messages(encode_messages(request.messages)) == request.messages


def test_messages_keep_their_order():
    messages = tuple(Message(role="user", parts=(Text(text=str(at)),)) for at in range(3))
    assert decode_messages(encode_messages(messages)) == messages
    assert decode_messages(encode_messages([])) == ()


@pytest.mark.parametrize(
    "kept", [b"", b"{", b'"words"', b'[{"is":"Nobody"}]', b'[{"is":"Text"}]', b'[{"is":"Text","text":"a"}]']
)
def test_an_invalid_message_is_reported(kept):
    with pytest.raises(ValueError, match=r".+"):
        decode_messages(kept)
