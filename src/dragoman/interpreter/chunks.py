"""Decode a stream of any dialect into plain chunks, for a program that needs the text and not the protocol.

Every call has an id: a call that came without one gets a generated id.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from dragoman.core.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, UsageSeen
from dragoman.core.parts import Reasoning, Text, ToolCall
from dragoman.core.response import Finish, Usage
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.pairing import find_call_id


class CallDelta(Struct, frozen=True):
    """A piece of a tool call. `index` counts calls from 0; id and name come once, arguments come in pieces."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class Chunk(Struct, frozen=True, kw_only=True):
    """What one event adds to the reply. `finish` and `usage` are set in the last chunk only."""

    text: str = ""
    reasoning: str = ""
    call: CallDelta | None = None
    finish: Finish | None = None
    usage: Usage | None = None


class ChunkReader:
    """Decodes upstream bytes into chunks. A stream that fails raises its `Problem`."""

    def __init__(self, dialect: str) -> None:
        self._decoder = dialect_named(dialect).decoder()
        self._kinds: dict[int, type[Text | Reasoning]] = {}
        self._calls: dict[int, int] = {}
        self._reply_id = ""
        self._unnamed: dict[int, tuple[ToolCall, list[str]]] = {}
        """Calls whose ids are hashed from their arguments, buffered until the arguments are complete."""
        self._usage: Usage | None = None

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Return the chunks in the next bytes."""
        return [piece for event in self._decoder.feed(chunk) for piece in self._to_chunks(event)]

    def close(self) -> list[Chunk]:
        """Return the last chunks; call it when the stream has ended."""
        return [piece for event in self._decoder.close() for piece in self._to_chunks(event)]

    def _to_chunks(self, event: Event) -> list[Chunk]:
        match event:
            case PartDelta(index, text) if index in self._unnamed:
                self._unnamed[index][1].append(text)
            case PartDelta(index, text) if index in self._calls:
                return [Chunk(call=CallDelta(self._calls[index], arguments=text))]
            case PartDelta(index, text) if index in self._kinds:
                return [Chunk(text=text) if self._kinds[index] is Text else Chunk(reasoning=text)]
            case PartStarted(index, ToolCall() as call):
                return self._start_call(index, call)
            case PartStarted(index, Text() | Reasoning() as part):
                self._kinds[index] = type(part)
            case PartEnded(index) if index in self._unnamed:
                return self._end_unnamed_call(index)
            case Started(reply_id):
                self._reply_id = reply_id
            case UsageSeen(usage):
                self._usage = usage
            case Finished(finish):
                return [Chunk(finish=finish, usage=self._usage)]
            case Failed(problem):
                raise problem
            case _:
                pass
        return []

    def _start_call(self, index: int, call: ToolCall) -> list[Chunk]:
        number = self._calls[index] = len(self._calls)
        if not call.id and not self._reply_id:
            self._unnamed[index] = (call, [])
            return []
        return [Chunk(call=CallDelta(number, find_call_id(call, self._reply_id, number + 1), call.name))]

    def _end_unnamed_call(self, index: int) -> list[Chunk]:
        call, pieces = self._unnamed.pop(index)
        number, arguments = self._calls[index], "".join(pieces)
        call_id = find_call_id(structs.replace(call, arguments=arguments), "", number + 1)
        return [Chunk(call=CallDelta(number, call_id, call.name)), Chunk(call=CallDelta(number, arguments=arguments))]


def read_chunks(stream: Iterable[bytes], dialect: str) -> Iterator[Chunk]:
    """Iterate the chunks of a stream of bytes."""
    reader = ChunkReader(dialect)
    for piece in stream:
        yield from reader.feed(piece)
    yield from reader.close()
