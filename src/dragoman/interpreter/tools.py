"""Fit tool definitions and the choice among them to the target."""

from collections.abc import Iterable

from msgspec import Struct, structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import Message, NativeTool, Request, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.interpreter.fitting import Fitting
from dragoman.interpreter.foreign import drop_extras
from dragoman.interpreter.native_tools import choice_of, counterpart, is_called, settings_of
from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.from_openapi import to_json_schema
from dragoman.interpreter.schemas.gemini_json import fit_gemini
from dragoman.interpreter.schemas.openapi import to_openapi
from dragoman.interpreter.schemas.outcome import Converted
from dragoman.interpreter.schemas.roots import fit_root
from dragoman.interpreter.schemas.structured import to_anthropic_output, to_openai_strict
from dragoman.interpreter.strict_room import StrictRoom
from dragoman.wire import json
from dragoman.wire.memory import Memory

AnyTool = Tool | NativeTool
_SAYS_NOTHING = frozenset({"type", "properties", "required", "additionalProperties", "$schema"})
NO_PARAMETERS = b'{"type":"object","properties":{}}'
_NO_PARAMETERS_STRICT = b'{"type":"object","properties":{},"required":[],"additionalProperties":false}'
_FREE_TEXT = b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'


def fit_tools(request: Request, fitting: Fitting) -> tuple[tuple[AnyTool, ...], ToolChoice | None]:
    """Return the tools and the choice as the target takes them."""
    tools = _held_to_schemas(_allowed(request, fitting), request.tool_choice, fitting)
    fitted: list[AnyTool] = []
    room = StrictRoom(fitting.traits)
    for tool in tools:
        if isinstance(tool, NativeTool):
            native = _fit_native(tool, fitting)
            if native is not None:
                fitted.append(native)
            continue
        now = _fit_tool(tool, fitting, room.takes(tool))
        if now.strict is True:
            room.fill(tool)
        fitted.append(now)
    fitted = _beside_native(fitted, fitting)
    choice = _validated(_fit_choice(request, fitted, fitting), fitting)
    if not fitted and fitting.traits.stub_tools:
        stubs = tuple(_stubs(request.messages, fitting))
        return stubs, ToolChoice(mode="none") if stubs else None
    return tuple(fitted), choice


def _validated(choice: ToolChoice | None, fitting: Fitting) -> ToolChoice | None:
    if not fitting.validated:
        return choice
    if choice is None:
        return ToolChoice(mode="auto", validated=True)
    return structs.replace(choice, mode=choice.mode or "auto", validated=choice.mode in (None, "auto"))


def _allowed(request: Request, fitting: Fitting) -> tuple[AnyTool, ...]:
    """Leave out tools the choice does not allow, where the target has no list for that."""
    choice = request.tool_choice
    if choice is None or choice.mode == "none" or not (choice.names or choice.listed):
        return request.tools
    single = len(choice.names) == 1 and choice.mode == "required" and fitting.forced
    every_function = bool(choice.names) and (fitting.traits.allowed_subset or single)
    kept: list[AnyTool] = []
    for tool in request.tools:
        native = isinstance(tool, NativeTool)
        if (not choice.listed or _is_listed(tool, choice)) if native else every_function or tool.name in choice.names:
            kept.append(tool)
        else:
            fitting.ledger.dropped(tool.where, "tool_choice does not allow it, and the target has no list for that")
    return tuple(kept)


def _is_listed(tool: NativeTool, choice: ToolChoice) -> bool:
    return choice.extras is not None and any(_names(raw, tool) for raw in choice.extras.fields.values())


def _names(entry: bytes, tool: NativeTool) -> bool:
    """Tell whether an entry of a list of allowed tools is this one: it says as much of it as tells it apart."""
    if not (json.is_object(entry) and json.is_object(tool.raw)):
        return False
    said, members = json.decode_object(entry), json.decode_object(tool.raw)
    return "type" in said and all(
        name in members and json.peek(members[name]) == json.peek(value) for name, value in said.items()
    )


def _held_to_schemas(tools: tuple[AnyTool, ...], choice: ToolChoice | None, fitting: Fitting) -> tuple[AnyTool, ...]:
    """Say of each tool that its calls are held to its schema, where the choice says it of all (Gemini's VALIDATED)."""
    traits = fitting.traits
    if choice is None or not choice.validated or traits.strict_by_mode:
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


class _Made(Struct, frozen=True):
    """What became of a tool for one target, from one vendor, where nothing had to be booked."""

    tool: Tool
    source_issuer: str
    name: tuple[str, str] | None
    arguments: tuple[ArgumentUndo, ...]


_MADE: Memory[_Made] = Memory()


