"""Validate the arguments of a call against the schema of its tool and list all errors so that a model can correct them.

A schema is compiled once for all tools that share it; remote references are not fetched; patterns take linear time
unless they use lookaround. A validation that would take too many steps is not started (`interpreter/schema/limits.py`).
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

import msgspec

from dragoman.core.request import Tool
from dragoman.interpreter.schema.limits import MAX_SCHEMA_BYTES
from dragoman.interpreter.schema.nodes import as_node, read_document, shorten
from dragoman.interpreter.schema.validation import CompiledSchema, StepLimits, compile_document
from dragoman.tools.handler import ToolDefinitionError
from dragoman.wire.json import Malformed
from dragoman.wire.pointer import join

_LIMITS = StepLimits(200_000, 500, listed_per_pair=4)
_MAX_LISTED = 20
_MAX_ERRORS = 1000
_MAX_TEXT = 300


class InvalidArgumentsError(ValueError):
    """The arguments of a call are invalid; the message is sent to the model."""


def read_arguments(tool: Tool, text: str) -> Any:
    """Return the validated arguments of a call as a JSON value; an empty text means no arguments."""
    if tool.form == "text":
        return text
    try:
        value: Any = msgspec.json.decode(text if text.strip() else "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidArgumentsError(f"the arguments are not JSON: {shorten(str(error), _MAX_TEXT)}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"the arguments must be a JSON object, not {_show(value)}")
    if tool.parameters is not None:
        faults = _find_errors(compile_parameters(tool.parameters), value)
        if faults:
            raise InvalidArgumentsError(format_errors(faults))
    return cast("Any", value)


def format_errors(errors: Sequence[str]) -> str:
    """Return one message that lists validation errors, one a line."""
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    count += " or more" if len(errors) == _MAX_ERRORS else ""
    listed = "".join(f"\n- {error}" for error in errors[:_MAX_LISTED])
    more = f"\n- and {len(errors) - _MAX_LISTED} more" if len(errors) > _MAX_LISTED else ""
    return f"{count} in the arguments:{listed}{more}"


def format_error(where: str, message: str) -> str:
    """Return one validation error with the JSON pointer of the wrong value."""
    return f"{where or 'the arguments'}: {message}"


@lru_cache(maxsize=1024)
def compile_parameters(schema: bytes) -> CompiledSchema:
    """Compile the JSON schema of a tool's parameters; raises `ToolDefinitionError` if it is invalid."""
    if len(schema) > MAX_SCHEMA_BYTES:
        raise ToolDefinitionError(f"its schema is larger than {MAX_SCHEMA_BYTES} bytes")
    try:
        document: Any = read_document(schema)
    except Malformed as error:
        raise ToolDefinitionError(f"its schema is not JSON: {error.message}") from None
    node = as_node(document)
    if node is None:
        raise ToolDefinitionError("its schema must be a JSON object")
    kinds = node.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise ToolDefinitionError('its schema must have "type": "object" at its root')
    compiled = compile_document(document)
    if isinstance(compiled, str):
        raise ToolDefinitionError(f"its schema cannot be used: {compiled}")
    return compiled


def _find_errors(schema: CompiledSchema, value: Any) -> list[str]:
    errors = schema.find_errors(value, _LIMITS)
    match errors:
        case "too costly":
            return [format_error("", "nested too deeply, or too large, to be checked against the schema")]
        case "invalid":
            expected = _show(schema.document)
            return [format_error("", f"they do not fit the schema (expected {expected})")]
        case _:
            listed = islice(errors, _MAX_ERRORS)
            return [format_error(join(error.instance_path), _explain_error(schema, error)) for error in listed]


def _explain_error(checker: CompiledSchema, error: Any) -> str:
    """Return what is wrong with a value and what the schema expects there."""
    schema = _schema_of(checker.document, error.schema_path)
    match error.schema_path[-1] if error.schema_path else "":
        case "required":
            missing = (as_node(schema.get("properties")) or {}).get(error.kind.property)
            meant = checker.steps.resolve_schema(missing)
            expected = f"expected {_show(meant)}" if meant else ""
        case "additionalProperties" | "unevaluatedProperties" | "propertyNames":
            expected = _describe_members(schema)
        case _:
            expected = f"expected {_show(schema)}" if schema else ""
    return shorten(error.message, _MAX_TEXT) + (f" ({expected})" if expected else "")


def _schema_of(document: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """Return the subschema that contains the failed keyword."""
    node: Any = document
    for step in path[:-1]:
        try:
            node = node[step]
        except (LookupError, TypeError):
            return {}
    return as_node(node) or {}


def _describe_members(schema: dict[str, Any]) -> str:
    """Return the list of members that an object may have, with the required ones marked."""
    known = as_node(schema.get("properties")) or {}
    required = schema.get("required") or ()
    members = [f"{name} (required)" if name in required else name for name in known]
    return f"expected members: {', '.join(members)}" if members else "expected no members"


def _show(value: Any) -> str:
    return shorten(msgspec.json.encode(value).decode(), _MAX_TEXT)
