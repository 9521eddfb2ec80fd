"""Fit tool definitions and the choice among them to the target."""

from collections.abc import Iterable

from msgspec import structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import AnyTool, Message, NativeTool, Request, Tool, ToolChoice
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Fitting
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.native_tools import adapt_native, without_conflicts
from dragoman.interpreter.schema.conversion import Converted
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import PlainProof, adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.strict_tools import (
    StrictRoom,
    hold_to_schemas,
    is_held,
    must_be_closed,
    report_mode,
    to_strict,
)
from dragoman.interpreter.tool_choice import allowed, fit_choice, validated
from dragoman.interpreter.tools_cache import AdaptedTools
from dragoman.interpreter.undo import full_name
from dragoman.wire import json

_SAYS_NOTHING = frozenset({"type", "properties", "required", "additionalProperties", "$schema"})
NO_PARAMETERS = b'{"type":"object","properties":{}}'
_NO_PARAMETERS_STRICT = b'{"type":"object","properties":{},"required":[],"additionalProperties":false}'
_FREE_TEXT = b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'


def fit_tools(request: Request, fitting: Fitting) -> tuple[tuple[AnyTool, ...], ToolChoice | None]:
    """Return the tools and the choice as the target takes them."""
    tools, choice = request.tools, request.tool_choice
    if choice is not None:
        tools = hold_to_schemas(allowed(tools, choice, fitting), choice, fitting)
    adapted = _adapted(tools, fitting)
    fitting.names.update(adapted.names)
    fitting.arguments, fitting.retold = adapted.arguments, adapted.retold
    fitting.custom = adapted.custom
    if adapted.losses:
        fitting.ledger.add(adapted.losses)
    if choice is not None:
        choice = fit_choice(choice, request.tools, adapted.tools, fitting)
    if adapted.validated:
        fitting.validated = True
        choice = validated(choice)
    if not adapted.tools and fitting.traits.stub_tools:
        stubs = tuple(_stubs(request.messages, fitting))
        return stubs, ToolChoice(mode="none") if stubs else None
    fitting.written_tools = adapted.written
    return adapted.tools, choice


def _adapted(tools: tuple[AnyTool, ...], fitting: Fitting) -> AdaptedTools:
    """Return the tools as the target takes them: from the cache, if they are all the tools of the request."""
    tool_set, cache, traits = fitting.tool_set, fitting.tools_cache, fitting.traits
    if tool_set is None or cache is None or tools is not tool_set.tools:
        return adapt_tools(tools, fitting)
    for known in tool_set.adapted:
        if known.traits is traits:
            return known
    found = adapt_tools(tools, fitting)
    written = json.encode(dialect_named(traits.dialect).write_tools(found.tools)) if found.tools else b""
    found = structs.replace(found, written=written)
    cache.keep(tool_set, found)
    return found


def adapt_tools(tools: tuple[AnyTool, ...], fitting: Fitting) -> AdaptedTools:
    """Adapt tools to a target, whatever the rest of the request says."""
    traits = fitting.traits
    own = Fitting(traits, fitting.ledger.fork(), fitting.source_issuer, tool_set=fitting.tool_set)
    distinct = _once_each(tools, own)
    fitted = _fit_each(distinct, own)
    if any(isinstance(tool, NativeTool) for tool in fitted):
        fitted = without_conflicts(fitted, own)
    adapted = tuple(_once_each(fitted, own))
    strict = [tool for tool in tools if isinstance(tool, Tool) and tool.strict] if traits.strict_by_mode else []
    held = any(map(is_held, strict))
    if held:
        report_mode(tools, own)
    arguments = own.arguments
    retold = {name: steps for name, steps in arguments.items() if any(step.retold for step in steps)}
    losses = own.ledger.entries() if len(own.ledger) else ()
    return AdaptedTools(traits, adapted, own.names, arguments, retold, own.custom, held, losses)


def _fit_each(tools: Iterable[AnyTool], fitting: Fitting) -> list[AnyTool]:
    fitted: list[AnyTool] = []
    room: StrictRoom | None = None
    for tool in tools:
        if isinstance(tool, NativeTool):
            native = adapt_native(tool, fitting)
            if native is not None:
                fitted.append(native)
            continue
        if not tool.strict:
            fitted.append(_fit_tool(tool, fitting, strict_allowed=True))
            continue
        room = room or StrictRoom(fitting.traits)
        now = _fit_tool(tool, fitting, strict_allowed=room.takes(tool))
        if now.strict is True:
            room.fill(tool)
        fitted.append(now)
    return fitted


def _once_each(tools: Iterable[AnyTool], fitting: Fitting) -> list[AnyTool]:
    """Leave out what is declared a second time under the same name: most vendors refuse that."""
    kept = list(tools)
    functions = [tool for tool in kept if isinstance(tool, Tool)]
    first = {(tool.namespace, tool.name): tool for tool in reversed(functions)}
    if len(first) < len(functions):
        again = {id(tool): tool for tool in functions if first[tool.namespace, tool.name] is not tool}
        for tool in again.values():
            fitting.ledger.dropped(tool.where, "a tool of this name is declared before")
        kept = [tool for tool in kept if id(tool) not in again]
    return kept


