"""The mutators that break each rule, by the rule's name, and the models and surfaces that limited rules apply to."""

from dragoman.simulator.apis.rule import CheckContext
from simulator.apis.gemini import changes
from simulator.apis.gemini.mutators import contents, generation, schema, schema_limits, shape, signatures, tools, turns
from simulator.mutation import Mutate

MUTATORS: dict[str, Mutate] = {
    **contents.MUTATORS,
    **generation.MUTATORS,
    **schema.MUTATORS,
    **schema_limits.MUTATORS,
    **shape.MUTATORS,
    **signatures.MUTATORS,
    **tools.MUTATORS,
    **turns.MUTATORS,
}
UNBROKEN = frozenset({"gemini.json", "gemini.model", "gemini.envelope"})
"""Rules that no change of a JSON body breaks: those about invalid JSON, the model in the path, and the envelope."""

_NEW = CheckContext(model=changes.MODEL, recorded=True)
_OLD = CheckContext(model="gemini-2.5-pro", recorded=True)
_VERTEX = CheckContext(model="gemini-2.5-flash", recorded=True, vertex=True)
CIRCUMSTANCES: dict[str, CheckContext] = {
    "gemini.role": CheckContext(model="gemini-2.5-flash", recorded=True),
    "gemini.empty-text": _VERTEX,
    "gemini.file-uploaded": _VERTEX,
    "gemini.file-data": CheckContext(model="gemini-2.5-flash", recorded=True),
    "gemini.function-count": _VERTEX,
    "gemini.tools-mixed": _OLD,
    "gemini.tools-flagged": _NEW,
    "gemini.streamed-arguments": _VERTEX,
    "gemini.schema-format": _OLD,
    "gemini.schema-any-of": _VERTEX,
    "gemini.schema-defs": _VERTEX,
    "gemini.schema-properties": CheckContext(model="gemini-1.5-flash", recorded=True),
    "gemini.first-turn": _NEW,
    "gemini.last-turn": _NEW,
    "gemini.result-last": _NEW,
    "gemini.results-together": _NEW,
    "gemini.result-match": _NEW,
    "gemini.penalties": _NEW,
    "gemini.candidates": _NEW,
    "gemini.response-with-tools": _OLD,
    "gemini.thinking-once": _NEW,
    "gemini.thinking-level": _NEW,
    "gemini.thinking-budget": _OLD,
    "gemini.thoughts": CheckContext(model="gemini-2.5-flash", recorded=True),
    "gemini.signature-missing": _NEW,
    "gemini.signature-altered": _NEW,
    "gemini.signature-foreign": CheckContext(model=changes.MODEL),
    "gemini.continuation-token": CheckContext(model="gemini-4-argon"),
    "gemini.signature-moved": _NEW,
    "gemini.signature-model": _NEW,
    "gemini.signature-twice": _NEW,
}
"""The models and surfaces of rules that do not apply to all: their mutators break them there."""
