"""What of a conversation the model looks at: the last prompt, and what was called and answered since.

The prompt is the last turn of the user that is more than results of tools; texts that come along with later results
belong to it. What clients put around a prompt in tags (reminders, surroundings) nobody asks, and it is left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from dragoman.simulator.model.schemas.json_values import an_object
from dragoman.simulator.model.tool_results import read_json
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Call, Result, Turn

_HEAD = _TAIL = 3000
"""Of a long prompt the model reads beginning and end: who gives a document says before or after it what to do."""
_LONGEST_READ = 20_000
_TAGGED = re.compile(r"<([a-z]{2,40}(?:[-_][a-z]{1,40}){1,4})>.{0,40000}?</\1>", re.DOTALL)


class Conversation(Struct, frozen=True):
    """The end of a conversation."""

    prompt: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    media: tuple[str, ...] = ()

    def known(self) -> Mapping[str, Any]:
        """What the results say, by name; the last one wins."""
        told: Json = {}
        for result in self.results:
            if not result.failed:
                _collect(read_json(result.text), told, 0)
        return told


def read_conversation(turns: tuple[Turn, ...]) -> Conversation:
    """Find the last prompt and what followed it."""
    start = _start(turns)
    texts: list[str] = []
    calls: list[Call] = []
    results: list[Result] = []
    media: list[str] = []
    for turn in turns[start:]:
        calls.extend(turn.calls)
        results.extend(turn.results)
        if turn.role == "user":
            media.extend(turn.media)
            if turn.text.strip():
                texts.append(_untagged(_ends(turn.text, _LONGEST_READ // 2, _LONGEST_READ // 2)))
    names = {call.id: call.name for call in calls}
    named = (
        result
        if result.name
        else Result(call_id=result.call_id, name=names.get(result.call_id, ""), text=result.text, failed=result.failed)
        for result in results
    )
    return Conversation(_ends("\n".join(texts), _HEAD, _TAIL), tuple(calls), tuple(named), tuple(media))


def _start(turns: tuple[Turn, ...]) -> int:
    """The place of the last prompt. What the user says in one go with results only goes with them."""
    start = 0
    prompt: int | None = None
    with_results = False
    for place, turn in enumerate(turns):
        if turn.role == "assistant":
            prompt, with_results = None, False
        elif turn.role == "user":
            with_results = with_results or bool(turn.results)
            if turn.text.strip() or turn.media:
                prompt = place
            if prompt is not None and not with_results:
                start = prompt
    return start


def _ends(text: str, head: int, tail: int) -> str:
    return text if len(text) <= head + tail else f"{text[:head]}\n{text[-tail:]}"


def _untagged(text: str) -> str:
    if "</" not in text:
        return text
    bare = _TAGGED.sub(" ", text)
    return bare if bare.strip() else text


def _collect(value: Any, told: Json, depth: int) -> None:
    for name, inner in an_object(value).items():
        told[name] = inner
        if depth < 3:
            _collect(inner, told, depth + 1)