def _fit_tool(tool: Tool, fitting: Fitting, strict_allowed: bool) -> Tool:
    """Fit one tool; one that was fitted before is the same object, and is not fitted again."""
    made = _MADE.get(tool, fitting.traits) if strict_allowed else None
    if made is not None and made.source_issuer == fitting.source_issuer:
        if made.name is not None:
            fitting.names[made.tool.name] = made.name
        if made.arguments:
            fitting.arguments[tool.name] = made.arguments
        return made.tool
    booked = len(fitting.ledger)
    fitted = _fit_tool_anew(tool, fitting, strict_allowed)
    if strict_allowed and len(fitting.ledger) == booked and fitted.form == tool.form:
        name, arguments = fitting.names.get(fitted.name), fitting.arguments.get(tool.name, ())
        _MADE.keep(_Made(fitted, fitting.source_issuer, name, arguments), tool, fitting.traits)
    return fitted


def _fit_tool_anew(tool: Tool, fitting: Fitting, strict_allowed: bool) -> Tool:
    traits = fitting.traits
    drop_extras(tool, fitting)
    if tool.cache is not None:
        fitting.ledger.field_dropped("tool.cache", "the target has no cache marks on tools", tool)
    name = fitting.name(tool.name, tool.namespace)
    namespace = tool.namespace if traits.namespaces else ""
    if tool.namespace_description and not traits.namespaces:
        tool = structs.replace(tool, description=f"{tool.namespace_description}\n\n{tool.description}".rstrip())
    if tool.form == "text":
        return _fit_custom(tool, name, namespace, fitting)
    strict = tool.strict
    if strict and traits.strict_by_mode:
        fitting.ledger.field_approximated("tool.strict", "said for all tools at once, by the mode", tool)
        fitting.validated = True
        strict = None
    if strict and not (traits.strict_tools and strict_allowed):
        fitting.ledger.field_dropped("tool.strict", "the target cannot be held to the schema", tool)
        strict = None
    parameters, held = _fit_parameters(tool, strict is True, fitting)
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
    fitting.custom.add(tool.name)
    fitting.ledger.approximated(tool.where, "a free-form tool is a function with one text argument")
    description = tool.description
    if tool.grammar is not None:
        grammar = json.decode(tool.grammar)
        description += f"\n\nThe input must match this {grammar.get('syntax')} grammar:\n{grammar.get('definition')}"
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


def _fit_parameters(tool: Tool, strict: bool, fitting: Fitting) -> tuple[bytes | None, bool]:
    """Return the parameters as the target takes them, and whether calls can be held to them as was asked."""
    traits = fitting.traits
    schema = tool.parameters
    if schema is None:
        nothing = _NO_PARAMETERS_STRICT if strict else NO_PARAMETERS
        return nothing if traits.needs_parameters else None, strict
    if tool.openapi:
        schema = _booked(to_json_schema(schema), tool, fitting) or schema
    if strict and (traits.output_strict_only or (traits.strict_needs_all and fitting.source_issuer != traits.issuer)):
        closed = _strict(schema, fitting)
        if closed.narrowed:
            why = "strict would narrow the schema: it is sent as it is, and calls are not held to it"
            fitting.ledger.field_dropped("tool.strict", why, tool)
            strict = False
        else:
            schema = _booked(closed, tool, fitting) or schema
    if traits.schema == "openapi":
        fitted = _booked(to_openapi(schema), tool, fitting)
    elif traits.result_names:
        fitted = _booked(fit_gemini(schema), tool, fitting)
    else:
        fitted = _booked(fit_root(schema, property_keys=traits.property_keys), tool, fitting)
    return NO_PARAMETERS if fitted is None and traits.needs_parameters else fitted, strict


def _booked(converted: Converted, tool: Tool, fitting: Fitting) -> bytes | None:
    """Book what a conversion changed and remember how to change arguments back."""
    fitting.book_notes(converted.notes, "tool.parameters", tool)
    if converted.schema is None and tool.parameters is not None:
        _book_annotations(tool.parameters, tool, fitting)
    if converted.undo is not None:
        fitting.arguments[tool.name] = (*fitting.arguments.get(tool.name, ()), converted.undo)
    return converted.schema


def _book_annotations(schema: bytes, tool: Tool, fitting: Fitting) -> None:
    """A schema without arguments is not sent: book what it says beside that."""
    said = json.decode_object(schema) if json.is_object(schema) else {}
    for name in said.keys() - _SAYS_NOTHING:
        place = fitting.ledger.place("tool.parameters", tool)
        fitting.ledger.dropped(f"{place}/{name}", "the target takes no schema without arguments")


