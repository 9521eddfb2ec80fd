"""Hold an answer to its stop sequences and its number of tokens."""

from msgspec.structs import replace

from dragoman.simulator.model.usage import CHARACTERS, call_tokens, text_tokens
from dragoman.simulator.talk import Answer, AnswerEnd, Ask


def limited(answer: Answer, ask: Ask) -> Answer:
    """Cut an answer where it must end. What comes first, a stop sequence or the last token, is what ends it."""
    left = None if ask.max_tokens is None else max(0, ask.max_tokens - text_tokens(answer.thought))
    if left is not None and text_tokens(answer.thought) > (ask.max_tokens or 0):
        cut = replace(answer, thought=answer.thought[: CHARACTERS * max(0, ask.max_tokens or 0)])
        return _with_text(cut, "", end="length")
    place, stop = _stop(answer.text, ask.stop)
    if stop and (left is None or text_tokens(answer.text[:place]) <= left):
        return _with_text(answer, answer.text[:place], end="stop", stopped_by=stop)
    if left is None:
        return answer
    spoken = text_tokens(answer.text)
    if spoken > left:
        return _with_text(answer, answer.text[: CHARACTERS * left], end="length")
    if answer.calls and spoken + sum(map(call_tokens, answer.calls)) > left:
        return _with_text(answer, answer.text, end="length")
    return answer


def _stop(text: str, stops: tuple[str, ...]) -> tuple[int, str]:
    """The first stop sequence in a text; of two at the same place the longer one."""
    found = [(place, -len(stop), stop) for stop in stops if stop and (place := text.find(stop)) >= 0]
    place, _, stop = min(found, default=(len(text), 0, ""))
    return place, stop


def _with_text(answer: Answer, text: str, *, end: AnswerEnd, stopped_by: str = "") -> Answer:
    """An answer that ends early calls nothing, and has no source it no longer quotes."""
    return replace(
        answer,
        text=text,
        calls=(),
        end=end,
        stopped_by=stopped_by,
        sources=tuple(source for source in answer.sources if source.quote in text),
    )
