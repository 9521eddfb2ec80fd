"""Mutators for the rules about messages: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_LONGEST_ID = 64


def _break_no_messages(body: Json, _: Random) -> Iterable[Json]:
    yield changes.change(body, messages=[])


def _break_no_calls(body: Json, _: Random) -> Iterable[Json]:
    for place, message in changes.messages(body, "assistant"):
        if not message.get("tool_calls") and message.get("content") is not None:
            yield changes.put(body, ("messages", place, "tool_calls"), [])


def _break_content(body: Json, chance: Random) -> Iterable[Json]:
    places = [place for place, _ in changes.messages(body, "system", "user", "tool")]
    if places:
        place = chance.choice(places)
        yield changes.put(body, ("messages", place, "content"), None)
        yield changes.drop(changes.put(body, ("messages", place, "content"), None), ("messages", place, "content"))
    yield changes.with_messages(body, {"role": "assistant", "content": None})


def _break_unasked(body: Json, _: Random) -> Iterable[Json]:
    orphan = {"role": "tool", "tool_call_id": "call_nobody_asked", "content": "{}"}
    yield changes.with_messages(body, orphan, at=0)
    for place, message in changes.messages(body, "assistant"):
        before = body["messages"][place - 1]["role"] if place else ""
        if message.get("tool_calls") and before != "tool":
            result = changes.put(body, ("messages", place, "content"), "I call a tool.")
            yield changes.drop(result, ("messages", place, "tool_calls"))


def _break_stranger(body: Json, _: Random) -> Iterable[Json]:
    for place, _message in changes.messages(body, "tool"):
        yield changes.put(body, ("messages", place, "tool_call_id"), "call_somebody_else")


def _break_twice(body: Json, _: Random) -> Iterable[Json]:
    for place, message in changes.messages(body, "tool"):
        yield changes.with_messages(body, message, at=place + 1)
    for path, call in changes.calls(body):
        doubled = [*body["messages"][path[1]]["tool_calls"], call]
        yield changes.put(body, path[:3], doubled)


def _break_unanswered(body: Json, _: Random) -> Iterable[Json]:
    for place, _message in changes.messages(body, "tool"):
        yield changes.drop(body, ("messages", place))
    call = {"id": "call_unheard", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
    yield changes.with_messages(body, {"role": "assistant", "content": None, "tool_calls": [call]})
    yield changes.with_messages(
        body, {"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "And now?"}
    )


def _break_id_length(body: Json, _: Random) -> Iterable[Json]:
    for path, _call in changes.calls(body):
        yield changes.put(body, (*path, "id"), "call_" + "x" * _LONGEST_ID)


def _break_call_name(body: Json, _: Random) -> Iterable[Json]:
    for path, call in changes.calls(body):
        kind = call["type"]
        for name in ("get weather", "files.read", "", "x" * 65):
            yield changes.put(body, (*path, kind, "name"), name)


def _break_speaker(body: Json, chance: Random) -> Iterable[Json]:
    places = [place for place, _ in changes.messages(body, "system", "user", "assistant")]
    if places:
        place = chance.choice(places)
        for name in ("Ada Lovelace", "<user>", "x" * 65):
            yield changes.put(body, ("messages", place, "name"), name)


def _break_function_role(body: Json, _: Random) -> Iterable[Json]:
    if (newer := changes.change_model(body, "gpt-5.6-terra")) is not None:
        yield changes.with_messages(newer, {"role": "function", "name": "lookup", "content": "{}"})


MUTATORS: dict[str, Mutate] = {
    "chat.content-required": _break_content,
    "chat.messages-empty": _break_no_messages,
    "chat.tool-calls-empty": _break_no_calls,
    "chat.tool-call-id-length": _break_id_length,
    "chat.call-name": _break_call_name,
    "chat.speaker-name": _break_speaker,
    "chat.tool-result-unasked": _break_unasked,
    "chat.tool-result-unknown-id": _break_stranger,
    "chat.tool-call-id-duplicate": _break_twice,
    "chat.tool-calls-unanswered": _break_unanswered,
    "chat.function-role": _break_function_role,
}
