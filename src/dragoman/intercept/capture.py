"""Take the calls of a caller's tools out of one reply, and put a placeholder in their place.

The first of them becomes a short text with the mark of the group in it, the others go. All else of the reply stays as
it came, byte for byte: words before and after, thoughts, signatures, usage, the reason for the end. Calls of the
client's own tools pass to the client.
"""

import re
from uuid import uuid4

from dragoman.core.parts import ToolCall
from dragoman.intercept.captured import Captured
from dragoman.intercept.document import Fields, items_of, listed
from dragoman.intercept.rules.contents import call_of
from dragoman.wire import json

_CALLS = (b"functionCall", b"function_call")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTHING = b'{"text":""}'


class Capture:
    """Chunks of a reply in, what the client is told of them out."""

    def __init__(self, names: frozenset[str], placeholder: str, taken: frozenset[str] = frozenset()) -> None:
        self._names = names
        self._placeholder = json.encode({"text": placeholder})
        self._taken = set(taken)
        """Ids that calls of the session have already."""
        self.calls: list[Captured] = []
        self.passes_calls = False
        """Calls of the client's own tools were among them: it goes on by itself."""

    def feed(self, chunk: bytes, *, is_whole: bool = False) -> bytes | None:
        """Take a chunk, or a whole reply; return what the client is told of it, None for nothing."""
        if not any(mark in chunk for mark in _CALLS):
            return chunk
        outer = Fields(chunk)
        inner = outer.get("response")
        reply = outer if inner is None else Fields(inner)
        candidates = items_of(reply.get("candidates") or b"[]")
        told = [self._candidate(candidate) for candidate in candidates]
        if told == candidates:
            return chunk
        if told == [None] and not is_whole:
            return None
        reply.set("candidates", listed([one or other for one, other in zip(told, candidates, strict=True)]))
        if inner is not None:
            outer.set("response", reply.raw)
        return outer.raw

    def _candidate(self, raw: bytes) -> bytes | None:
        """Return what is told of a candidate; None where that is nothing at all."""
        candidate = Fields(raw)
        content = candidate.get("content")
        if content is None:
            return raw
        turn = Fields(content)
        parts = items_of(turn.get("parts") or b"[]")
        told = [one for part in parts for one in self._part(part)]
        if told == parts:
            return raw
        if not told and candidate.get("finishReason") is None:
            return None
        turn.set("parts", listed(told or [_NOTHING]))
        candidate.set("content", turn.raw)
        return candidate.raw

    def _part(self, part: bytes) -> list[bytes]:
        call = call_of(part)
        if call is None:
            return [part]
        if call.get("name") not in self._names:
            self.passes_calls = True
            return [part]
        is_first = not self.calls
        self.calls.append(self._captured(part, str(call["name"]), str(call.get("id") or "")))
        return [self._placeholder] if is_first else []

    def _captured(self, part: bytes, name: str, given: str) -> Captured:
        is_usable = _PLAIN_ID.fullmatch(given) is not None and given not in self._taken
        call_id = given if is_usable else f"call_{uuid4().hex}"
        self._taken.add(call_id)
        return Captured(id=call_id, name=name, part=part, given=given)


def tool_call(captured: Captured) -> ToolCall:
    """Return a captured call in the core's words."""
    call = Fields(captured.part).get("functionCall") or b"{}"
    arguments = Fields(call).get("args") or b"{}"
    return ToolCall(id=captured.id, name=captured.name, arguments=arguments.decode())
