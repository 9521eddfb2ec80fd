"""Validate arguments against a schema, and tool definitions before they are sent to a model.

Schemas are compiled once, offline, with bounded regular expressions. Nothing here raises: a schema that cannot be
compiled is one error, arguments that are not JSON are one error. For a definition all errors are returned.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dragoman.core.request import Tool
from dragoman.interpreter.schema.limits import (
    MAX_SCHEMA_BYTES,
    MAX_STEPS,
    StepCounter,
    ValidationCost,
    find_excesses,
    is_recursive,
)
from dragoman.interpreter.schema.metaschema import META
from dragoman.interpreter.schema.nodes import as_node, list_names, properties_of, read_document, read_types, shorten
from dragoman.wire.json import Malformed, decode
from dragoman.wire.pointer import join

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator


_PATTERN_SIZE = 1 << 20
_BACKTRACKS = 10_000
_MAX_MESSAGE = 500


class ArgumentError(Struct, frozen=True):
    """One error in the arguments, at `where` (JSON pointer) inside them."""

    where: str
    message: str


Unlisted = Literal["too costly", "invalid"]
"""Why the errors of a value are not listed: it is not validated, or it is invalid and the list would cost too much."""


class StepLimits(Struct, frozen=True):
    """The limits of one validation, in steps."""

    total: float
    """If it would take more steps, the value is not validated."""
    listed: float
    """If it takes more steps, errors are not listed: that visits each failed alternative, so it costs far more."""
    listed_per_pair: float = 0
    """The same, for each pair of a schema and a value; the higher of the two limits applies."""


class CompiledSchema(Struct, frozen=True):
    """A compiled schema with its validator."""

    document: Any
    validator: "Validator"
    steps: StepCounter
    """Estimates the cost of a validation."""
    is_recursive: bool
    """Whether the schema contains itself; if not, each value is visited once and the cost need not be estimated."""

    def find_errors(self, value: Any, limits: StepLimits) -> "Iterator[ValidationError] | Unlisted":
        """Return the errors of a value, or why they are not listed."""
        cost = self.steps.count(value) if self.is_recursive else ValidationCost(0, 0)
        if cost.steps > limits.total:
            return "too costly"
        if self.validator.is_valid(value):
            return iter(())
        if cost.steps > max(limits.listed, limits.listed_per_pair * cost.pairs):
            return "invalid"
        return self.validator.iter_errors(value)


_LIMITS = StepLimits(MAX_STEPS, 1000)
_UNLISTED: dict[Unlisted, str] = {
    "too costly": "nested too deeply to be checked against the schema of this tool",
    "invalid": "does not fit the schema of this tool",
}


def check_arguments(schema: bytes | None, arguments: str, limit: int = 5) -> list[ArgumentError]:
    """Return the first `limit` errors; empty means that the arguments are valid."""
    try:
        value = decode(arguments if arguments.strip() else "{}")
    except Malformed as error:
        return [ArgumentError(error.where, f"not JSON: {error.message}")]
    if schema is None:
        return [] if isinstance(value, dict) else [ArgumentError("", "the arguments must be an object")]
    compiled = _compile_cached(schema) if len(schema) <= MAX_SCHEMA_BYTES else f"larger than {MAX_SCHEMA_BYTES} bytes"
    if isinstance(compiled, str):
        return [ArgumentError("", f"the schema of this tool cannot be used: {compiled}")]
    errors = compiled.find_errors(value, _LIMITS)
    if isinstance(errors, str):
        return [ArgumentError("", _UNLISTED[errors])]
    return [
        ArgumentError(join(error.instance_path), shorten(error.message, _MAX_MESSAGE))
        for error in islice(errors, limit)
    ]


@lru_cache(maxsize=512)
def _compile_cached(schema: bytes) -> CompiledSchema | str:
    """Return the compiled validator, or the error message if the schema cannot be compiled."""
    try:
        return compile_document(read_document(schema))
    except Malformed as error:
        return error.message


def compile_document(document: Any) -> CompiledSchema | str:
    """Compile a schema; return the reason if it exceeds a limit or is invalid."""
    for excess in find_excesses(document):
        return f"{excess.message} (at {excess.where or 'its root'})"
    validator = compile_schema(document)
    if isinstance(validator, str):
        return validator
    return CompiledSchema(document, validator, StepCounter(document), is_recursive(document))


def compile_schema(document: Any) -> "Validator | str":
    """Compile a schema that is within the limits. Patterns run in linear time unless they need look-around."""
    import jsonschema_rs  # noqa: PLC0415 - slow to import, and needed only for validation

    linear = jsonschema_rs.RegexOptions(size_limit=_PATTERN_SIZE)
    fancy = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_SIZE)
    drafts: list[Callable[..., Validator]] = [jsonschema_rs.validator_for]
    if not isinstance(document, dict) or "$schema" not in document:
        # A schema without `$schema` may still be of an older draft: `items` as a list, boolean `exclusiveMinimum`.
        drafts += [jsonschema_rs.Draft7Validator, jsonschema_rs.Draft4Validator]
    reasons: list[str] = []
    for draft in drafts:
        for options in (linear, fancy):
            try:
                return draft(document, offline=True, pattern_options=options)
            except (ValueError, TypeError) as error:
                reasons.append(shorten(getattr(error, "message", str(error)), _MAX_MESSAGE))
    return reasons[1]


def find_schema_errors(document: Any, limit: int = 50) -> list[tuple[str, str]]:
    """Return the first `limit` errors of a schema that cannot be compiled, as pairs of pointer and message."""
    import jsonschema_rs  # noqa: PLC0415 - slow to import, and needed only for validation

    errors = jsonschema_rs.Draft202012Validator({"$ref": META}).iter_errors(document)
    return [(join(error.instance_path), shorten(error.message, _MAX_MESSAGE)) for error in islice(errors, limit)]


MAX_TOOL_NAME_LENGTH = 128
TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]+")


class DefinitionError(Struct, frozen=True):
    """One error in a tool definition, at `where` (JSON pointer) inside it."""

    where: str
    message: str


def check_definition(tool: Tool) -> list[DefinitionError]:
    """Return all errors in the definition of `tool`; empty means that it can be sent to a model."""
    return [*_check_name(tool.name), *_check_description(tool.description), *_check_parameters(tool)]


def _check_name(name: str) -> Iterator[DefinitionError]:
    if not name:
        yield DefinitionError("/name", "a tool needs a name")
    elif len(name) > MAX_TOOL_NAME_LENGTH:
        yield DefinitionError("/name", f"longer than {MAX_TOOL_NAME_LENGTH} characters")
    if name and not TOOL_NAME.fullmatch(name):
        yield DefinitionError("/name", "a name may contain only letters, digits and _ . : / -")


def _check_description(description: str) -> Iterator[DefinitionError]:
    if not description.strip():
        yield DefinitionError("/description", "without a description a model cannot know when to call the tool")


def _check_parameters(tool: Tool) -> Iterator[DefinitionError]:
    schema = tool.parameters
    if schema is None:
        return
    if len(schema) > MAX_SCHEMA_BYTES:
        yield DefinitionError("/parameters", f"larger than {MAX_SCHEMA_BYTES} bytes")
        return
    try:
        document = read_document(schema)
    except Malformed as error:
        yield DefinitionError(f"/parameters{error.where}", error.message)
        return
    if document is None:
        return
    yield from _check_root(document)
    unsafe = [DefinitionError(f"/parameters{excess.where}", excess.message) for excess in find_excesses(document)]
    yield from unsafe
    if unsafe or tool.openapi:
        return
    compiled = compile_schema(document)
    if isinstance(compiled, str):
        found = [DefinitionError(f"/parameters{where}", message) for where, message in find_schema_errors(document)]
        yield from found or [DefinitionError("/parameters", compiled)]


def _check_root(document: object) -> Iterator[DefinitionError]:
    node = as_node(document)
    if node is None:
        yield DefinitionError("/parameters", "parameters must be an object schema")
        return
    if node and read_types(node) != ["object"]:
        yield DefinitionError("/parameters/type", 'the root must have "type": "object"')
    declared = properties_of(node)
    if "properties" in node:
        for name in list_names(node.get("required")):
            if name not in declared:
                yield DefinitionError("/parameters/required", f'"{name}" is required but not declared')
