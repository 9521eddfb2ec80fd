"""A Python type as a JSON schema with a decoder: the type of a structured answer.

The root of a schema is an object, because vendors require that. A type with another form is wrapped in an object with
the member `value`.
"""

import re
from typing import Annotated, Any, Generic, TypeVar, cast, get_origin

import msgspec

from dragoman.core.request import Tool
from dragoman.tools.annotations import AnnotationReader
from dragoman.tools.arguments import InvalidArgumentsError, format_errors, read_arguments
from dragoman.tools.custom_types import REF_TEMPLATE, decode, hoist_definitions, schema_of
from dragoman.tools.handler import ToolDefinitionError

T = TypeVar("T")
_SUBJECT = "the answer"
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_FENCE = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)


class ValueType(Generic[T]):
    """A type that values are decoded as."""

    def __init__(self, kind: Any) -> None:
        self.name = _NOT_A_NAME.sub("_", getattr(kind, "__name__", "") or "answer")[:64]
        reader = AnnotationReader()
        try:
            self._kind: Any = reader.to_msgspec_type(kind)
            (root,), components = msgspec.json.schema_components(
                [self._kind], schema_hook=schema_of, ref_template=REF_TEMPLATE
            )
        except (TypeError, ValueError, NameError, RecursionError) as error:
            reason = str(error).splitlines()[-1].strip()
            raise ToolDefinitionError(f"output_type {kind!r} is not supported: {reason}") from None
        reader.add_descriptions(components)
        self.is_wrapped = not _is_object(root, components)
        if self.is_wrapped:
            wrapper = {"type": "object", "properties": {"value": root}, "required": ["value"]}
            root = wrapper | {"additionalProperties": False}
        document = hoist_definitions(_inline_root(root, components))
        self.schema = msgspec.json.encode(document)
        self._tool = Tool(name=self.name, parameters=self.schema)

    def decode(self, text: str) -> T:
        """Return the value of a JSON text; raises `InvalidArgumentsError` with everything that is wrong."""
        fenced = _FENCE.fullmatch(text)
        try:
            value = read_arguments(self._tool, fenced[1] if fenced else text or "null")
        except InvalidArgumentsError as error:
            raise InvalidArgumentsError(str(error).replace("the arguments", _SUBJECT)) from None
        try:
            inner = cast("dict[str, Any]", value)["value"] if self.is_wrapped else value
            return cast("T", msgspec.convert(inner, self._kind, str_keys=True, dec_hook=decode))
        except msgspec.ValidationError as error:
            raise InvalidArgumentsError(format_errors([str(error)]).replace("the arguments", _SUBJECT)) from None


def _inline_root(root: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is not a reference, unless its definition refers to itself."""
    name = str(root.get("$ref", "")).removeprefix("#/$defs/")
    if name in components and f'"#/$defs/{name}"' not in msgspec.json.encode(components).decode():
        root = components.pop(name)
    elif "$ref" in root:
        root = {"type": "object", **components[name]} if name in components else root
    return root | ({"$defs": components | root.get("$defs", {})} if components else {})


def _is_object(root: dict[str, Any], components: dict[str, Any]) -> bool:
    """Return whether a schema describes an object, if necessary through one reference."""
    name = str(root.get("$ref", "")).removeprefix("#/$defs/")
    found = components.get(name) or root.get("$defs", {}).get(name) or root
    return found.get("type") == "object"


def is_text(kind: Any) -> bool:
    """Return whether an answer of this type needs no schema."""
    return kind is str or (get_origin(kind) is Annotated and kind.__origin__ is str)
