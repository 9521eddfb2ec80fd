"""Make a tool from a typed Python function: derive the schema from its signature and docstring, convert arguments.

All types that msgspec can describe as JSON Schema and decode are supported. An argument that the model omits is not
passed to the function, so Python's own default applies. An unsupported parameter raises an error with its name when the
tool is made.
"""

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, Union, Unpack, cast, get_type_hints, overload

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.request import Tool
from dragoman.tools.annotations import AnnotationReader, UnsupportedTypeError, allows_none, parse_docstring
from dragoman.tools.arguments import InvalidArgumentsError, format_error, format_errors
from dragoman.tools.context import build_context, check_context_type, context_type_of
from dragoman.tools.custom_types import REF_TEMPLATE, decode, hoist_definitions, is_pydantic_field, schema_of
from dragoman.tools.generators import run_async_generator, run_generator
from dragoman.tools.handler import Flags, Handler, ToolDefinitionError, is_async
from dragoman.tools.results import dump_model

P = ParamSpec("P")
R = TypeVar("R")
_UNSUPPORTED_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: "is variadic (*args), which is not supported: use a list instead",
    inspect.Parameter.VAR_KEYWORD: "is variadic (**kwargs), which is not supported: use a dict instead",
}
_ERROR_LOCATION = re.compile(r"(.*) - at (?:`key` in )?`\$(.*)`", re.DOTALL)
_PATH_STEP = re.compile(r"\.([^.\[]+)|\[([^\]]+)\]")


class FunctionTool(Handler, Generic[P, R], frozen=True, kw_only=True):
    """A tool made from a function; calling it calls the function."""

    function: Callable[P, R]
    contexts: Mapping[str, Any] = {}
    """The types of the dependencies that its `RunContext` parameters need, by parameter."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly, without validation of the arguments."""
        return self.function(*args, **kwargs)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str = "", description: str = "", **flags: Unpack[Flags]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str = "", description: str = "", **flags: Unpack[Flags]
) -> Any:
    """Make a tool from a typed function: `@tool`, or `@tool(timeout=5, sequential=True)`."""
    if function is None:
        return lambda function: _make_tool(function, name, description, flags)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownVariableType]
    return _make_tool(function, name, description, flags)


def _make_tool(function: Callable[..., Any], name: str, description: str, flags: Flags) -> FunctionTool[..., Any]:
    if not callable(function):
        instead = ": use tool(Class.method)" if isinstance(function, classmethod) else ""
        raise ToolDefinitionError(f"a tool is made from a function, not from {function!r}{instead}")
    called = name or getattr(function, "__name__", "")
    if not called.isascii() or not called or called == "<lambda>":
        raise ToolDefinitionError(f"{called or function!r} is not a valid tool name: set one with @tool(name=...)")
    if _is_method(function):
        reason = "it is a method without an object: use the method of an object, tool(thing.method)"
        raise ToolDefinitionError(f"tool {called!r}: {reason}")
    try:
        signature = _Signature(function)
    except ToolDefinitionError as error:
        raise ToolDefinitionError(f"tool {called!r}: {error}") from None
    description = description or signature.description
    definition = Tool(name=called, description=description, parameters=msgspec.json.encode(signature.schema))
    return FunctionTool(
        definition=definition,
        run=signature.run,
        convert=signature.convert,
        function=function,
        contexts=signature.contexts,
        **flags,
    )


def _is_method(function: Callable[..., Any]) -> bool:
    """Return whether a function is an unbound method: its first parameter is an unannotated `self` or `cls`."""
    if not inspect.isfunction(function):
        return False
    names = list(inspect.signature(function).parameters)
    return names[:1] in (["self"], ["cls"]) and names[0] not in function.__annotations__


