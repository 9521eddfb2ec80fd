"""Frames of a stream from its events."""

from typing import Any

from dialects.toy.errors import error_body
from dialects.toy.parts import write_part
from dialects.toy.response import end_of
from dragoman.core.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, UsageSeen
from dragoman.core.request import Request
from dragoman.core.response import Usage
from dragoman.dialects.decoder import Encoder
from dragoman.wire import json
from dragoman.wire.sse import render_data_frame


class ToyEncoder(Encoder):
    """Events in, bytes out."""

    def __init__(self, _request: Request | None) -> None:
        self._usage = Usage()
        self._is_open = False
        """The open part is a line; a part that Toy cannot say is none."""

    def feed(self, event: Event) -> bytes:
        match event:
            case Started(reply_id, model):
                return _frame({"start": {"id": reply_id, "model": model}})
            case PartStarted(_, part):
                line = write_part(part, "assistant")
                self._is_open = line is not None
                return _frame({"open": line}) if self._is_open else b""
            case PartDelta(_, text):
                return _frame({"more": text}) if self._is_open else b""
            case PartEnded():
                return _frame({"close": True}) if self._is_open else b""
            case UsageSeen(usage):
                self._usage = usage
                return b""
            case Finished(finish):
                tokens = {"read": self._usage.input or 0, "written": self._usage.output or 0}
                return _frame({"end": end_of(finish), "tokens": tokens})
            case Failed(problem):
                return render_data_frame(error_body(problem))
            case _:
                return b""


def _frame(value: Any) -> bytes:
    return render_data_frame(json.encode(value))