def _fit_choice(request: Request, tools: list[AnyTool], fitting: Fitting) -> ToolChoice | None:
    choice = request.tool_choice
    if choice is None:
        return None
    traits, ledger = fitting.traits, fitting.ledger
    _drop_unsaid(choice, request.tools, tools, fitting)
    if not tools:
        ledger.field_dropped("tool_choice", "there are no tools to choose from")
        if choice.parallel is not None:
            ledger.field_dropped("tool_choice.parallel", "there are no tools to choose from")
        return None
    if choice.mode == "none":
        return _no_calls(choice, fitting)
    if (native := _native_choice(choice, request.tools, tools)) is not None and fitting.forced:
        return structs.replace(native, parallel=_fit_parallel(choice, fitting), where=choice.where)
    mode, names = choice.mode or ("auto" if choice.names else None), _choice_names(choice, tools, fitting)
    if choice.names and not names:
        ledger.field_dropped("tool_choice", "the chosen tool is not among the tools sent")
        mode = "auto" if mode == "required" else mode
    if mode == "required" and not fitting.forced:
        ledger.field_approximated("tool_choice", "the model cannot be forced: asked for in words")
        wanted = " or ".join(names)
        fitting.instructions.append(f"Call the tool {wanted}." if wanted else "Call one of the tools.")
        mode, names = "auto", ()
    if names and not traits.allowed_subset and not (mode == "required" and len(names) == 1):
        ledger.field_approximated("tool_choice", "said by sending only the allowed tools")
        names = ()
    parallel = _fit_parallel(choice, fitting)
    if mode is None and parallel is None and not names:
        return None
    if mode is None and traits.parallel_needs_mode:
        mode = "auto"
    if not names or not traits.allowed_natives or (mode == "required" and len(names) == 1):
        return ToolChoice(mode=mode, names=names, parallel=parallel, where=choice.where)
    extras = _listed_natives(tools, len(names), traits.dialect)
    return ToolChoice(mode=mode, names=names, listed=True, parallel=parallel, where=choice.where, extras=extras)


def _listed_natives(tools: list[AnyTool], place: int, dialect: str) -> Extras | None:
    """Return entries, from number `place` on, for the vendor's own tools in a list of those that may be used."""
    kinds = [json.decode_object(tool.raw)["type"] for tool in tools if isinstance(tool, NativeTool)]
    listed = {f"/tools/{number}": b'{"type":%s}' % bytes(kind) for number, kind in enumerate(kinds, place)}
    return Extras(dialect, listed) if listed else None


def _drop_unsaid(choice: ToolChoice, asked: tuple[AnyTool, ...], sent: list[AnyTool], fitting: Fitting) -> None:
    """Book what only another dialect says of a choice, but for the vendor's own tools that it allows and are sent."""
    places = {tool.where for tool in sent}
    natives = [tool for tool in asked if isinstance(tool, NativeTool) and tool.where in places]
    for pointer, raw in choice.extras.fields.items() if choice.extras is not None else ():
        if not (choice.listed and any(_names(raw, tool) for tool in natives)):
            fitting.ledger.dropped(choice.where + pointer, "not known to the target")


def _no_calls(choice: ToolChoice, fitting: Fitting) -> ToolChoice:
    """Forbid all calls; what else is said about calls is then about nothing."""
    traits, ledger = fitting.traits, fitting.ledger
    if choice.names:
        ledger.field_dropped("tool_choice.names", "no tool may be called at all")
    parallel = choice.parallel if traits.parallel_switch and not traits.parallel_needs_mode else None
    if choice.parallel is False and parallel is None:
        ledger.field_dropped("tool_choice.parallel", "no tool may be called at all")
    return ToolChoice(mode="none", parallel=parallel, where=choice.where)


def _native_choice(choice: ToolChoice, asked: tuple[AnyTool, ...], sent: list[AnyTool]) -> ToolChoice | None:
    """Let the choice of one vendor's own tool follow it to the tool that stands in for it."""
    if choice.mode != "required" or len(choice.names) != 1:
        return None
    name = choice.names[0]
    places = {tool.where for tool in asked if isinstance(tool, NativeTool) and is_called(tool, name)}
    stand_in = next((tool for tool in sent if isinstance(tool, NativeTool) and tool.where in places), None)
    return choice_of(stand_in) if stand_in is not None else None


def _fit_parallel(choice: ToolChoice, fitting: Fitting) -> bool | None:
    if choice.parallel is None or fitting.traits.parallel_switch:
        return choice.parallel
    if choice.parallel is False:
        why = "asked for in words, and only the first call of an answer is told"
        fitting.ledger.field_approximated("tool_choice.parallel", why)
        fitting.instructions.append("Call at most one tool at a time.")
        fitting.single = True
    return None


def _choice_names(choice: ToolChoice, tools: list[AnyTool], fitting: Fitting) -> tuple[str, ...]:
    if not choice.names:
        return ()
    sent = {tool.name for tool in tools if isinstance(tool, Tool)}
    aliases = {original: alias for alias, (_, original) in fitting.names.items()}
    names: list[str] = []
    for index, original in enumerate(choice.names):
        name = aliases.get(original, original)
        if name in sent:
            names.append(name)
        elif len(choice.names) > 1:
            place = fitting.ledger.place("tool_choice.names")
            fitting.ledger.dropped(f"{place}/{index}", "the chosen tool is not among the tools sent")
    return tuple(names)


def _stubs(messages: Iterable[Message], fitting: Fitting) -> list[Tool]:
    """Declare the tools that the history calls, in the order of their first call."""
    names = {
        fitting.name(part.name, part.namespace): None
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    return [Tool(name=name, parameters=NO_PARAMETERS) for name in names]
