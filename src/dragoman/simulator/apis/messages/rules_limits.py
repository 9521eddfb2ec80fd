"""Rules about how much a request may be: bytes, messages, tokens."""

from collections.abc import Iterator

from dragoman.simulator.apis.messages.read import read_ask
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.model.usage import ask_tokens
from dragoman.simulator.rule import Situation, Violation

_MEGABYTE = 1 << 20
_MOST_BYTES = 32 * _MEGABYTE
_MOST_BYTES_ON_VERTEX = 30 * _MEGABYTE
_MOST_MESSAGES = 100_000
_SMALL = 20_000
"""So few bytes cannot be too many tokens, whatever they say."""
_SECTION = "wire/anthropic_messages.md section 1"


@rule("request-size", f"{_SECTION}; platform.claude.com api/errors")
def request_size(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A body has at most 32 MB, on Vertex 30."""
    if reading.size > (_MOST_BYTES_ON_VERTEX if reading.vertex else _MOST_BYTES):
        yield Violation("Request exceeds the maximum allowed number of bytes.", "", 413)


@rule("message-count", f"{_SECTION}; no source for the words")
def message_count(reading: Reading, _: Situation) -> Iterator[Violation]:
    """There are at most 100,000 messages."""
    count = len(reading.request.messages)
    if count > _MOST_MESSAGES:
        yield Violation(f"messages: List should have at most {_MOST_MESSAGES} items, not {count}", "/messages")


@rule("prompt-length", "wire/mapping.md section 7; recorded: anthropic/ruby-llm-0027")
def prompt_length(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A request has no more tokens than the model can read."""
    if reading.size < _SMALL or reading.generating is None:
        return
    longer = any(beta.startswith("context-1m-") for beta in reading.betas or ())
    tokens, most = ask_tokens(read_ask(reading)), 1_000_000 if longer else reading.model.most_input
    if tokens > most:
        yield Violation(f"prompt is too long: {tokens} tokens > {most} maximum", "/messages")


RULES = (request_size, message_count, prompt_length)
