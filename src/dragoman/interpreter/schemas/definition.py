"""Check the definition of a tool before it is offered to a model: all that is wrong, not only the first thing."""

import re
from collections.abc import Iterator

from msgspec import Struct

from dragoman.core.request import Tool
from dragoman.interpreter.schemas.bounds import LARGEST, excesses
from dragoman.interpreter.schemas.nodes import as_node, names_in, properties_of, read_document, said_types
from dragoman.interpreter.schemas.validation import compile_schema, schema_errors
from dragoman.wire.json import Malformed

LONGEST_NAME = 128

_NAME = re.compile(r"[A-Za-z0-9_.:/-]+")


class DefinitionError(Struct, frozen=True):
    """One thing wrong with a tool, at `where` (JSON pointer) in its definition."""

    where: str
    message: str


def check_definition(tool: Tool) -> list[DefinitionError]:
    """Return everything that is wrong with `tool`; empty means that it can be offered."""
    return [*_name_errors(tool.name), *_description_errors(tool.description), *_parameter_errors(tool)]


def _name_errors(name: str) -> Iterator[DefinitionError]:
    if not name:
        yield DefinitionError("/name", "a tool needs a name")
    elif len(name) > LONGEST_NAME:
        yield DefinitionError("/name", f"longer than {LONGEST_NAME} characters")
    if name and not _NAME.fullmatch(name):
        yield DefinitionError("/name", "a name is made of letters, digits and _ . : / -")


def _description_errors(description: str) -> Iterator[DefinitionError]:
    if not description.strip():
        yield DefinitionError("/description", "without a description a model cannot know when to call the tool")


def _parameter_errors(tool: Tool) -> Iterator[DefinitionError]:
    schema = tool.parameters
    if schema is None:
        return
    if len(schema) > LARGEST:
        yield DefinitionError("/parameters", f"larger than {LARGEST} bytes")
        return
    try:
        document = read_document(schema)
    except Malformed as error:
        yield DefinitionError(f"/parameters{error.where}", error.message)
        return
    if document is None:
        return
    yield from _root_errors(document)
    unsafe = [DefinitionError(f"/parameters{excess.where}", excess.message) for excess in excesses(document)]
    yield from unsafe
    if unsafe or tool.openapi:
        return
    compiled = compile_schema(document)
    if isinstance(compiled, str):
        found = [DefinitionError(f"/parameters{where}", message) for where, message in schema_errors(document)]
        yield from found or [DefinitionError("/parameters", compiled)]


def _root_errors(document: object) -> Iterator[DefinitionError]:
    node = as_node(document)
    if node is None:
        yield DefinitionError("/parameters", "parameters must be a schema of an object")
        return
    if node and said_types(node) != ["object"]:
        yield DefinitionError("/parameters/type", 'the root must say "type": "object"')
    declared = properties_of(node)
    if "properties" in node:
        for name in names_in(node.get("required")):
            if name not in declared:
                yield DefinitionError("/parameters/required", f'"{name}" is required but not declared')