class _Signature:
    """The parameters of a function, as a schema and as a converter of arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        text = parse_docstring(inspect.getdoc(getattr(function, "func", function)))
        self.description = text.description
        self._function = function
        parameters, hints = _read_parameters(function), _read_hints(function)
        self._signature = inspect.Signature(list(parameters.values()))
        self._parameters, hints, self._field_defaults = _read_field_defaults(parameters, hints)
        self._annotations = AnnotationReader()
        self.contexts = {name: kind for name in hints if (kind := context_type_of(hints[name])) is not ...}
        for kind in self.contexts.values():
            check_context_type(kind)
        self._fields = {name: each for name, each in self._parameters.items() if name not in self.contexts}
        fields: list[tuple[str, Any, Any]] = []
        for name, parameter in self._fields.items():
            if name not in hints:
                raise ToolDefinitionError(f"parameter {name!r} has no type: annotate it (Any takes everything)")
            fields.append(self._build_field(parameter, hints[name], text.parameters.get(name, "")))
        self._struct = self._build_struct(fields)
        self.schema = self._build_schema()
        self.run = self._choose_runner(function)

    def _choose_runner(self, function: Callable[..., Any]) -> Callable[[inspect.BoundArguments], Any]:
        target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004  an object with `__call__`
        if inspect.isasyncgenfunction(target):
            return self._run_async_generator
        if inspect.isgeneratorfunction(target):
            return self._run_generator
        return self._run_async if is_async(function) else self._run

    def _build_field(self, parameter: inspect.Parameter, annotation: Any, description: str) -> tuple[str, Any, Any]:
        try:
            kind: Any = self._annotations.to_msgspec_type(annotation)
        except UnsupportedTypeError as error:
            raise ToolDefinitionError(f"the type of parameter {parameter.name!r} is not supported: {error}") from None
        except (TypeError, ValueError) as error:
            raise ToolDefinitionError(
                f"the bounds of parameter {parameter.name!r} are not supported: {error}"
            ) from None
        if parameter.default is None and not allows_none(kind):
            kind = Union[kind, None]  # noqa: UP007  `|` does not accept every kind of annotation
        description = self._annotations.find_description(annotation) or description
        if parameter.default is not inspect.Parameter.empty:
            kind = Union[kind, UnsetType]  # noqa: UP007  see above
        return (
            parameter.name,
            Annotated[kind, Meta(description=description)] if description else kind,
            parameter.default,
        )

    def _build_struct(self, fields: list[tuple[str, Any, Any]]) -> type[Struct]:
        """Return a struct type with a field for each parameter; an unsupported type raises with the parameter name."""
        for field in fields:
            try:
                msgspec.json.schema_components([_define_struct([field])], schema_hook=schema_of)
            except (TypeError, ValueError, NameError, RecursionError) as error:
                reason = str(error).splitlines()[-1].strip()
                raise ToolDefinitionError(f"the type of parameter {field[0]!r} is not supported: {reason}") from None
        return _define_struct(fields)

    def _build_schema(self) -> dict[str, Any]:
        (root,), components = msgspec.json.schema_components(
            [self._struct], schema_hook=schema_of, ref_template=REF_TEMPLATE
        )
        schema = components.pop(root["$ref"].removeprefix("#/$defs/"))
        del schema["title"]
        for name, parameter in self._fields.items():
            default = _encode_default(parameter.default, self._struct, name)
            if default is not UNSET:
                schema["properties"][name]["default"] = default
        self._annotations.add_descriptions(components)
        return hoist_definitions(schema | ({"$defs": components} if components else {}))

    def convert(self, arguments: Any) -> inspect.BoundArguments:
        """Convert valid JSON arguments to typed values and bind them to the parameters."""
        try:
            values = self._to_struct(arguments)
        except msgspec.ValidationError as error:
            raise InvalidArgumentsError(format_errors([_format_validation_error(str(error))])) from None
        given = {name: value for name in self._fields if (value := getattr(values, name)) is not UNSET}
        for name, get_default in self._field_defaults.items():
            if name not in given:
                given[name] = get_default()
        return inspect.BoundArguments(self._signature, OrderedDict(given))

    def _to_struct(self, arguments: Any) -> Struct:
        try:
            # JSON keys are always strings: `str_keys` parses the keys of, for example, dict[int, str].
            return msgspec.convert(arguments, self._struct, str_keys=True, dec_hook=decode)
        except msgspec.ValidationError:
            # 3.0 is an integer in JSON Schema, and vendors that store numbers as doubles send it for 3.
            return msgspec.convert(_with_integers(arguments), self._struct, str_keys=True, dec_hook=decode)

    def _call(self, bound: inspect.BoundArguments) -> Any:
        """Call the function, with the context of the current call for the parameters that take one."""
        for name, kind in self.contexts.items():
            bound.arguments[name] = build_context(kind)
        return self._function(*bound.args, **bound.kwargs)

    def _run(self, bound: inspect.BoundArguments) -> Any:
        return self._call(bound)

    async def _run_async(self, bound: inspect.BoundArguments) -> Any:
        return await self._call(bound)

    def _run_generator(self, bound: inspect.BoundArguments) -> Any:
        return run_generator(self._call(bound))

    async def _run_async_generator(self, bound: inspect.BoundArguments) -> Any:
        return await run_async_generator(self._call(bound))


def _read_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        raise ToolDefinitionError("it has no signature that Python can read: wrap it in a function") from None
    for name, parameter in parameters.items():
        if parameter.kind in _UNSUPPORTED_KINDS:
            raise ToolDefinitionError(f"parameter {name!r} {_UNSUPPORTED_KINDS[parameter.kind]}")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.default is not inspect.Parameter.empty:
            raise ToolDefinitionError(
                f"parameter {name!r} is positional-only and has a default: remove the / from the signature"
            )
    return dict(parameters)


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations of the parameters.

    The return annotation is skipped: it may name a type that is imported only for type checkers.
    """
    target: Any = inspect.unwrap(getattr(function, "func", function))
    if not inspect.isroutine(target):
        target = target.__init__ if isinstance(target, type) else target.__call__
    names, hints = getattr(target, "__globals__", {}), dict[str, Any]()
    for name, kind in getattr(target, "__annotations__", {}).items():
        if name != "return":
            annotated = SimpleNamespace(__annotations__={name: kind})
            try:
                hints |= get_type_hints(annotated, names, include_extras=True)
            except (NameError, TypeError, AttributeError, SyntaxError) as error:
                raise ToolDefinitionError(f"the annotation of parameter {name!r} cannot be resolved: {error}") from None
    return hints


