"""The rules about shape, which the types of the body keep: what each says, and changes that break it."""

from typing import Any

from dragoman.simulator.rule import Rule

_SOURCE = "wire/openai_responses.md sections 1 to 4; public measurement of 2026-08-30 (gpt-5.6-terra)"


NOTES: tuple[Rule[Any], ...] = (
    Rule("responses.json", "The body is a JSON object.", "public reports of the vendor's words"),
    Rule("responses.unknown-field", "The body has only members the API knows, at every depth.", _SOURCE),
    Rule("responses.type", "Members have their types.", _SOURCE),
    Rule("responses.enum", "Words are among those the API knows.", _SOURCE),
    Rule("responses.required", "Tools, items and parts have the members they need.", _SOURCE),
    Rule("responses.bounds", "Numbers, texts and lists are within their limits.", _SOURCE),
)
