"""Events of a stream from its frames: `start`, then `open`, `more` and `close` for each line, then `end` or `error`."""

from typing import Any

import msgspec

from dialects.toy.errors import read_error
from dialects.toy.parts import read_line
from dialects.toy.response import finish_of
from dialects.toy.wire import Line
from dragoman.core.events import Failed, Finished, PartDelta, PartEnded, PartStarted, Started, UsageSeen
from dragoman.core.problems import Problem
from dragoman.core.response import Usage
from dragoman.dialects.decoder import FrameDecoder
from dragoman.wire import json
from dragoman.wire.sse import Frame


class ToyDecoder(FrameDecoder):
    """Bytes in, events out."""

    _index = -1

    def _decode_frame(self, frame: Frame) -> None:
        match json.decode(frame.data):
            case {"start": {"id": str(reply_id), "model": str(model)}}:
                self._events.append(Started(reply_id, model))
            case {"open": line}:
                self._index += 1
                self._events.append(PartStarted(self._index, self._read(line)))
            case {"more": str(text)}:
                self._events.append(PartDelta(self._index, text))
            case {"close": True}:
                self._events.append(PartEnded(self._index))
            case {"end": str(word), "tokens": {"read": int(read), "written": int(written)}}:
                self._events += [UsageSeen(Usage(input=read, output=written)), Finished(finish_of(word))]
                self._is_over = True
            case {"error": error}:
                self._events.append(Failed(read_error(500, error)))
                self._is_over = True
            case _:
                pass

    def _read(self, line: Any) -> Any:
        return read_line(msgspec.convert(line, Line), "", None)[1]

    def _end(self) -> None:
        raise Problem("malformed_reply", "the stream ended before its last event")
