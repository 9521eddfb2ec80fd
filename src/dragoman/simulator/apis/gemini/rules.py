"""All rules, in the order in which a request is held to them, and how the shape of a request is broken."""

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
from dragoman.simulator.rule import Rule

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


_SHAPE: tuple[HeardRule, ...] = (
    Rule("gemini.json", "A request is JSON.", f"{_PROTO}; the words are ours"),
    Rule(
        "gemini.unknown-field",
        "A request has only names the protos know, in camel case or snake case; some are for one surface alone.",
        f"{_PROTO} and 13, wire/gemini_schema.md section 2; wire/samples/gemini/bad_schema.error.json",
    ),
    Rule("gemini.type", "Values have the types of the protos.", "wire/gemini_schema.md section 2"),
    Rule("gemini.enum", "Words of enums are those of the protos, in any case.", _PROTO),
    Rule("gemini.bounds", "A number fits its type.", "protobuf's JSON mapping"),
    Rule(
        "gemini.oneof",
        "A part holds one thing.",
        "wire/gemini.md section 2; Google's words from public threads",
    ),
    Rule(
        "gemini.model",
        "There is such a model.",
        "recorded: gemini/newrelic-python-agent-0004, gemini/newrelic-python-agent-0006",
    ),
    Rule("gemini.envelope", "Code Assist's envelope holds a request.", "wire/gemini.md section 11"),
)
NOTES: tuple[HeardRule, ...] = (*_SHAPE, *RULES)
