"""How turns follow each other: who begins, who ends, and that every call has its result."""

from collections.abc import Iterable, Iterator
from random import Random

from dragoman.simulator.apis.gemini import bodies
from dragoman.simulator.apis.gemini.heard import Heard, HeardRule
from dragoman.simulator.apis.gemini.turns import Turn
from dragoman.simulator.rule import Json, Rule, Situation, Violation

_ENDS = "Requests ending with a model turn are not supported unless the last part is a function response."
_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_CALL = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
_RESULT = "Please ensure that function response turn comes immediately after a function call turn."
_MATCH = "Please ensure that every function response has the id and the name of its function call, in the same order."
_FIRST = "Please ensure that multiturn requests begin with a user turn."


def _calls(heard: Heard, _: Situation) -> Iterator[Violation]:
    for number, turn in enumerate(heard.turns):
        if turn.calls and (number == 0 or turn.side == "user"):
            yield Violation(_CALL, turn.calls[0][0].where)


def _first(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.generation.signs and heard.turns and heard.turns[0].side == "model":
        yield Violation(_FIRST, "/contents/0")


def _results(heard: Heard, _: Situation) -> Iterator[Violation]:
    for number, turn in enumerate(heard.turns):
        if turn.results and (number == 0 or not heard.turns[number - 1].calls):
            yield Violation(_RESULT, turn.results[0][0].where)


def _ends(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.generation.exact and heard.turns and heard.turns[-1].side == "model":
        yield Violation(_ENDS, f"/contents/{len(heard.request.contents or []) - 1}")


def _results_last(heard: Heard, _: Situation) -> Iterator[Violation]:
    contents = heard.request.contents or []
    parts = contents[-1].parts or [] if contents else []
    results = [part.function_response is not None for part in parts]
    if heard.generation.exact and any(results) and not results[-1]:
        yield Violation(_ENDS, f"/contents/{len(contents) - 1}/parts/{len(parts) - 1}")


def _pairs(heard: Heard) -> Iterator[tuple[Turn, Turn | None]]:
    for number, turn in enumerate(heard.turns):
        if turn.calls:
            yield turn, heard.turns[number + 1] if number + 1 < len(heard.turns) else None


def _count(heard: Heard, _: Situation) -> Iterator[Violation]:
    for turn, following in _pairs(heard):
        if len(following.results if following is not None else []) != len(turn.calls):
            yield Violation(_COUNT, turn.calls[0][0].where)


def _together(heard: Heard, _: Situation) -> Iterator[Violation]:
    for _turn, following in _pairs(heard) if heard.generation.signs else ():
        places = [placed for placed, _result in (following.results if following is not None else [])]
        apart = next((placed for placed in places if placed.content != places[0].content), None)
        if apart is not None:
            yield Violation(_COUNT, apart.where)


def _match(heard: Heard, _: Situation) -> Iterator[Violation]:
    if not heard.generation.exact:
        return
    for turn, following in _pairs(heard):
        for (_placed, call), (placed, result) in zip(turn.calls, following.results if following else [], strict=False):
            # google-genai's automatic function calling leaves the id out, so a missing one is no mismatch.
            if call.name != result.name or (result.id and result.id != call.id):
                yield Violation(_MATCH, placed.where)


def _call_first(body: Json, _: Random) -> Iterable[Json]:
    changed = bodies.copied(body)
    call: Json = {"functionCall": {"name": "look_up_weather", "args": {}}}
    result = {"functionResponse": {"name": "look_up_weather", "response": {"output": "rain"}}}
    bodies.contents(changed)[:0] = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    yield changed
    changed = bodies.copied(body)
    for content, _index, part in bodies.placed_parts(changed):
        if bodies.get(part, "function_call") is not None:
            content["role"] = "user"
            yield changed
            return


def _model_first(body: Json, _: Random) -> Iterable[Json]:
    changed = bodies.copied(body)
    bodies.contents(changed).insert(0, {"role": "model", "parts": [{"text": "Hello."}]})
    yield changed


def _uncalled(body: Json, _: Random) -> Iterable[Json]:
    changed = bodies.copied(body)
    contents = bodies.contents(changed)
    for content in contents:
        if any(bodies.get(part, "function_call") is not None for part in bodies.parts(content)):
            content["parts"] = [{"text": "I could call a function."}]
    if bodies.responses(changed):
        yield changed


def _trailing_model(body: Json, _: Random) -> Iterable[Json]:
    changed = bodies.copied(body)
    bodies.contents(changed).append({"role": "model", "parts": [{"text": "I would say"}]})
    yield changed


def _trailing_sibling(body: Json, _: Random) -> Iterable[Json]:
    siblings = ({"text": "Go on."}, {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}})
    for sibling in siblings:
        changed = bodies.copied(body)
        last = bodies.contents(changed)[-1]
        if any(bodies.get(part, "function_response") is not None for part in bodies.parts(last)):
            bodies.parts(last).append(sibling)
            yield changed


def _miscounted(body: Json, _: Random) -> Iterable[Json]:
    for index, content in enumerate(bodies.contents(bodies.copied(body))):
        results = [part for part in bodies.parts(content) if bodies.get(part, "function_response") is not None]
        if results and len(results) == len(bodies.parts(content)):
            for parts in ([*results, results[0]], results[1:] or [{"text": "Never mind."}]):
                changed = bodies.copied(body)
                bodies.contents(changed)[index] = {"role": "user", "parts": parts}
                yield changed
            return


def _apart(body: Json, _: Random) -> Iterable[Json]:
    for index, content in enumerate(bodies.contents(bodies.copied(body))):
        results = bodies.parts(content)
        if len(results) > 1 and all(bodies.get(part, "function_response") is not None for part in results):
            changed = bodies.copied(body)
            split = [{"role": "user", "parts": parts} for parts in (results[:1], results[1:])]
            bodies.contents(changed)[index : index + 1] = split
            yield changed
            return


def _mismatched(body: Json, _: Random) -> Iterable[Json]:
    for name in ("id", "name"):
        changed = bodies.copied(body)
        for response in bodies.responses(changed):
            response[name] = f"{response.get(name)}x"
            yield changed
            break
    for index, content in enumerate(bodies.contents(bodies.copied(body))):
        results = [bodies.get(part, "function_response") for part in bodies.parts(content)]
        if len(results) > 1 and None not in results and results[0].get("id") != results[1].get("id"):
            changed = bodies.copied(body)
            bodies.parts(bodies.contents(changed)[index]).reverse()
            yield changed
            return


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.call-turn",
        "A turn of calls is the model's, and comes after the user's.",
        "wire/gemini.md section 5",
        _calls,
        _call_first,
    ),
    Rule(
        "gemini.first-turn",
        "From Gemini 3 on the user speaks first.",
        "wire/mapping.md section 1; the words are ours",
        _first,
        _model_first,
    ),
    Rule(
        "gemini.result-turn",
        "Results come immediately after the calls they answer.",
        "wire/gemini.md section 5; Google's words from public threads",
        _results,
        _uncalled,
    ),
    Rule(
        "gemini.last-turn",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, the last turn is not the model's.",
        "wire/gemini.md section 0; Google's words from github.com/LibreChat-AI/agents/pull/323; "
        "older ones take it: gemini/mastra-0027",
        _ends,
        _trailing_model,
    ),
    Rule(
        "gemini.result-last",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, nothing stands behind a result in the last content.",
        "github.com/agentgateway/agentgateway/issues/2811; wire/gemini.md section 5; "
        "older ones take it: gemini/ruby-llm-0068",
        _results_last,
        _trailing_sibling,
    ),
    Rule(
        "gemini.result-count",
        "There are as many results as there were calls.",
        "wire/gemini.md section 5",
        _count,
        _miscounted,
    ),
    Rule(
        "gemini.results-together",
        "From Gemini 3 on the results of one turn's calls stand in one content.",
        "wire/gemini.md section 5; older ones take them apart: gemini/crewai-0007",
        _together,
        _apart,
    ),
    Rule(
        "gemini.result-match",
        "From Gemini 3.6 on a result has the name and the place of its call, and its id if it has one.",
        "wire/gemini.md sections 0 and 5; the words are ours; without an id: clients/captures/sdk-google",
        _match,
        _mismatched,
    ),
)
