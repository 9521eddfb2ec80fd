"""Mutators for the rules about signatures: each yields bodies that break its rule."""

import json
from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.gemini.request import iterate_current_steps, merge_turns, read_request
from dragoman.simulator.apis.rule import Json, Violation
from simulator.apis.gemini import changes
from simulator.mutation import Mutate

_FOREIGN = "b3BhcXVlLXNpZ25hdHVyZS0x"


def _first_calls(body: Json) -> list[Json]:
    """Return the calls of a body that must be signed."""
    request = read_request(json.dumps(changes.request_in(body)).encode(), "studio")
    if isinstance(request, Violation):
        return []
    steps = [step.calls[0] for step in iterate_current_steps(merge_turns(request)) if step.calls]
    return [changes.parts(changes.contents(body)[placed.content])[placed.index] for placed in steps]


def _remove_signature(body: Json, _: Random) -> Iterable[Json]:
    for empty in (False, True):
        changed = changes.sign_body(body)
        for part in _first_calls(changed)[-1:]:
            changes.drop(part, "thought_signature")
            if empty:
                part["thoughtSignature"] = ""
            yield changed


def _with_altered(body: Json, chance: Random) -> Iterable[Json]:
    changed = changes.sign_body(body)
    for part in changes.calls(changed)[-1:]:
        token: str = part["thoughtSignature"] if "thoughtSignature" in part else part["thought_signature"]
        at = chance.randrange(34, 44)
        other = "A" if token[at] != "A" else "B"
        for spoilt in (token[:at] + other + token[at + 1 :], token[:-8]):
            changes.put(part, "thought_signature", spoilt)
            yield changes.copy_body(changed)


def _with_foreign(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.sign_body(body)
    for content, _index, part in changes.place_parts(changed):
        if content.get("role") == "model" or len(changes.contents(changed)) == 1:
            changes.put(part, "thought_signature", _FOREIGN)
            yield changed
            return


def _with_moved(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.sign_body(body)
    calls = changes.calls(changed)
    for part in calls[-1:]:
        call = changes.get(part, "function_call")
        call["args"] = {**(call.get("args") or {}), "changed on the way": True}
        yield changed


def _with_other_model(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.sign_body(body)
    for number, part in enumerate(changes.calls(changed)[-1:]):
        changes.put(part, "thought_signature", changes.token_for(part, f"mutated {number}", "gemini-3-pro-preview"))
        yield changed


def _with_twice(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.sign_body(body)
    contents = changes.contents(changed)
    for index in range(len(contents) - 2, -1, -1):
        pair = contents[index : index + 2]
        parts = [changes.parts(content) for content in pair]
        if (
            all(changes.get(part, "function_call") is not None for part in parts[0])
            and all(changes.get(part, "function_response") is not None for part in parts[1])
            and len(parts[0]) == len(parts[1])
            and parts[0]
        ):
            contents[index + 2 : index + 2] = changes.copy_body({"pair": pair})["pair"]
            yield changed
            return


def _with_other_token(body: Json, _: Random) -> Iterable[Json]:
    for token in ("", _FOREIGN):
        changed = changes.copy_body(body)
        changes.put(changes.request_in(changed), "continuation_token", token)
        yield changed


MUTATORS: dict[str, Mutate] = {
    "gemini.signature-missing": _remove_signature,
    "gemini.signature-altered": _with_altered,
    "gemini.signature-foreign": _with_foreign,
    "gemini.signature-moved": _with_moved,
    "gemini.signature-model": _with_other_model,
    "gemini.signature-twice": _with_twice,
    "gemini.continuation-token": _with_other_token,
}
