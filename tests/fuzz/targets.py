"""What is fuzzed, and what must hold of it.

Every target takes untrusted bytes. A reader may raise `Malformed`, everything else only `Problem`; a decoder raises
nothing at all, obeys the grammar and does not care where its chunks are cut. What we write, we can read again.
"""

import contextlib
import itertools
import json
import random
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman.core.events import Event, Failed, Finished, PartStarted
from dragoman.core.parts import ToolCall
from dragoman.core.problems import Problem
from dragoman.core.stream import collect
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.undo import NO_UNDO, ReplyPipeline
from dragoman.wire.json import Malformed
from dragoman.wire.json_stream import JsonStreamReader
from dragoman.wire.sse import SseReader
from event_grammar import check_events
from fuzz import mutations, seeds

MODELS = {
    "chat": ("gpt-4.1", "gpt-5.5", "mistral-large", "deepseek-v4"),
    "responses": ("gpt-4.1", "gpt-5.5"),
    "messages": ("claude-opus-4-8", "claude-haiku-4-5"),
    "gemini": ("gemini-3-flash", "gemini-2.5-flash", "gemini-1.5-pro"),
}
STATUSES = (200, 400, 401, 403, 404, 408, 409, 413, 429, 499, 500, 502, 503, 504, 529, 0, 999)
PLAIN_ENDS = {"stop", "length", "tool_calls", "filtered", "refused"}
"""Finish reasons every dialect has a word for; others may become an error where there is none."""
WAITS = ("", "3", "-1", "1.5", "nan", "inf", "1e999", "Wed, 21 Oct 2099 07:28:00 GMT", "x", "9" * 5000)


class Broken(AssertionError):  # noqa: N818  # it says what it is
    """Something that must hold does not."""


@dataclass(frozen=True)
class Target:
    """One thing to fuzz: how its inputs are made and what is done with them."""

    name: str
    make: Callable[[random.Random], bytes]
    run: Callable[[bytes, random.Random], None]

    def try_(self, data: bytes) -> None:
        """Run one input. Every choice is drawn from the bytes themselves, so that they are all one needs to run it again."""
        self.run(data, random.Random(zlib.crc32(data)))  # noqa: S311


_BLOCK = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r|\Z)", re.DOTALL)


def _pieces(data: bytes, chance: random.Random) -> Iterator[bytes]:
    if chance.random() < 0.3:
        # As servers flush: one event at a time.
        yield from _BLOCK.findall(data)
        return
    largest = chance.choice((1, 3, 16, 100, 1000, 10_000))
    if len(data) > largest * 500:
        largest = len(data) // 100
    at = 0
    while at < len(data):
        size = chance.randint(1, largest)
        yield data[at : at + size]
        at += size


def _valid_json(body: bytes) -> None:
    """Hold what we send to the letter of RFC 8259, which readers of other vendors do."""
    try:
        json.loads(body.decode("utf-8"), parse_constant=_no_constant, parse_int=len, parse_float=len)
    except RecursionError:
        return
    except ValueError as error:
        raise Broken(f"not JSON: {error}") from error


def _no_constant(word: str) -> None:
    raise Broken(f"not JSON: {word}")


def _read(reader: Any, pieces: Iterator[bytes]) -> list[Any]:
    collected: list[Any] = []
    try:
        for piece in pieces:
            collected.extend(reader.feed(piece))
        collected.extend(reader.close())
    except Malformed:
        collected.append("malformed")
    return collected


def run_reader(reader: Callable[[], Any], data: bytes, chance: random.Random) -> None:
    """Read at any boundary: the same values come out."""
    if _read(reader(), iter((data,))) != _read(reader(), _pieces(data, chance)):
        raise Broken("the reader cares where its chunks are cut")


def run_parse_request(name: str, data: bytes, chance: random.Random) -> None:
    """Read a request, write it home, read it again."""
    dialect = DIALECTS[name]
    try:
        request = dialect.parse_request(Call(data, "some-model", stream=chance.random() < 0.5))
    except Problem:
        return
    call = dialect.render_request(request, Traits(dialect=name))
    _valid_json(call.body)
    _again(dialect.parse_request, call)


def run_translate_request(source: str, target: str, data: bytes, chance: random.Random) -> None:
    """Translate a request to another dialect; the result must be a valid request there."""
    model = chance.choice((*MODELS[target], ""))
    call = Call(data, "some-model", stream=chance.random() < 0.5)
    try:
        translation = translate_request(call, source, target, model=model, strict=chance.random() < 0.1)
    except Problem:
        return
    _check_size(data, translation.call.body)
    if source != target:
        _valid_json(translation.call.body)
        _again(DIALECTS[target].parse_request, translation.call)


def run_parse_response(name: str, data: bytes, chance: random.Random) -> None:
    """Read a reply, write it home, read it again."""
    dialect = DIALECTS[name]
    try:
        response = dialect.parse_response(data)
    except Problem:
        return
    try:
        body = dialect.build_response(response, None)
    except Problem:
        if response.finish.reason in PLAIN_ENDS:
            raise
        return
    _valid_json(body)
    if response.finish.reason in PLAIN_ENDS:
        _again(dialect.parse_response, body)


def run_translate_response(source: str, target: str, data: bytes, chance: random.Random) -> None:
    """Translate a reply to another dialect; the result must be a valid reply there."""
    try:
        translated = translate_response(data, source, target)
    except Problem:
        return
    _check_size(data, translated.body)
    if source != target:
        _valid_json(translated.body)
        if DIALECTS[source].parse_response(data).finish.reason in PLAIN_ENDS:
            _again(DIALECTS[target].parse_response, translated.body)


