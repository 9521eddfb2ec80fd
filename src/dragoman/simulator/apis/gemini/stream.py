"""Write an answer as Google streams it: chunks with new parts only, running counts, how it ended in the last.

From Gemini 3 on a text ends in an empty one that carries its signature, and on AI Studio calls are followed by an empty
text. Calls come whole: one a chunk, all in one before Gemini 3, and in pieces where Vertex was asked for that.
"""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.gemini import write
from dragoman.simulator.apis.gemini.continuation import hop
from dragoman.simulator.apis.gemini.heard import heard_in
from dragoman.simulator.talk import Answer, Usage

Json = dict[str, Any]
_DATA = b"data: "
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def stream(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[bytes]:
    """Yield the frames of a stream of events."""
    for made in chunks(answer, accepted, occasion):
        yield _DATA + msgspec.json.encode(made) + b"\r\n\r\n"


def stream_array(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of one JSON array: a stream as it comes without `alt=sse`."""
    before = b"["
    for frame in frames:
        yield before + msgspec.json.format(frame.removeprefix(_DATA).rstrip(), indent=2)
        before = b"\n,\r\n"
    yield b"\n]\n"


def chunks(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[Json]:
    """Yield the chunks of a stream."""
    answer = write.outspoken(answer)
    if write.blocked(answer):
        yield write.prompt_blocked(answer, accepted, occasion)
        return
    answer, continuing = hop(answer, accepted, occasion)
    thought = [[{**part, "text": piece}] for part in write.thoughts(answer, accepted) for piece in _cut(part, occasion)]
    spoken = [*_spoken(answer, accepted, occasion)]
    part_index = write.text_part(answer, accepted) if answer.query else 0
    ending = {**write.ended(answer, part_index), **continuing}
    closing = _closing(answer, accepted, occasion)
    usages = _running(answer.usage, len(thought), len(spoken))
    last = closing is None and bool(spoken or thought)
    everything = [*thought, *spoken]
    for number, parts in enumerate(everything):
        end = ending if last and number == len(everything) - 1 else {}
        yield write.chunk({**write.content(parts, answer), **end}, next(usages), accepted, occasion)
    if not last:
        yield write.chunk({**write.content(closing or [], answer), **ending}, answer.usage, accepted, occasion)


def _cut(part: Json, occasion: Occasion) -> list[str]:
    return occasion.pace.pieces(part["text"])


def _spoken(answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[list[Json]]:
    for part in write.server_calls(answer, accepted, occasion):
        yield [part]
    for piece in occasion.pace.pieces(write.said(answer, accepted)):
        yield [{"text": piece}]
    numbers = range(len(answer.calls))
    if _in_pieces(accepted, occasion):
        for number in numbers:
            yield from ([part] for part in _call_in_pieces(number, answer, accepted, occasion))
        return
    calls = [write.call_part(number, answer, accepted, occasion) for number in numbers]
    if heard_in(accepted).generation.signs:
        yield from ([part] for part in calls)
    elif calls:
        yield calls


def _closing(answer: Answer, accepted: Accepted, occasion: Occasion) -> list[Json] | None:
    """Return the parts of the last chunk; None where the last thing said ends the stream."""
    if answer.end == "malformed_call" or not (answer.text or answer.calls):
        return []
    if answer.calls:
        heard = heard_in(accepted)
        return [{"text": ""}] if heard.generation.signs and not heard.vertex else None
    signature = write.text_signature(answer, accepted, occasion)
    return [{"text": "", **signature}] if signature else None


def _running(usage: Usage, thoughts: int, pieces: int) -> Iterator[Usage]:
    """Yield the counts up to each chunk: first the thoughts grow, then what is said."""
    spoken = usage.output - usage.thought
    for number in range(1, thoughts + 1):
        thought = usage.thought * number // thoughts
        yield Usage(input=usage.input, output=thought, cached=usage.cached, thought=thought)
    for number in range(1, pieces + 1):
        output = usage.thought + spoken * number // pieces
        yield Usage(input=usage.input, output=output, cached=usage.cached, thought=usage.thought)


def _in_pieces(accepted: Accepted, occasion: Occasion) -> bool:
    heard = heard_in(accepted)
    config = heard.request.tool_config
    calling = config.function_calling_config if config is not None else None
    wanted = calling is not None and calling.stream_function_call_arguments
    return heard.vertex and heard.generation.combines and bool(wanted or occasion.pace.partial_args)


def _call_in_pieces(number: int, answer: Answer, accepted: Accepted, occasion: Occasion) -> Iterator[Json]:
    named = write.call_named(number, answer, accepted, occasion)
    signature = write.call_signature(number, answer, accepted, occasion)
    yield {"functionCall": {**named, "willContinue": True}, **signature}
    for piece in _pieces("$", write.arguments(answer.calls[number]), occasion):
        yield {"functionCall": {"partialArgs": [piece], "willContinue": True}}
    yield {"functionCall": {}}


def _pieces(path: str, value: Any, occasion: Occasion) -> Iterator[Json]:
    match value:
        case dict():
            members = cast("Json", value)
            if not members and path != "$":
                yield {"jsonPath": path}
            for name, item in members.items():
                yield from _pieces(path + _step(name), item, occasion)
        case list():
            items = cast("list[Any]", value)
            if not items:
                yield {"jsonPath": f"{path}[]"}
            for index, item in enumerate(items):
                yield from _pieces(f"{path}[{index}]", item, occasion)
        case str():
            yield from _string_pieces(path, value, occasion)
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case None:
            yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case _:
            yield {"jsonPath": path, "numberValue": value}


def _string_pieces(path: str, text: str, occasion: Occasion) -> Iterator[Json]:
    pieces = occasion.pace.pieces(text)
    if len(pieces) < 2:
        yield {"jsonPath": path, "stringValue": text}
        return
    for piece in pieces:
        yield {"jsonPath": path, "stringValue": piece, "willContinue": True}
    yield {"jsonPath": path, "stringValue": ""}


def _step(name: str) -> str:
    if name and not name[0].isdigit() and set(name) <= _BARE:
        return f".{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"
