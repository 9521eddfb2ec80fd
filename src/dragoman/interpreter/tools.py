"""Fit tool definitions and the choice among them to the target."""

from collections.abc import Iterable

from msgspec import structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import NO_LIMIT, Fitting
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.native_tools import counterpart, settings_of
from dragoman.interpreter.schema.conversion import Converted
from dragoman.interpreter.schema.limits import complexity
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import PlainProof, adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import is_openai_strict, to_anthropic_output, to_openai_strict
from dragoman.interpreter.tool_choice import allowed, fit_choice, validated
from dragoman.interpreter.tools_cache import AdaptedTools
from dragoman.interpreter.undo import full_name
from dragoman.wire import json

AnyTool = Tool | NativeTool
_SAYS_NOTHING = frozenset({"type", "properties", "required", "additionalProperties", "$schema"})
NO_PARAMETERS = b'{"type":"object","properties":{}}'
_NO_PARAMETERS_STRICT = b'{"type":"object","properties":{},"required":[],"additionalProperties":false}'
_FREE_TEXT = b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'


def fit_tools(request: Request, fitting: Fitting) -> tuple[tuple[AnyTool, ...], ToolChoice | None]:
    """Return the tools and the choice as the target takes them."""
    tools, choice = request.tools, request.tool_choice
    if choice is not None:
        tools = _held_to_schemas(allowed(tools, choice, fitting), choice, fitting)
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
    adapted = tuple(_once_each(_beside_native(_fit_each(distinct, own), own), own))
    held = traits.strict_by_mode and any(isinstance(tool, Tool) and _is_held(tool) for tool in tools)
    if held:
        _book_mode(tools, own)
    arguments = own.arguments
    retold = {name: steps for name, steps in arguments.items() if any(step.retold for step in steps)}
    losses = own.ledger.entries() if len(own.ledger) else ()
    return AdaptedTools(traits, adapted, own.names, arguments, retold, own.custom, held, losses)


def _fit_each(tools: Iterable[AnyTool], fitting: Fitting) -> list[AnyTool]:
    fitted: list[AnyTool] = []
    room: _StrictRoom | None = None
    for tool in tools:
        if isinstance(tool, NativeTool):
            native = _fit_native(tool, fitting)
            if native is not None:
                fitted.append(native)
            continue
        if not tool.strict:
            fitted.append(_fit_tool(tool, fitting, strict_allowed=True))
            continue
        room = room or _StrictRoom(fitting.traits)
        now = _fit_tool(tool, fitting, strict_allowed=room.takes(tool))
        if now.strict is True:
            room.fill(tool)
        fitted.append(now)
    return fitted


class _StrictRoom:
    """How much more a target can compile: tools, and in them parameters that may be absent or of several types."""

    def __init__(self, traits: Traits) -> None:
        self._bounded = traits.strict_optional_max is not None or traits.strict_unions_max is not None
        self._tools = traits.strict_max
        self._optional = traits.strict_optional_max or NO_LIMIT
        self._unions = traits.strict_unions_max or NO_LIMIT

    def takes(self, tool: Tool) -> bool:
        """Tell whether one more tool could be strict."""
        if self._tools <= 0:
            return False
        if not self._bounded or not tool.strict:
            return True
        cost = complexity(tool.parameters)
        return cost.optional <= self._optional and cost.unions <= self._unions

    def fill(self, tool: Tool) -> None:
        """Take the room that a strict tool needs."""
        self._tools -= 1
        if self._bounded:
            cost = complexity(tool.parameters)
            self._optional -= cost.optional
            self._unions -= cost.unions


def _is_held(tool: Tool) -> bool:
    return tool.strict is True and tool.form == "json"


def _book_mode(tools: tuple[AnyTool, ...], fitting: Fitting) -> None:
    """Book that the mode holds all functions to their schemas, where not all asked for that: else it says just that."""
    functions = [tool for tool in tools if isinstance(tool, Tool) and tool.form == "json"]
    if all(map(_is_held, functions)):
        return
    for tool in functions:
        if tool.strict:
            fitting.ledger.field_approximated("tool.strict", "said for all tools at once, by the mode", tool)
        elif tool.strict is False:
            fitting.ledger.field_approximated("tool.strict", "held to its schema like all tools, by the mode", tool)


def _held_to_schemas(tools: tuple[AnyTool, ...], choice: ToolChoice, fitting: Fitting) -> tuple[AnyTool, ...]:
    """Say of each tool that its calls are held to its schema, where the choice says it of all (Gemini's VALIDATED)."""
    traits = fitting.traits
    if not choice.validated or traits.strict_by_mode:
        return tools
    held: list[AnyTool] = []
    strict_left = traits.strict_max if traits.strict_tools else 0
    for tool in tools:
        if not isinstance(tool, Tool):
            held.append(tool)
        elif strict_left > 0 and _is_strict_already(tool, fitting):
            strict_left -= 1
            held.append(structs.replace(tool, strict=True))
        else:
            fitting.ledger.field_approximated("tool_choice", f"calls of {tool.name} are not held to its schema")
            held.append(tool)
    return tuple(held)


def _is_strict_already(tool: Tool, fitting: Fitting) -> bool:
    """Tell whether a schema means the same when it is strict: nothing of it changes but that it is closed."""
    schema = tool.parameters
    if schema is not None and tool.openapi:
        schema = to_json_schema(schema).schema
    return schema is None or not _strict(schema, fitting).notes


def _strict(schema: bytes, fitting: Fitting) -> Converted:
    return to_anthropic_output(schema) if fitting.traits.output_strict_only else to_openai_strict(schema)


def _fit_native(tool: NativeTool, fitting: Fitting) -> NativeTool | None:
    found = counterpart(tool, fitting.traits.dialect)
    if found is None:
        fitting.ledger.dropped(tool.where, "a tool only its own vendor runs")
    elif json.peek(found.raw) != json.peek(tool.raw):
        fitting.ledger.approximated(tool.where, "the target's own tool of that kind stands in")
        for place in settings_of(tool):
            fitting.ledger.dropped(tool.where + place, "the target's own tool of that kind has no such setting")
    return found


def _beside_native(tools: list[AnyTool], fitting: Fitting) -> list[AnyTool]:
    if fitting.traits.native_tools or not any(isinstance(tool, Tool) for tool in tools):
        return tools
    kept: list[AnyTool] = []
    for tool in tools:
        if isinstance(tool, NativeTool) and b"codeExecution" not in tool.raw:
            fitting.ledger.dropped(tool.where, "the model takes search tools or functions, not both")
        else:
            kept.append(tool)
    return kept


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
    if strict and (traits.output_strict_only or _must_be_closed(schema, fitting)):
        closed = _strict(schema, fitting)
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


def _must_be_closed(schema: bytes, fitting: Fitting) -> bool:
    """Tell whether a strict schema has to change: OpenAI's own stay, those for a compatible server may be open."""
    traits = fitting.traits
    return traits.strict_needs_all and not (fitting.source_issuer == traits.issuer and is_openai_strict(schema))


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
