"""What an answer says of the conversation it belongs to: members that only the gateway knows, put into it."""

import re
from collections.abc import Mapping

from dragoman.wire import json
from dragoman.wire.splice import spliced

_DATA = re.compile(rb"^data:[ ]?(.*)$", re.MULTILINE)
_FRAMES = re.compile(rb".*?\n\r?\n", re.DOTALL)


class Echo:
    """Puts members into replies; `below` is the member of an event that holds the reply, "" if it is the event."""

    def __init__(self, members: Mapping[str, bytes], below: str) -> None:
        self._members = members
        self._below = below

    def whole(self, body: bytes) -> bytes:
        """Return a whole reply with the members in it."""
        for name, raw in self._members.items():
            body = spliced(body, name, raw)
        return body

    def events(self, told: bytes) -> bytes:
        """Return events with the members in every reply they hold."""
        if not self._members or (self._below and b'"%b"' % self._below.encode() not in told):
            return told
        return _FRAMES.sub(lambda frame: _DATA.sub(self._data, frame.group(), count=1), told)

    def _data(self, line: re.Match[bytes]) -> bytes:
        data = line.group(1)
        if not json.is_object(data):
            return line.group()
        if not self._below:
            return b"data: " + self.whole(data)
        inner = json.decode_object(data).get(self._below)
        if inner is None or not json.is_object(bytes(inner)):
            return line.group()
        return b"data: " + spliced(data, self._below, self.whole(bytes(inner)))