def _again(parse: Callable[[Any], Any], written: Any) -> None:
    try:
        parse(written)
    except Problem as problem:
        if problem.kind not in {"malformed_reply", "invalid_request"}:
            return
        raise Broken(f"what was written cannot be read: {problem!r}") from problem


def _check_size(data: bytes, result: bytes) -> None:
    if len(result) > 40 * len(data) + 200_000:
        raise Broken(f"{len(data)} bytes became {len(result)}")


def _decode(name: str, pieces: Iterator[bytes]) -> list[Event]:
    decoder = DIALECTS[name].decoder()
    collected: list[Event] = []
    for piece in pieces:
        collected.extend(decoder.feed(piece))
    collected.extend(decoder.close())
    if decoder.feed(b"data: {}\n\n") or decoder.close():
        raise Broken("told something after the end")
    return list(check_events(collected))


def run_decoder(name: str, data: bytes, chance: random.Random) -> None:
    """Decode at any boundary, fold, and write home."""
    events = _decode(name, iter((data,)))
    if events != _decode(name, _pieces(data, chance)):
        raise Broken("the decoder cares where its chunks are cut")
    with contextlib.suppress(Problem):
        collect(events)
    encoder = DIALECTS[name].encoder(None)
    _readable(name, b"".join(map(encoder.feed, in_sequence(events))), events)


def in_sequence(events):
    """The events with one part open at a time, as the gateway sends them."""
    pipeline = ReplyPipeline(NO_UNDO)
    return [ordered for event in events for ordered in pipeline.feed(event)]


def _readable(name: str, written: bytes, events: list[Event]) -> None:
    """What a client of `name` reads: a stream that obeys the grammar and ends as the upstream's did."""
    body = _decode(name, iter((written,)))[-1]
    end = events[-1]
    plain = isinstance(end, Finished) and end.finish.reason in PLAIN_ENDS and not _find_repeated_ids(events)
    if plain and isinstance(body, Failed) and body.problem.kind == "malformed_reply":
        raise Broken(f"a finished reply cannot be read: {body.problem!r} after {end.finish.reason}")
    if isinstance(end, Failed) and not isinstance(body, Failed):
        raise Broken("a failed reply looks finished")


def _find_repeated_ids(events: list[Event]) -> bool:
    """Two calls with one id: whose arguments are whose is anybody's guess."""
    ids = [event.part.id for event in events if isinstance(event, PartStarted) and isinstance(event.part, ToolCall)]
    return len(ids) != len(set(ids))


def run_stream(source: str, target: str, data: bytes, chance: random.Random) -> None:
    """Translate a stream; the client's decoder must make sense of it."""
    translator = StreamTranslator(source, target, Context())
    events = [translator.feed(piece) for piece in _pieces(data, chance)]
    written = b"".join(events) + translator.close()
    _check_size(data, written)
    if translator.losses and source == target:
        raise Broken("a loss at home")
    _readable(target, written, _decode(source, iter((data,))))


def run_error(name: str, data: bytes, chance: random.Random) -> None:
    """Read an error, write it in every dialect, read that again."""
    headers = {"retry-after": chance.choice(WAITS), "content-type": chance.choice(("application/json", "text/html"))}
    status = chance.choice(STATUSES)
    for target, dialect in DIALECTS.items():
        reply = translate_error(status, headers, data, name, target)
        _valid_json(reply.body)
        if not 400 <= reply.status <= 599:
            raise Broken(f"an error with status {reply.status}")
        for field, value in reply.headers.items():
            plain = field.isascii() and value.isprintable() and value.isascii()
            if not plain or (field == "retry-after" and not re.fullmatch(r"\d+(\.\d+)?", value)):
                raise Broken(f"not a header: {field}: {value!r}")
        dialect.parse_error(reply.status, reply.headers, reply.body)


def _streams(chance: random.Random) -> bytes:
    return mutations.stream(seeds.streams(chance.choice(seeds.DIALECTS)), chance)


def _targets() -> Iterator[Target]:
    yield Target("sse", _streams, partial(run_reader, SseReader))
    yield Target("json_stream", _streams, partial(run_reader, JsonStreamReader))
    for name in seeds.DIALECTS:
        request = partial(mutations.document, seeds.requests(name))
        reply = partial(mutations.document, seeds.replies(name))
        error = partial(mutations.document, seeds.errors(name))
        stream = partial(mutations.stream, seeds.streams(name))
        yield Target(f"parse_request:{name}", request, partial(run_parse_request, name))
        yield Target(f"parse_response:{name}", reply, partial(run_parse_response, name))
        yield Target(f"decoder:{name}", stream, partial(run_decoder, name))
        yield Target(f"parse_error:{name}", error, partial(run_error, name))
    for source, target in itertools.product(seeds.DIALECTS, repeat=2):
        request = partial(mutations.document, seeds.requests(source))
        reply = partial(mutations.document, seeds.replies(source))
        stream = partial(mutations.stream, seeds.streams(source))
        yield Target(f"translate_request:{source}:{target}", request, partial(run_translate_request, source, target))
        yield Target(f"translate_response:{source}:{target}", reply, partial(run_translate_response, source, target))
        yield Target(f"stream:{source}:{target}", stream, partial(run_stream, source, target))


def targets() -> dict[str, Target]:
    """All of them, by name."""
    return {target.name: target for target in _targets()}
