"""Read a stream in any dialect as plain chunks: for a program that wants the words, not the protocol."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from dragoman.core.events import Event, Failed, Finished, PartDelta, PartStarted, UsageSeen
from dragoman.core.parts import Reasoning, Text, ToolCall
from dragoman.core.response import Finish, Usage
from dragoman.dialects.registry import dialect_named


class CallDelta(Struct, frozen=True):
    """A piece of a tool call. `index` counts calls from 0; id and name come once, arguments grow."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class Chunk(Struct, frozen=True, kw_only=True):
    """What one event adds. `finish` and `usage` come with the last chunk, and only there."""

    text: str = ""
    reasoning: str = ""
    call: CallDelta | None = None
    finish: Finish | None = None
    usage: Usage | None = None


class ChunkReader:
    """Upstream bytes in, chunks out. A stream that fails raises its `Problem`."""

    def __init__(self, dialect: str) -> None:
        self._decoder = dialect_named(dialect).decoder()
        self._kinds: dict[int, type[Text | Reasoning]] = {}
        self._calls: dict[int, int] = {}
        self._usage: Usage | None = None

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Take the next bytes."""
        return [told for event in self._decoder.feed(chunk) if (told := self._told(event)) is not None]

    def close(self) -> list[Chunk]:
        """The stream is over."""
        return [told for event in self._decoder.close() if (told := self._told(event)) is not None]

    def _told(self, event: Event) -> Chunk | None:
        match event:
            case PartDelta(index, text) if index in self._calls:
                return Chunk(call=CallDelta(self._calls[index], arguments=text))
            case PartDelta(index, text) if index in self._kinds:
                return Chunk(text=text) if self._kinds[index] is Text else Chunk(reasoning=text)
            case PartStarted(index, ToolCall(id=call_id, name=name)):
                self._calls[index] = len(self._calls)
                return Chunk(call=CallDelta(self._calls[index], call_id, name))
            case PartStarted(index, Text() | Reasoning() as part):
                self._kinds[index] = type(part)
            case UsageSeen(usage):
                self._usage = usage
            case Finished(finish):
                return Chunk(finish=finish, usage=self._usage)
            case Failed(problem):
                raise problem
            case _:
                pass
        return None


def read_chunks(stream: Iterable[bytes], dialect: str) -> Iterator[Chunk]:
    """Iterate the chunks of a stream of bytes."""
    reader = ChunkReader(dialect)
    for piece in stream:
        yield from reader.feed(piece)
    yield from reader.close()