def _fit_tool(tool: Tool, fitting: Fitting, strict_allowed: bool) -> Tool:
    """Adapt one tool; it may be strict if there is room for that."""
    traits = fitting.traits
    drop_extras(tool, fitting)
    if tool.cache is not None:
        fitting.ledger.field_dropped("tool.cache", "the target has no cache marks on tools", tool)
    name = fitting.name(tool.name, tool.namespace)
    namespace = tool.namespace if traits.namespaces else ""
    if tool.namespace and not namespace:
        fitting.names[name] = (tool.namespace, tool.name)
    if tool.namespace_description and not traits.namespaces:
        tool = structs.replace(tool, description=f"{tool.namespace_description}\n\n{tool.description}".rstrip())
    if tool.form == "text":
        return _fit_custom(tool, name, namespace, fitting)
    strict = tool.strict
    if traits.strict_by_mode:
        strict = None
    if strict and not (traits.strict_tools and strict_allowed):
        fitting.ledger.field_dropped("tool.strict", "the target cannot be held to the schema", tool)
        strict = None
    proof = fitting.tool_set.proofs.get(tool.where) if fitting.tool_set is not None else None
    parameters, held = _fit_parameters(tool, strict is True, fitting, proof)
    if strict and not held:
        strict = None
    openapi = traits.schema == "openapi"
    return Tool(
        name=name,
        description=tool.description,
        parameters=parameters,
        openapi=openapi and parameters is not None,
        strict=bool(strict) if traits.strict_explicit else strict if traits.strict_tools else None,
        namespace=namespace,
        where=tool.where,
    )


def _fit_custom(tool: Tool, name: str, namespace: str, fitting: Fitting) -> Tool:
    if fitting.traits.custom_tools:
        return structs.replace(tool, name=name, namespace=namespace, extras=None, cache=None)
    fitting.custom |= {tool.name}
    fitting.ledger.approximated(tool.where, "a free-form tool is a function with one text argument")
    description = tool.description
    if tool.grammar is not None:
        grammar = json.decode(tool.grammar)
        rule = f"The input must match this {grammar.get('syntax')} grammar:\n{grammar.get('definition')}"
        description = f"{description}\n\n{rule}" if description else rule
    parameters = _FREE_TEXT
    if fitting.traits.schema == "openapi":
        parameters = to_openapi(_FREE_TEXT).schema
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        openapi=fitting.traits.schema == "openapi",
        strict=False if fitting.traits.strict_explicit else None,
        namespace=namespace,
        where=tool.where,
    )


def _fit_parameters(
    tool: Tool, strict: bool, fitting: Fitting, proof: PlainProof | None = None
) -> tuple[bytes | None, bool]:
    """Return the parameters as the target takes them, and whether calls can be held to them as was asked.

    `proof` is what `prove_plain` found of the tool's parameters, if it has read them before.
    """
    traits = fitting.traits
    schema = tool.parameters
    if schema is None:
        nothing = _NO_PARAMETERS_STRICT if strict else NO_PARAMETERS
        return nothing if traits.needs_parameters else None, strict
    if tool.openapi:
        schema = _booked(to_json_schema(schema, proof), tool, fitting) or schema
    if strict and (traits.output_strict_only or must_be_closed(schema, fitting)):
        closed = to_strict(schema, fitting)
        if closed.narrowed:
            why = "strict would narrow the schema: it is sent as it is, and calls are not held to it"
            fitting.ledger.field_dropped("tool.strict", why, tool)
            strict = False
        else:
            schema = _booked(closed, tool, fitting) or schema
    proof = proof if schema is tool.parameters else None
    if traits.schema == "openapi":
        fitted = _booked(to_openapi(schema), tool, fitting)
    elif traits.result_names:
        fitted = _booked(adapt_gemini(schema, proof), tool, fitting)
    else:
        fitted = _booked(adapt_root(schema, property_keys=traits.property_keys, proof=proof), tool, fitting)
    return NO_PARAMETERS if fitted is None and traits.needs_parameters else fitted, strict


def _booked(converted: Converted, tool: Tool, fitting: Fitting) -> bytes | None:
    """Book what a conversion changed and remember how to change arguments back."""
    fitting.book_notes(converted.notes, "tool.parameters", tool)
    if converted.schema is None and tool.parameters is not None:
        _book_annotations(tool.parameters, tool, fitting)
    if converted.undo is not None:
        name = full_name(tool.name, tool.namespace)
        fitting.arguments[name] = (*fitting.arguments.get(name, ()), converted.undo)
    return converted.schema


def _book_annotations(schema: bytes, tool: Tool, fitting: Fitting) -> None:
    """A schema without arguments is not sent: book what it says beside that."""
    said = json.decode_object(schema) if json.is_object(schema) else {}
    for name in said.keys() - _SAYS_NOTHING:
        place = fitting.ledger.place("tool.parameters", tool)
        fitting.ledger.dropped(f"{place}/{name}", "the target takes no schema without arguments")


def _stubs(messages: Iterable[Message], fitting: Fitting) -> list[Tool]:
    """Declare the tools that the history calls, in the order of their first call."""
    names = {
        fitting.name(part.name, part.namespace): None
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    return [Tool(name=name, parameters=NO_PARAMETERS) for name in names]
