"""Mutators for the rules about turns: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate


def _call_first(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    call: Json = {"functionCall": {"name": "look_up_weather", "args": {}}}
    result = {"functionResponse": {"name": "look_up_weather", "response": {"output": "rain"}}}
    changes.contents(changed)[:0] = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    yield changed
    changed = changes.copy_body(body)
    for content, _index, part in changes.place_parts(changed):
        if changes.get(part, "function_call") is not None:
            content["role"] = "user"
            yield changed
            return


def _model_first(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    changes.contents(changed).insert(0, {"role": "model", "parts": [{"text": "Hello."}]})
    yield changed


def _remove_call(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    contents = changes.contents(changed)
    for content in contents:
        if any(changes.get(part, "function_call") is not None for part in changes.parts(content)):
            content["parts"] = [{"text": "I could call a function."}]
    if changes.responses(changed):
        yield changed


def _end_with_model(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    changes.contents(changed).append({"role": "model", "parts": [{"text": "I would say"}]})
    yield changed


def _add_trailing_sibling(body: Json, _: Random) -> Iterable[Json]:
    siblings = ({"text": "Go on."}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}})
    for sibling in siblings:
        changed = changes.copy_body(body)
        last = changes.contents(changed)[-1]
        if any(changes.get(part, "function_response") is not None for part in changes.parts(last)):
            changes.parts(last).append(sibling)
            yield changed


def _change_count(body: Json, _: Random) -> Iterable[Json]:
    for index, content in enumerate(changes.contents(changes.copy_body(body))):
        results = [part for part in changes.parts(content) if changes.get(part, "function_response") is not None]
        if results and len(results) == len(changes.parts(content)):
            for parts in ([*results, results[0]], results[1:] or [{"text": "Never mind."}]):
                changed = changes.copy_body(body)
                changes.contents(changed)[index] = {"role": "user", "parts": parts}
                yield changed
            return


def _apart(body: Json, _: Random) -> Iterable[Json]:
    for index, content in enumerate(changes.contents(changes.copy_body(body))):
        results = changes.parts(content)
        if len(results) > 1 and all(changes.get(part, "function_response") is not None for part in results):
            changed = changes.copy_body(body)
            split = [{"role": "user", "parts": parts} for parts in (results[:1], results[1:])]
            changes.contents(changed)[index : index + 1] = split
            yield changed
            return


def _mismatch(body: Json, _: Random) -> Iterable[Json]:
    for name in ("id", "name"):
        changed = changes.copy_body(body)
        for response in changes.responses(changed):
            response[name] = f"{response.get(name)}x"
            yield changed
            break
    for index, content in enumerate(changes.contents(changes.copy_body(body))):
        results = [changes.get(part, "function_response") for part in changes.parts(content)]
        if len(results) > 1 and None not in results and results[0].get("id") != results[1].get("id"):
            changed = changes.copy_body(body)
            changes.parts(changes.contents(changed)[index]).reverse()
            yield changed
            return


MUTATORS: dict[str, Mutate] = {
    "gemini.call-turn": _call_first,
    "gemini.first-turn": _model_first,
    "gemini.result-turn": _remove_call,
    "gemini.last-turn": _end_with_model,
    "gemini.result-last": _add_trailing_sibling,
    "gemini.result-count": _change_count,
    "gemini.results-together": _apart,
    "gemini.result-match": _mismatch,
}
