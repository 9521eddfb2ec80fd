"""Decide which calls a prompt requests.

A clause requests the tool whose name and description share the most words with it. "Paris and Tokyo" are two calls if
the tool takes one of them; a clause that fits no tool adds to the call before it.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from dragoman.simulator.apis.conversation import RequestTool, ToolKind
from dragoman.simulator.apis.rule import Json
from dragoman.simulator.model.filler import fill
from dragoman.simulator.model.prompt import (
    STOP_WORDS,
    Clause,
    Evidence,
    PromptMention,
    find_enumerations,
    read_clause,
    read_label,
    split_at,
    split_clauses,
    split_words,
)
from dragoman.simulator.model.schema import Schema, as_object, encode, load_schema

_AND = re.compile(r"\s*,?\s+and\s+(?:also\s+)?|\s*,\s+(?=[a-z])", re.IGNORECASE)
_NAME, _DESCRIPTION, _KIND, _ENOUGH = 3, 2, 2, 2
_MAX_CALLS = 16


class ToolCandidate(Struct, frozen=True):
    """A tool that may be called: its schema, words of its name and its description, and the kinds of its parameters."""

    tool: RequestTool
    schema: Schema
    name_words: frozenset[str]
    words: frozenset[str]
    kinds: frozenset[str]


class PlannedCall(Struct, frozen=True):
    """A call that the prompt requests; `guessed` are required parameters that it does not mention."""

    tool: RequestTool
    arguments: Json | str
    guessed: tuple[str, ...] = ()


def read_tools(tools: Iterable[RequestTool]) -> list[ToolCandidate]:
    """Analyse tools; the results are cached because the same tools come with every request."""
    return [_read_tool(tool.name, tool.description, tool.kind, encode(tool.schema)) for tool in tools]


@lru_cache(maxsize=2048)
def _read_tool(name: str, description: str, kind: ToolKind, raw: bytes) -> ToolCandidate:
    schema = load_schema(raw)
    name_words = frozenset(split_words(name))
    headline = description[:400].replace("\n", ". ").partition(". ")[0]
    properties = as_object(as_object(schema.root).get("properties"))
    kinds = frozenset(read_label(key, as_object(inner).get("format", "")).kind for key, inner in properties.items())
    tool = RequestTool(name=name, description=description, schema=as_object(schema.root), kind=kind)
    # A name of nothing but common words, such as `call`, is matched by them.
    significant = (name_words - STOP_WORDS) or name_words
    return ToolCandidate(tool, schema, significant, frozenset(split_words(headline)) - STOP_WORDS - significant, kinds)


def plan_calls(prompt: str, tools: list[ToolCandidate], results: str = "") -> list[PlannedCall]:
    """Return the calls a prompt requests, in order; values that the prompt lacks are taken from the tool results."""
    clauses = [piece for clause in split_clauses(prompt) for piece in _split_clause(clause, tools)]
    mentions = [mention for clause in (*clauses, read_clause(results)) for mention in clause.mentions]
    planned: list[PlannedCall] = []
    for tool, clause in _assign_tools(clauses, tools):
        own = {mention.value for mention in clause.mentions}
        others = [mention for mention in mentions if mention.value not in own]
        calls = [_fill_call(tool, item, others) for item in _split_enumeration(tool, clause)]
        planned += [call for call in calls if call not in planned]
    return planned[:_MAX_CALLS]


def plan_forced_call(prompt: str, tools: list[ToolCandidate]) -> PlannedCall:
    """Return a call though the prompt requests none: of the best matching tool, or of the first."""
    clause = read_clause(prompt)
    return _fill_call(_find_best_tool(clause, tools)[0], clause, ())


def _fill_call(tool: ToolCandidate, clause: Clause, others: Iterable[PromptMention]) -> PlannedCall:
    """Fill a call; a custom tool gets code or a quote, else the topic of the clause."""
    mentions = tuple(mention for mention in clause.mentions if mention.value != tool.tool.name)
    evidence = Evidence(replace(clause, mentions=mentions), others, tool.name_words)
    if tool.tool.kind == "custom":
        shown = evidence.find_all(("code", "quoted"), bool)
        return PlannedCall(
            tool.tool, str(shown[0]) if shown else evidence.find_topic() or clause.text, () if shown else ("input",)
        )
    filled = fill(tool.schema, evidence)
    return PlannedCall(tool.tool, filled.value, filled.guessed)


def _find_best_tool(clause: Clause, tools: list[ToolCandidate]) -> tuple[ToolCandidate, int]:
    """Return the tool that matches a clause best, and its score."""
    words = set(clause.words)
    kinds = {mention.kind for mention in clause.mentions} & {"url", "email", "path"}

    def score(tool: ToolCandidate) -> int:
        shared = _NAME * len(words & tool.name_words) + _DESCRIPTION * len(words & tool.words)
        return shared + _KIND * len(kinds & tool.kinds)

    best = max(tools, key=score)
    return best, score(best)


def _split_clause(clause: Clause, tools: list[ToolCandidate]) -> list[Clause]:
    """Split a sentence at each "and" that is followed by a request for another call."""
    kept: list[re.Match[str]] = []
    start = 0
    places = list(_AND.finditer(clause.text))[:_MAX_CALLS]
    ends = [*(place.start() for place in places), len(clause.text)][1:]
    for place, end in zip(places, ends, strict=True):
        own_tool, score = _find_best_tool(read_clause(clause.text[start : place.start()]), tools)
        piece = read_clause(clause.text[place.end() : end])
        next_tool, other_score = _find_best_tool(piece, tools)
        repeats = own_tool is next_tool and not next_tool.name_words.intersection(piece.words[:1])
        if min(score, other_score) >= _ENOUGH and not repeats:
            kept.append(place)
            start = place.end()
    return split_at(clause, kept)


def _assign_tools(clauses: list[Clause], tools: list[ToolCandidate]) -> list[tuple[ToolCandidate, Clause]]:
    """Return the requested tools, each with its clause.

    A clause that requests no tool extends the clause before it; so does one for the same tool unless both are complete.
    """
    requested: list[tuple[ToolCandidate, Clause]] = []
    for clause in clauses:
        tool, score = _find_best_tool(clause, tools)
        if not requested:
            requested += [(tool, clause)] if score >= _ENOUGH else []
            continue
        last, before = requested[-1]
        alone = tool is not last or not (_fill_call(tool, before, ()).guessed or _fill_call(tool, clause, ()).guessed)
        if score >= _ENOUGH and alone:
            requested.append((tool, clause))
        elif clause.mentions:
            requested[-1] = (last, read_clause(f"{before.text}. {clause.text}"))
    return requested


def _split_enumeration(tool: ToolCandidate, clause: Clause) -> list[Clause]:
    """Return a clause for each item of an enumeration if the tool takes only one item."""
    properties = {name: as_object(inner) for name, inner in as_object(tool.tool.schema.get("properties")).items()}
    taking = [properties[name] for name in tool.tool.schema.get("required", properties) if name in properties]
    types = [inner.get("type", ["string"])[0] for inner in taking if "enum" not in inner]
    arrays = any(inner.get("type") == ["array"] for inner in properties.values())
    for group in find_enumerations(clause) if not arrays else ():
        fitting = {"integer", "number"} if group[0].kind == "number" else {"string"}
        if sum(kind in fitting for kind in types) == 1:
            start, end = group[0].start, group[-1].end
            texts = [clause.text[mention.start : mention.end] for mention in group[:_MAX_CALLS]]
            return [read_clause(clause.text[:start] + text + clause.text[end:]) for text in texts]
    return [clause]
