"""Which calls a prompt asks for.

A prompt is cut into clauses; each clause that asks for a tool is a call, and so is each item of an enumeration where
the tool takes only one: "the weather in Paris and Tokyo" asks twice. A clause that asks for the same tool again must
stand on its own; else it only tells more about the call before it.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec import Struct

from dragoman.simulator.model.filling.evidence import Evidence
from dragoman.simulator.model.filling.fit import Filled, fill_arguments
from dragoman.simulator.model.free_text import fill_text
from dragoman.simulator.model.language.clauses import Clause, clause, clauses, cut, is_inside
from dragoman.simulator.model.language.facts import Fact, conjoined
from dragoman.simulator.model.language.lexicon import ANSWERING, CONCEPTS, NUMBERS, REPLYING, STOP
from dragoman.simulator.model.language.words import stem
from dragoman.simulator.model.toolbox import ENOUGH, Choosing, Reading
from dragoman.simulator.rule import Json

_AND = re.compile(r"\s*,?\s+(?:and|as well as|und|et|y|e)\s+(?:also\s+)?|\s*,\s+(?=[a-z])|\s+also\s+", re.IGNORECASE)
_ALSO = re.compile(r"(?:and|also|what about|how about|und|et|y)\b[\s,]*", re.IGNORECASE)
_REFUSED = re.compile(
    r"\b(?:do not|don't|don\u2019t|never|without)\s+(?:call|us|invok|run)\w*\s+"
    r"(?:it\b|them\b|(?:any\s+|the\s+|a\s+)?(?:tool|function))",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\b(\d{1,3}|[a-z]{3,6}) times\b(?! \d)", re.IGNORECASE)
_SEARCHES = frozenset({stem("search"), stem("google"), stem("browse")})
_QUESTIONS = frozenset(
    {"what", "who", "when", "where", "which", "how", "why", "is", "are", "does", "did", "was", "were"}
)
_MOST_CALLS = 16
_MOST_FACTS = 200
_LONGEST_PARTED = 2000
_LONGEST_ECHO = 6
"""Words of a clause that only goes on with the ask before it."""


class Planned(Struct, frozen=True):
    """A call that is asked for; `guessed` are required parameters the prompt tells nothing about."""

    tool: Reading
    clause: Clause
    arguments: Json | str
    guessed: tuple[str, ...] = ()


class _Asked(Struct):
    tool: Reading
    clause: Clause


def plan(prompt: str, tools: list[Reading], known: Mapping[str, Any] | None = None) -> list[Planned]:
    """Return the calls a prompt asks for, in order."""
    if not tools or _REFUSED.search(prompt) is not None:
        return []
    choosing = Choosing(tools)
    told = [piece for part in clauses(prompt) for piece in _parted(part, choosing)]
    asked = _asked(told, choosing) or _searched(told, tools)
    surroundings = [fact for piece in told for fact in piece.facts][:_MOST_FACTS]
    planned: list[Planned] = []
    for ask in asked:
        # A call that needs something its own clause does not tell may find it anywhere in the prompt.
        own = {fact.text for fact in ask.clause.facts}
        around = [fact for fact in surroundings if fact.text not in own]
        for piece in _items(ask):
            call = filled(ask.tool, piece, around, known)
            if not any(call.tool is other.tool and call.arguments == other.arguments for other in planned):
                planned.extend([call] * _times(ask))
    return planned[:_MOST_CALLS]


def forced(prompt: str, tools: list[Reading], known: Mapping[str, Any] | None = None) -> Planned:
    """Return a call though the prompt asks for none: of the tool that comes nearest, or the first."""
    whole = clause(prompt)
    best, _ = Choosing(tools).best(whole)
    return filled(best or tools[0], whole, [], known)


def filled(tool: Reading, piece: Clause, surroundings: list[Fact], known: Mapping[str, Any] | None = None) -> Planned:
    """Fill a call of a tool."""
    evidence = Evidence(piece, surroundings, known, tool.name)
    if tool.tool.kind == "custom":
        return Planned(tool, piece, fill_text(tool.tool, evidence))
    arguments = _fill(tool, evidence)
    return Planned(tool, piece, arguments.value, arguments.guessed)


def _fill(tool: Reading, evidence: Evidence) -> Filled:
    return fill_arguments(tool.document, evidence)


def _parted(part: Clause, choosing: Choosing) -> Iterator[Clause]:
    """Cut a sentence at each "and" after which a tool is asked for anew."""
    places = _AND.finditer(part.text) if len(part.text) <= _LONGEST_PARTED else iter(())
    outside = [place for place in islice(places, _MOST_CALLS) if not is_inside(place.start(), part.facts)]
    kept: list[re.Match[str]] = []
    here: Reading | None = None
    ends = [*(place.start() for place in outside), len(part.text)][1:]
    for place, end in zip(outside, ends, strict=True):
        there, score = choosing.best(piece := clause(part.text[place.end() : end]))
        if there is None or score < ENOUGH:
            continue
        if here is None:
            here, score = choosing.best(clause(part.text[: place.start()]))
            if here is None or score < ENOUGH:
                here = there
                continue
        if here is not there or (piece.words and piece.words[0].stem in there.name):
            kept.append(place)
            here = there
    if not kept:
        yield part
        return
    pieces = cut(part.text, kept)
    yield clause(pieces[0].text, follows=part.follows)
    yield from pieces[1:]


def _asked(told: list[Clause], choosing: Choosing) -> list[_Asked]:
    """Tell clauses that ask from clauses that only tell more about the ask before them."""
    asked: list[_Asked] = []
    for piece in told:
        tool, score = choosing.best(piece)
        opening = piece.words[0].stem if piece.words else ""
        if asked and opening in REPLYING and not (tool is not None and opening in tool.name):
            continue
        if tool is not None and score >= ENOUGH:
            earlier = next((ask for ask in reversed(asked) if ask.tool is tool), None)
            if earlier is None or (_stands_alone(tool, piece) and _stands_alone(tool, earlier.clause)):
                asked.append(_Asked(tool, piece))
            else:
                earlier.clause = earlier.clause.with_more(piece)
            continue
        echo = _echo(piece)
        if asked and echo is not None and _stands_alone(asked[-1].tool, echo):
            asked.append(_Asked(asked[-1].tool, echo))
        elif asked and piece.facts:
            asked[-1].clause = asked[-1].clause.with_more(piece)
    return asked


def _searched(told: list[Clause], tools: list[Reading]) -> list[_Asked]:
    """Let a question that is for no tool go to one that searches."""
    for tool in tools:
        if not tool.name.isdisjoint(_SEARCHES) and any(slot.label.kind in {"query", ""} for slot in tool.slots):
            return [_Asked(tool, piece) for piece in told if _is_question(piece)][:1]
    return []


def _is_question(piece: Clause) -> bool:
    """Whether a clause asks for something that could be known: not for how you are."""
    said = [word.text.lower() for word in piece.words]
    return len(said) > 2 and said[0].partition("'")[0] in _QUESTIONS and "you" not in said


def _stands_alone(tool: Reading, piece: Clause) -> bool:
    """Whether a clause tells all a call needs, and does not only speak of the tool."""
    if tool.tool.kind == "custom":
        return piece.follows or bool(piece.facts)
    if not any(slot.required for slot in tool.slots):
        return False
    told = _fill(tool, Evidence(piece, (), None, tool.name))
    opening = piece.words[0].stem if piece.words else ""
    begins = piece.follows or opening in tool.name or CONCEPTS.get(opening) in tool.concepts
    return not told.guessed and (begins or not told.topical)


def _echo(piece: Clause) -> Clause | None:
    """Return the clause without "and" or "what about" if it only goes on with the ask before it."""
    opening = _ALSO.match(piece.text)
    if opening is None and not piece.follows:
        return None
    rest = clause(piece.text[opening.end() if opening is not None else 0 :], follows=True)
    telling = [word for word in rest.words if word.stem not in STOP]
    if not telling or len(rest.words) > _LONGEST_ECHO or stem(rest.words[0].text) in ANSWERING:
        return None
    return rest


def _items(ask: _Asked) -> Iterator[Clause]:
    """Return one clause for each item of an enumeration the tool can take only one of."""
    text = ask.clause.text
    for group in conjoined(text, list(ask.clause.facts)):
        if _takes_one(ask.tool, group[0]):
            start, end = group[0].start, group[-1].end
            for fact in group[:_MOST_CALLS]:
                yield clause(text[:start] + text[fact.start : fact.end] + text[end:])
            return
    yield ask.clause


_ONE_OF = {
    "number": frozenset({"number"}),
    "name": frozenset({"place", "name", "query", "id", ""}),
    "opening": frozenset({"place", "name", "query", "id", ""}),
    "phrase": frozenset({"place"}),
    "quoted": frozenset({"place", "name", "query", "id", "text", "code", "path", ""}),
    "code": frozenset({"code", "query", "text", "name", ""}),
    "path": frozenset({"path", "name"}),
    "host": frozenset({"url", "path", "name"}),
    "url": frozenset({"url"}),
    "email": frozenset({"email", "name"}),
    "date": frozenset({"date", "datetime"}),
    "day": frozenset({"date"}),
    "id": frozenset({"id", "name", "query", ""}),
    "uuid": frozenset({"id", "name", ""}),
}


def _takes_one(tool: Reading, fact: Fact) -> bool:
    """Whether there is exactly one parameter for such facts, and it takes one."""
    kinds = _ONE_OF.get(fact.kind, frozenset[str]())
    if any(slot.type == "array" and slot.label.kind and slot.label.kind in kinds for slot in tool.slots):
        return False
    slots = [slot for slot in tool.slots if slot.required] or list(tool.slots)
    taking = 0
    for slot in slots:
        if slot.listed or slot.type in {"object", "boolean"}:
            continue
        if slot.type == "array":
            return False
        numeric = slot.type in {"integer", "number"}
        if numeric != (fact.kind == "number"):
            continue
        taking += numeric or slot.label.kind in kinds
    return taking == 1


def _times(ask: _Asked) -> int:
    """How often a call is wanted: "roll the dice 3 times"."""
    found = _REPEATED.search(ask.clause.text)
    if found is None or any(slot.type in {"integer", "number"} for slot in ask.tool.slots):
        return 1
    said = found[1].lower()
    return max(1, min(int(said) if said.isdecimal() else NUMBERS.get(said, 1), _MOST_CALLS))
