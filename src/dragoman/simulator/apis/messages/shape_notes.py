"""The rules that a body's shape holds, as they are listed, and what breaks them."""

from typing import Any

from dragoman.simulator.rule import Rule

_TYPES = "wire/anthropic_messages.md sections 2 to 6 (the vendor's typed parameters)"


def _note(fault: str, says: str, source: str) -> Rule[Any]:
    return Rule(f"messages.{fault}", says, source)


NOTES = (
    _note("unknown-field", "There are no members that nobody knows.", "wire/anthropic_messages.md section 0"),
    _note("type", "Members are of their type.", "recorded: anthropic/rig-0108"),
    _note("enum", "Words are from their list.", _TYPES),
    _note("required", "What is required is there.", "recorded: anthropic/braintrust-sdk-ruby-0001"),
    _note("bounds", "Numbers are within their bounds.", _TYPES),
    _note("json", "A body is JSON.", "no source: not documented"),
    _note("authentication", "A request has a key or a token.", "wire/anthropic_messages.md section 1"),
    _note("version-header", "A direct request names a version there is.", "platform.claude.com api/versioning"),
)
