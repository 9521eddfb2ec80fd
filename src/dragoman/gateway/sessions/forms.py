"""How each dialect writes what a conversation is made of."""

import re
from collections.abc import Callable, Mapping

from msgspec import Raw, Struct

from dragoman.wire import json
from dragoman.wire.lookup import lookup


class Form(Struct, frozen=True, kw_only=True):
    """One dialect's way."""

    tools: str = "tools"
    choice: str
    settings: tuple[str, ...]
    """Members that hold for the turns that follow, unless these bring their own."""
    said: Callable[[bytes], list[bytes]]
    """Take what the model said out of a whole reply, as items of a history."""
    last: re.Pattern[bytes]
    """What the first event of a stream's end has in it."""
    plain: Callable[[bytes], bytes]
    """Make an item of a plain string."""
    keeps: bool = False
    """Requests say themselves what is to be kept, and answers say it back."""
    below: str = ""
    """The member of a streamed event that holds the answer so far; "" if that is the whole event."""


def _output(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/output")
    return [bytes(item) for item in json.decode_array(found[1])] if found is not None else []


def _message(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/choices/0/message")
    return [found[1]] if found is not None else []


def _blocks(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/content")
    # A turn in which nothing was said cannot stand in a history.
    if found is None or not json.decode_array(found[1]):
        return []
    return [json.encode({"role": "assistant", "content": Raw(found[1])})]


def _candidate(reply: bytes) -> list[bytes]:
    found = lookup(reply, "/candidates/0/content")
    if found is None or lookup(found[1], "/parts") is None:
        return []
    return [found[1]]


def _user_item(text: bytes) -> bytes:
    return json.encode({"type": "message", "role": "user", "content": Raw(text)})


def _user_message(text: bytes) -> bytes:
    return json.encode({"role": "user", "content": Raw(text)})


def _user_content(text: bytes) -> bytes:
    return json.encode({"role": "user", "parts": [{"text": Raw(text)}]})


FORMS: Mapping[str, Form] = {
    "chat": Form(
        choice="tool_choice",
        settings=("tools", "tool_choice"),
        said=_message,
        last=re.compile(rb'"finish_reason"\s*:\s*"|\[DONE\]'),
        plain=_user_message,
    ),
    "responses": Form(
        choice="tool_choice",
        settings=("tools", "tool_choice"),
        said=_output,
        last=re.compile(rb"response\.(?:completed|incomplete)\b"),
        plain=_user_item,
        keeps=True,
        below="response",
    ),
    "messages": Form(
        choice="tool_choice",
        settings=("tools", "tool_choice", "system"),
        said=_blocks,
        last=re.compile(rb'"message_(?:delta|stop)"'),
        plain=_user_message,
    ),
    "gemini": Form(
        choice="toolConfig",
        settings=("tools", "toolConfig", "systemInstruction"),
        said=_candidate,
        last=re.compile(rb'"finish_?[rR]eason"'),
        plain=_user_content,
    ),
}
