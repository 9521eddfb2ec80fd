"""Message threads (beta): the server keeps a conversation, and a request of it has only what is new."""

from msgspec import Raw

from dragoman.core.request import Reference
from dragoman.dialects.messages.wire import ABSENT
from dragoman.wire import json

_UNSUPPORTED = "thread_unsupported_request"
"""At this word the SDKs' tool runners send the whole conversation, without a thread."""


def thread_references(thread: Raw) -> tuple[Reference, ...]:
    """Return what a request goes on from; one that begins a thread says everything itself."""
    if thread is ABSENT or json.first_byte(thread) != b"{":
        return ()
    members = json.decode_object(thread)
    if json.first_byte(members.get("previous_message_id", b"null")) == b'"':
        return (Reference("/thread/previous_message_id", _UNSUPPORTED),)
    continues = bytes(members.get("type", b"")) == b'"continue"'
    return (Reference("/thread/type", _UNSUPPORTED),) if continues else ()
