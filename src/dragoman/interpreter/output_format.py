"""Adapt the format that the answer must have to the target."""

from typing import Any, cast

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.request import OutputFormat, Request
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.schema.conversion import Converted
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import is_openai_strict, to_anthropic_output
from dragoman.wire import json

_COMBINATORS = frozenset({"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"})


def adapt_output(request: Request, adaptation: Adaptation) -> OutputFormat | None:
    """Say what shape the answer must have."""
    output, traits, ledger = request.output, adaptation.traits, adaptation.ledger
    if output is None or output.kind == "text":
        return None
    if request.tools and not traits.output_with_tools:
        ledger.field_approximated("output", "the model takes tools or an output format, not both: asked for in words")
        adaptation.instructions.append(_answer_in_words(output, request))
        return None
    if output.kind == "json":
        if traits.output_json:
            if traits.output_names and not _says_json(request):
                ledger.field_approximated("output", "asked for in words too: the target wants the word there")
                adaptation.instructions.append(_answer_in_words(output, request))
            return OutputFormat(kind="json")
        ledger.field_approximated("output", "asked for in words")
        adaptation.instructions.append(_answer_in_words(output, request))
        return None
    if not traits.output_schema or (traits.output_names and not _is_object(output)):
        why = "the target takes only objects at the root" if traits.output_schema else "the model takes no schema"
        ledger.field_approximated("output", f"{why}: asked for in words")
        adaptation.instructions.append(_answer_in_words(output, request))
        return None
    return _adapt_schema(output, adaptation)


def _says_json(request: Request) -> bool:
    """Tell whether somebody says "JSON": OpenAI takes the format without a schema only then."""
    texts = (part.text for message in request.messages for part in message.parts if isinstance(part, Text))
    return any("json" in text.lower() for text in texts)


def _is_object(output: OutputFormat) -> bool:
    """Tell whether a schema says that its value is an object, without combinators: OpenAI takes nothing else."""
    schema = json.peek(output.schema) if output.schema is not None else None
    root = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    said = root.get("type")
    return isinstance(said, str) and said.lower() == "object" and _COMBINATORS.isdisjoint(root)


def _answer_in_words(output: OutputFormat, request: Request) -> str:
    start = "When you call no tool, answer" if request.tools else "Answer"
    schema = output.schema
    if schema is None:
        return f"{start} with one JSON object and nothing else."
    if output.openapi:
        schema = to_json_schema(schema).schema or schema
    said = ": ".join(text for text in (output.name, output.description) if text)
    wanted = f"one JSON value ({said})" if said else "one JSON value"
    return f"{start} with {wanted} that matches this JSON Schema and nothing else:\n{schema.decode()}"


def _adapt_schema(output: OutputFormat, adaptation: Adaptation) -> OutputFormat:
    traits = adaptation.traits
    schema = output.schema or b"{}"
    if not json.is_object(schema):
        adaptation.ledger.field_approximated("output.schema", "any value: it is not a schema with members")
        schema = b"{}"
    if output.openapi:
        schema = _converted(to_json_schema(schema), schema, adaptation)
    if traits.output_strict_only:
        schema = _converted(to_anthropic_output(schema), schema, adaptation)
    elif traits.result_names:
        schema = _converted(adapt_gemini(schema), schema, adaptation)
    if traits.output_names:
        schema = _converted(adapt_root(schema), schema, adaptation)
        strict = output.strict
        if strict and traits.strict_needs_all and not is_openai_strict(schema):
            adaptation.ledger.field_dropped("output.strict", "the target refuses this schema as a strict one")
            strict = None
        return structs.replace(output, schema=schema, openapi=False, name=output.name or "answer", strict=strict)
    if output.strict is False:
        adaptation.ledger.field_approximated("output.strict", "the target holds every answer to its schema")
    return OutputFormat(kind="json_schema", schema=_with_title(schema, output, adaptation))


def _converted(converted: Converted, schema: bytes, adaptation: Adaptation) -> bytes:
    adaptation.book_notes(converted.notes, "output.schema")
    return converted.schema or schema


def _with_title(schema: bytes, output: OutputFormat, adaptation: Adaptation) -> bytes:
    """Keep a format's name and description in the schema, where the target has no other place."""
    members = json.decode_object(schema) if json.is_object(schema) else {}
    added: dict[str, bytes] = {}
    for field, word, value in (("name", "title", output.name), ("description", "description", output.description)):
        if value and word in members and json.peek(members[word]) != value:
            adaptation.ledger.field_dropped(f"output.{field}", f"the schema has a {word} of its own")
        elif value and word not in members:
            added[word] = json.encode(value)
    return json.with_members(schema, added)
