"""Our own reading of a reply, in the judges' words."""

from dragoman.core.parts import Reasoning, Refusal, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Response
from dragoman.core.stream import collect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from event_grammar import check_events
from oracles import Call, Reading, Usage


def read(dialect: str, body: bytes, *, streamed: bool) -> Reading:
    """Read a reply with the project's own parser or decoder."""
    speaker = dialect_named(dialect)
    try:
        if not streamed:
            return _read(speaker.parse_response(body))
        decoder = speaker.decoder()
        return _read(collect(check_events([*decoder.feed(body), *decoder.close()])))
    except Problem as problem:
        return Reading(problem=str(problem))


def translate(body: bytes, source: str, target: str, *, streamed: bool) -> bytes | Problem:
    """Translate a reply to another dialect; a whole reply that cannot be expressed is a problem."""
    if streamed:
        translator = StreamTranslator(source, target)
        return translator.feed(body) + translator.close()
    try:
        return translate_response(body, source, target).body
    except Problem as problem:
        return problem


def _read(response: Response) -> Reading:
    parts = response.parts
    usage = response.usage
    return Reading(
        text="".join(part.text for part in parts if isinstance(part, Text)),
        calls=tuple(
            Call(part.name, part.arguments, part.id, part.form) for part in parts if isinstance(part, ToolCall)
        ),
        finish=response.finish.reason,
        usage=Usage(usage.input, usage.output, usage.cached, usage.reasoning) if usage is not None else None,
        refusal="".join(part.text for part in parts if isinstance(part, Refusal)),
        reasoning="".join(text for part in parts if isinstance(part, Reasoning) for text in part.texts),
    )
