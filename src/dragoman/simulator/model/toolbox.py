"""Tools as the model sees them, and which of them a clause asks for.

A tool is known by the stems of its name, its description and its parameters, in this order of weight; words that nearly
every tool has count little. What is read of a tool is remembered by its text: the same tools come with every request.
"""

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from dragoman.simulator.model.filling.evidence import Label, label
from dragoman.simulator.model.language.clauses import Clause
from dragoman.simulator.model.language.lexicon import CONCEPTS, STOP, operations, weight_of
from dragoman.simulator.model.language.words import stem, stems
from dragoman.simulator.model.schemas.json_values import an_object, texts
from dragoman.simulator.model.schemas.node import types_of
from dragoman.simulator.model.schemas.references import Document, encoded
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Tool, ToolKind

_NAME, _HEADLINE, _PARAMETER, _REST = 3.0, 1.5, 1.0, 0.4
_THROUGH_CONCEPT = 0.6
_BY_KIND = 0.3
_BY_NAME = 10.0
ENOUGH = 1.5
"""From this score on a clause asks for a tool: one telling word of its name or of its first sentence."""
_TELLING = frozenset({"url", "path", "email"})
"""Kinds of values that say what is meant by a verb that nearly every tool has: "fetch https://…"."""
_LONGEST_DESCRIPTION = 2000
_TIMES = frozenset({stem("times")})
"""Between numbers this is no word of clocks."""
_MOST_PARAMETERS = 60


class Slot(Struct, frozen=True):
    """A parameter at the root of a tool: what it is called, of what type it is, whether it must be told."""

    label: Label
    type: str
    required: bool
    listed: bool = False
    """It has a list of words it may be."""


class Reading(Struct, frozen=True):
    """What is read of a tool."""

    tool: Tool
    document: Document
    name: frozenset[str]
    weights: dict[str, float]
    concepts: dict[str, float]
    kinds: frozenset[str]
    slots: tuple[Slot, ...]


def read_tools(tools: Iterable[Tool]) -> list[Reading]:
    """Read tools."""
    return [_read(tool.name, tool.description, tool.kind, encoded(tool.schema)) for tool in tools]


@lru_cache(maxsize=2048)
def _read(name: str, description: str, kind: ToolKind, schema: bytes) -> Reading:
    document = Document.of(schema)
    tool = Tool(name=name, description=description, schema=an_object(document.schema), kind=kind)
    own = [part for part in stems(name) if part not in STOP]
    told = any(weight_of(part) == 1.0 for part in own)
    weights: dict[str, float] = {}
    for part in own:
        # A name of nothing but common words ("search", "run") must do with them.
        weights[part] = _NAME * (weight_of(part) if told else 1.0)
    short = description[:_LONGEST_DESCRIPTION]
    headline, _, rest = short.replace("\n", ". ").partition(". ")
    slots = tuple(_slots(tool.schema))
    _weigh(weights, stems(headline), _HEADLINE)
    _weigh(weights, (part for slot in slots for part in slot.label.stems), _PARAMETER)
    _weigh(weights, stems(rest), _REST)
    concepts: dict[str, float] = {}
    for part, weight in weights.items():
        concept = CONCEPTS.get(part)
        if concept is not None and weight >= _HEADLINE:
            concepts[concept] = max(concepts.get(concept, 0.0), weight * _THROUGH_CONCEPT)
    kinds = frozenset("number" if slot.type in {"integer", "number"} else slot.label.kind for slot in slots)
    return Reading(tool, document, frozenset(own), weights, concepts, kinds, slots)


def _weigh(weights: dict[str, float], parts: Iterable[str], weight: float) -> None:
    for part in parts:
        telling = weight * weight_of(part)
        if telling > weights.get(part, 0.0):
            weights[part] = telling


def _slots(schema: Json) -> Iterable[Slot]:
    required = texts(schema.get("required"))
    for name, inner in list(an_object(schema.get("properties")).items())[:_MOST_PARAMETERS]:
        types = [kind for kind in types_of(inner) or ["string"] if kind != "null"]
        told = an_object(inner)
        form = told.get("format") or an_object(told.get("items")).get("format")
        yield Slot(
            label(name, form if isinstance(form, str) else ""),
            types[0] if types else "string",
            name in required,
            "enum" in told,
        )


class Choosing:
    """Compares tools for clauses of one request."""

    def __init__(self, tools: list[Reading]) -> None:
        self._tools = tools

    def best(self, clause: Clause) -> tuple[Reading | None, float]:
        """Return the tool a clause asks for most, and how much it does."""
        asked = clause.stems
        sums = operations(clause.text)
        if sums:
            asked = (asked - _TIMES) | sums
        wanted = _Wanted(
            text=clause.text,
            stems=asked,
            concepts=frozenset(CONCEPTS[part] for part in asked if part in CONCEPTS),
            kinds=frozenset(fact.kind for fact in clause.facts),
            verb=next((word.stem for word in clause.words if word.stem not in STOP), ""),
            shared={part: sum(1 for tool in self._tools if part in tool.weights) for part in asked},
        )
        best, best_rank, best_score = None, 0.0, 0.0
        for tool in self._tools:
            score, rank = _score(tool, wanted)
            if rank > best_rank:
                best, best_rank, best_score = tool, rank, score
        return best, best_score


class _Wanted(Struct, frozen=True, kw_only=True):
    """What a clause says that could be about a tool.

    `shared` is how many of the tools have a stem, `verb` the first that tells something.
    """

    text: str
    stems: frozenset[str]
    concepts: frozenset[str]
    kinds: frozenset[str]
    shared: dict[str, int]
    verb: str


def _score(tool: Reading, wanted: _Wanted) -> tuple[float, float]:
    """Return how much a tool is asked for, and the same with what it has in common with others counted less."""
    score = rank = 0.0
    direct: dict[str, float] = {}
    for part in wanted.stems & tool.weights.keys():
        weight = tool.weights[part]
        score += weight
        rank += weight / wanted.shared[part] ** 0.5
        if weight >= _PARAMETER and part in CONCEPTS:
            direct[CONCEPTS[part]] = max(direct.get(CONCEPTS[part], 0.0), weight)
    # A word that only a parameter has must not hide that the tool's name means the same.
    through = sum(
        max(0.0, tool.concepts[concept] - direct.get(concept, 0.0))
        for concept in wanted.concepts & tool.concepts.keys()
    )
    bonus = through + _BY_KIND * min(3, len(wanted.kinds & tool.kinds))
    name = tool.tool.name
    if len(name) > 3 and ("_" in name or "-" in name or len(tool.name) > 1) and name in wanted.text:
        bonus += _BY_NAME
    if wanted.verb in tool.name and not wanted.kinds.isdisjoint(tool.kinds & _TELLING):
        bonus += ENOUGH
    covered = len(wanted.stems & tool.name) / len(tool.name) if tool.name else 0.0
    needs = 0.01 * sum(1 for slot in tool.slots if slot.required)
    return score + bonus, rank + bonus + covered - needs
