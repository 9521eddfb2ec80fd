"""All rules, in the order in which a request is held to them, and how the shape of a request is broken."""

from dragoman.simulator.api import RuleNote
from dragoman.simulator.apis.gemini import (
    rules_contents,
    rules_generation,
    rules_schema,
    rules_schema_limits,
    rules_signatures,
    rules_tools,
    rules_turns,
)
from dragoman.simulator.apis.gemini.heard import HeardRule

RULES: tuple[HeardRule, ...] = (
    *rules_contents.RULES,
    *rules_tools.RULES,
    *rules_schema.RULES,
    *rules_schema_limits.RULES,
    *rules_generation.RULES,
    *rules_turns.RULES,
    *rules_signatures.RULES,
)
_PROTO = "wire/gemini.md sections 1 and 2"


_SHAPE = (
    RuleNote("gemini.json", "A request is JSON.", f"{_PROTO}; the words are ours"),
    RuleNote(
        "gemini.unknown-field",
        "A request has only names the protos know, in camel case or snake case; some are for one surface alone.",
        f"{_PROTO} and 13, wire/gemini_schema.md section 2; wire/samples/gemini/bad_schema.error.json",
    ),
    RuleNote("gemini.type", "Values have the types of the protos.", "wire/gemini_schema.md section 2"),
    RuleNote("gemini.enum", "Words of enums are those of the protos, in any case.", _PROTO),
    RuleNote("gemini.bounds", "A number fits its type.", "protobuf's JSON mapping"),
    RuleNote(
        "gemini.oneof",
        "A part holds one thing.",
        "wire/gemini.md section 2; Google's words from public threads",
    ),
    RuleNote(
        "gemini.model",
        "There is such a model.",
        "recorded: gemini/newrelic-python-agent-0004, gemini/newrelic-python-agent-0006",
    ),
    RuleNote("gemini.envelope", "Code Assist's envelope holds a request.", "wire/gemini.md section 11"),
)
NOTES = (*_SHAPE, *(RuleNote(rule.name, rule.says, rule.source) for rule in RULES))