def _read_field_defaults(
    parameters: dict[str, inspect.Parameter], hints: dict[str, Any]
) -> tuple[dict[str, inspect.Parameter], dict[str, Any], dict[str, Callable[[], Any]]]:
    """Return parameters and annotations without pydantic's `Field` as a default, and how to get those defaults.

    `n: int = Field(ge=1)` is `n: Annotated[int, Field(ge=1)]`, which is required; `Field(default=3)` is a default of 3.
    """
    plain, annotated, defaults = dict(parameters), dict(hints), dict[str, Callable[[], Any]]()
    for name, parameter in parameters.items():
        field = parameter.default
        if not is_pydantic_field(field):
            continue
        if name in hints:
            annotated[name] = Annotated[hints[name], field]
        if field.is_required():
            plain[name] = parameter.replace(default=inspect.Parameter.empty)
        else:
            defaults[name] = partial(field.get_default, call_default_factory=True)
            plain[name] = parameter.replace(default=UNSET if field.default_factory else field.default)
    return plain, annotated, defaults


def _define_struct(fields: list[tuple[str, Any, Any]]) -> type[Struct]:
    made = [
        (name, kind) if default is inspect.Parameter.empty else (name, kind, UNSET) for name, kind, default in fields
    ]
    return msgspec.defstruct("Arguments", made, kw_only=True, forbid_unknown_fields=True, module=__name__)


def _encode_default(default: Any, struct: type[Struct], name: str) -> Any:
    """Return a default as a JSON value; UNSET if there is none or the parameter's type does not accept it."""
    if default is inspect.Parameter.empty:
        return UNSET
    try:
        # A round trip through JSON, which encodes NaN and infinity as null.
        value = msgspec.json.decode(msgspec.json.encode(default, enc_hook=dump_model))
        kind = {field.name: field.type for field in msgspec.structs.fields(struct)}[name]
        msgspec.convert(value, kind, dec_hook=decode)
    except (TypeError, ValueError, RecursionError):
        return UNSET
    return value


def _with_integers(value: Any) -> Any:
    """Return a JSON value with whole numbers as integers."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _with_integers(member) for name, member in cast("dict[str, Any]", value).items()}
        case list():
            return [_with_integers(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _format_validation_error(message: str) -> str:
    """Return msgspec's error message with its path as a JSON pointer."""
    found = _ERROR_LOCATION.fullmatch(message)
    if found is None:
        return format_error("", message)
    steps = [member or ("*" if item == "..." else item) for member, item in _PATH_STEP.findall(found[2])]
    return format_error("".join(f"/{step}" for step in steps), found[1])
