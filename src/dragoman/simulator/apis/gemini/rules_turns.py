"""How turns follow each other: who begins, who ends, and that every call has its result."""

from collections.abc import Iterator

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule
from dragoman.simulator.apis.gemini.turns import Turn
from dragoman.simulator.rule import Rule, Situation, Violation

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


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.call-turn",
        "A turn of calls is the model's, and comes after the user's.",
        "wire/gemini.md section 5",
        _calls,
    ),
    Rule(
        "gemini.first-turn",
        "From Gemini 3 on the user speaks first.",
        "wire/mapping.md section 1; the words are ours",
        _first,
    ),
    Rule(
        "gemini.result-turn",
        "Results come immediately after the calls they answer.",
        "wire/gemini.md section 5; Google's words from public threads",
        _results,
    ),
    Rule(
        "gemini.last-turn",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, the last turn is not the model's.",
        "wire/gemini.md section 0; Google's words from github.com/LibreChat-AI/agents/pull/323; "
        "older ones take it: gemini/mastra-0027",
        _ends,
    ),
    Rule(
        "gemini.result-last",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, nothing stands behind a result in the last content.",
        "github.com/agentgateway/agentgateway/issues/2811; wire/gemini.md section 5; "
        "older ones take it: gemini/ruby-llm-0068",
        _results_last,
    ),
    Rule(
        "gemini.result-count",
        "There are as many results as there were calls.",
        "wire/gemini.md section 5",
        _count,
    ),
    Rule(
        "gemini.results-together",
        "From Gemini 3 on the results of one turn's calls stand in one content.",
        "wire/gemini.md section 5; older ones take them apart: gemini/crewai-0007",
        _together,
    ),
    Rule(
        "gemini.result-match",
        "From Gemini 3.6 on a result has the name and the place of its call, and its id if it has one.",
        "wire/gemini.md sections 0 and 5; the words are ours; without an id: clients/captures/sdk-google",
        _match,
    ),
)
