"""What is measured, and the targets."""

from collections.abc import Iterator
from functools import partial

from msgspec import Struct
from msgspec.json import decode, encode

from benchmarks import litellm_peer
from benchmarks.bodies import DIALECTS, request
from benchmarks.clock import Work
from benchmarks.streams import STREAMS, Stream
from dragoman import Call, StreamTranslator, translate_request
from dragoman.interpreter import translate
from dragoman.interpreter.prefix_cache import Recall

MODELS = {"chat": "gpt-4.1", "responses": "gpt-4.1", "messages": "claude-opus-4-8", "gemini": "gemini-3-flash"}
TARGETS = {"small": 8.0, "medium": 1.5, "large": 2.0}
EVENT_TARGET = 5.0


class Case(Struct, frozen=True):
    """One row: some work, the yardstick for it, and how many units of each a call of it does."""

    name: str
    size: int
    work: Work
    yardstick: Work
    units: int = 1
    target: float | None = None


def echo(body: bytes) -> bytes:
    """Read JSON without a type and write it again: the least a program that looks into it can do."""
    return encode(decode(body))


def _translate(body: bytes, source: str, target: str) -> int:
    """Translate a request and read what was lost."""
    translation = translate_request(Call(body, "some-model"), source, target, model=MODELS[target])
    return len(translation.call.body) + len(translation.losses)


def _translate_first(body: bytes, source: str, target: str) -> int:
    """Translate a request as if its conversation had never been seen."""
    translate.RECALL = Recall()
    return _translate(body, source, target)


def _stream(stream: Stream, source: str, target: str) -> int:
    """Translate a stream, one event at a time."""
    translator = StreamTranslator(source, target)
    result = 0
    for chunk in stream.chunks:
        result += len(translator.feed(chunk))
    return result + len(translator.close())


def _echo_stream(stream: Stream) -> None:
    for document in stream.documents:
        echo(document)


def request_case(source: str, target: str, size: str, goal: float | None = None) -> Case:
    """Return a request case."""
    body = request(source, size)
    work = partial(_translate, body, source, target)
    return Case(f"request {source} -> {target}, {size}", len(body), work, partial(echo, body), target=goal)


def first_case(source: str, target: str, size: str) -> Case:
    """Return the case of a conversation that is in no cache."""
    body = request(source, size)
    work = partial(_translate_first, body, source, target)
    return Case(f"request {source} -> {target}, {size}, unknown", len(body), work, partial(echo, body))


def stream_case(source: str, target: str, goal: float | None = None) -> Case:
    """Return a stream case, reported per event."""
    stream = STREAMS[source]()
    count = len(stream.documents)
    size = sum(map(len, stream.documents)) // count
    work = partial(_stream, stream, source, target)
    return Case(f"event {source} -> {target}", size, work, partial(_echo_stream, stream), count, goal)


def cases() -> Iterator[Case]:
    """Iterate all rows: those with a target first."""
    for size, goal in TARGETS.items():
        yield request_case("chat", "gemini", size, goal)
    yield first_case("chat", "gemini", "large")
    yield stream_case("gemini", "chat", EVENT_TARGET)
    yield stream_case("chat", "messages", EVENT_TARGET)
    for source in DIALECTS:
        for target in DIALECTS:
            if source != target and (source, target) != ("chat", "gemini"):
                yield request_case(source, target, "medium")
    for source in STREAMS:
        for target in DIALECTS:
            if source != target and (source, target) not in {("gemini", "chat"), ("chat", "messages")}:
                yield stream_case(source, target)
    for size in TARGETS if litellm_peer.INSTALLED else ():
        body = request("chat", size)
        work = litellm_peer.request_to_gemini(body)
        yield Case(f"LiteLLM request chat -> gemini, {size}", len(body), work, partial(echo, body))
