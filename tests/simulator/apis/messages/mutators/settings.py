"""Mutators for the rules about settings: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import blocks_of, change
from simulator.mutation import Mutate

_OCTOBER = "2026-10-21"


def _unknown_model(body: Json, _: Random) -> Iterator[Json]:
    if "model" in body:
        yield change(body, model="no-such-model")


def _set_thread(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield change(body, thread={"type": "create"})
        yield change(body, thread={"type": "continue", "previous_message_id": "msg_01"})


def _in_october(body: Json) -> Iterator[Json]:
    """On Vertex the version is in the body; elsewhere it is in a header, which no change of a body breaks."""
    if "anthropic_version" in body and "max_tokens" in body:
        yield change(body, anthropic_version=_OCTOBER, temperature=None, top_p=None, top_k=None)


def _set_sampling_in_october(body: Json, _: Random) -> Iterator[Json]:
    for moved in _in_october(body):
        yield change(moved, temperature=1.0)
        yield change(moved, top_k=5)


def _blocks_in_october(body: Json, _: Random) -> Iterator[Json]:
    location = {"type": "char_location", "cited_text": "a", "document_index": 0, "document_title": None}
    cited = {"type": "text", "text": "a", "citations": [{**location, "start_char_index": 0, "end_char_index": 1}]}
    source = {"type": "text", "media_type": "text/plain", "data": "words"}
    for moved in _in_october(body):
        if any(blocks_of(message) for message in moved["messages"]):
            continue
        question = {"role": "user", "content": "Why?"}
        document = {"role": "assistant", "content": [{"type": "document", "source": source}]}
        yield change(moved, messages=[question, document, question])
        yield change(moved, messages=[{"role": "user", "content": [cited]}])
        found = {"type": "search_result", "source": "https://example.com", "title": "A", "content": [cited]}
        yield change(moved, messages=[{"role": "user", "content": [found]}])


def _too_many_tokens(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield change(body, max_tokens=10_000_000)


def _stream_prewarm(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield change(body, max_tokens=0, stream=True)


def _blank_stop(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body:
        yield change(body, stop_sequences=["END", "\n"])


MUTATORS: dict[str, Mutate] = {
    "messages.model-exists": _unknown_model,
    "messages.thread-unsupported": _set_thread,
    "messages.version-sampling": _set_sampling_in_october,
    "messages.version-blocks": _blocks_in_october,
    "messages.max-tokens": _too_many_tokens,
    "messages.prewarm": _stream_prewarm,
    "messages.stop-sequences": _blank_stop,
}
