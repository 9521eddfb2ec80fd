"""Validate the tools of a request, and adapt them and the choice among them to the target.

Tools are validated before an upstream is called. A schema is wrong if no draft of JSON Schema gives it a meaning.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import AnyTool, Message, NativeTool, Request, Tool, ToolChoice
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.deferred_tools import adapt_tool_fields
from dragoman.interpreter.schema.conversion import ConvertedSchema
from dragoman.interpreter.schema.drafts import Fault, find_faults
from dragoman.interpreter.schema.object_root import accepts_objects
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import (
    UNPROVEN,
    PlainProof,
    adapt_gemini,
    adapt_root,
    prove_plain,
    to_json_schema,
)
from dragoman.interpreter.search_limits import MAX_USES, find_max_uses
from dragoman.interpreter.tool_choice import adapt_choice, add_validation, drop_disallowed_tools
from dragoman.interpreter.tool_kinds import (
    StrictBudget,
    adapt_custom,
    adapt_native,
    declare_client_tools,
    drop_conflicts,
    find_native_faults,
    handle_missing,
    is_strict,
    make_strict,
    needs_closing,
    report_mode,
    to_strict,
)
from dragoman.interpreter.tools_cache import NO_PROOFS, AdaptedTools
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json

_STRUCTURAL = frozenset({"type", "properties", "required", "additionalProperties", "$schema"})
"""Keywords without information in the schema of a tool without arguments."""
NO_PARAMETERS = b'{"type":"object","properties":{}}'
DECLARED_TWICE = "an earlier tool has the same name"
_NO_PARAMETERS_STRICT = b'{"type":"object","properties":{},"required":[],"additionalProperties":false}'


def adapt_request_tools(request: Request, adaptation: Adaptation) -> tuple[tuple[AnyTool, ...], ToolChoice | None]:
    """Return the tools and the tool choice as the target takes them."""
    tools, choice = request.tools, request.tool_choice
    if choice is not None:
        tools = make_strict(drop_disallowed_tools(tools, choice, adaptation), choice, adaptation)
    adapted = _find_adapted_tools(tools, adaptation)
    adaptation.names.update(adapted.names)
    adaptation.arguments, adaptation.history_changes = adapted.arguments, adapted.history_changes
    adaptation.custom, adaptation.natives, adaptation.sent = adapted.custom, adapted.natives, adapted.tools
    if adapted.losses:
        adaptation.ledger.add(adapted.losses)
    if adapted.missing:
        handle_missing(adapted.missing, choice, adaptation)
    if choice is not None:
        choice = adapt_choice(choice, request.tools, adapted.tools, adaptation)
    if adapted.validated:
        adaptation.validated = True
        choice = add_validation(choice)
    if not adapted.tools and adaptation.traits.stub_tools:
        stubs = tuple(_build_stubs(request.messages, adaptation))
        return stubs, ToolChoice(mode="none") if stubs else None
    adaptation.written_tools = adapted.written
    return adapted.tools, choice


def _find_adapted_tools(tools: tuple[AnyTool, ...], adaptation: Adaptation) -> AdaptedTools:
    """Return the tools as the target takes them; use the cache if they are all the tools of the request."""
    tool_set, cache, traits = adaptation.tool_set, adaptation.tools_cache, adaptation.traits
    if tool_set is None or cache is None or tools is not tool_set.tools:
        return adapt_tools(tools, adaptation)
    for known in tool_set.adapted:
        if known.traits is traits:
            return known
    found = adapt_tools(tools, adaptation)
    written = json.encode(dialect_named(traits.dialect).write_tools(found.tools)) if found.tools else b""
    found = structs.replace(found, written=written)
    cache.store(tool_set, found)
    return found


def adapt_tools(tools: tuple[AnyTool, ...], adaptation: Adaptation) -> AdaptedTools:
    """Adapt tools to a target, independently of the rest of the request."""
    traits = adaptation.traits
    own = Adaptation(traits, adaptation.ledger.fork(), adaptation.source_issuer, tool_set=adaptation.tool_set)
    own.has_tool_search = adaptation.has_tool_search
    distinct = _drop_duplicates(tools, own)
    if any(isinstance(tool, NativeTool) for tool in distinct):
        if dialect_named(traits.dialect).call_limit and find_max_uses(tools) is not None:
            own.implied_settings = frozenset({MAX_USES})
        distinct = declare_client_tools(distinct, own)
    each = _adapt_each(distinct, own)
    if any(isinstance(tool, NativeTool) for tool in each):
        each = drop_conflicts(each, own)
    adapted = tuple(_drop_duplicates(each, own))
    strict = [tool for tool in tools if isinstance(tool, Tool) and tool.strict] if traits.strict_by_mode else []
    is_enforced = any(map(is_strict, strict))
    if is_enforced:
        report_mode(tools, own)
    arguments = own.arguments
    history_changes = {name: steps for name, steps in arguments.items() if any(step.converts_history for step in steps)}
    losses = own.ledger.entries() if len(own.ledger) else ()
    found = AdaptedTools(
        traits, adapted, own.names, arguments, history_changes, own.custom, own.natives, is_enforced, losses
    )
    return structs.replace(found, missing=own.missing) if own.missing else found


def _adapt_each(tools: Iterable[AnyTool], adaptation: Adaptation) -> list[AnyTool]:
    adapted: list[AnyTool] = []
    budget: StrictBudget | None = None
    for tool in tools:
        if isinstance(tool, NativeTool):
            native = adapt_native(tool, adaptation)
            if native is not None:
                adapted.append(native)
            continue
        if not tool.strict:
            adapted.append(_adapt_tool(tool, adaptation, strict_allowed=True))
            continue
        budget = budget or StrictBudget(adaptation.traits)
        now = _adapt_tool(tool, adaptation, strict_allowed=budget.can_add(tool))
        if now.strict is True:
            budget.add(tool)
        adapted.append(now)
    return adapted


def _drop_duplicates(tools: Iterable[AnyTool], adaptation: Adaptation) -> list[AnyTool]:
    """Drop tools whose name an earlier tool has: most vendors reject duplicates."""
    kept = list(tools)
    functions = [tool for tool in kept if isinstance(tool, Tool)]
    first = {(tool.namespace, tool.name): tool for tool in reversed(functions)}
    if len(first) < len(functions):
        duplicates = {id(tool): tool for tool in functions if first[tool.namespace, tool.name] is not tool}
        for tool in duplicates.values():
            adaptation.ledger.report_dropped(tool.where, DECLARED_TWICE)
        kept = [tool for tool in kept if id(tool) not in duplicates]
    return kept


def _adapt_tool(tool: Tool, adaptation: Adaptation, strict_allowed: bool) -> Tool:
    """Adapt one tool; `strict_allowed` is False if the target has no capacity left for strict tools."""
    traits = adaptation.traits
    extras = adapt_tool_fields(tool, adaptation) if tool.extras is not None else None
    if tool.cache is not None:
        adaptation.ledger.report_dropped_field("tool.cache", "the target has no cache marks on tools", tool)
    name = adaptation.alias_tool(tool.name, tool.namespace)
    if tool.native:
        adaptation.natives[name] = tool.native
    namespace = tool.namespace if traits.namespaces else ""
    if tool.namespace and not namespace:
        adaptation.names[name] = (tool.namespace, tool.name)
    if tool.namespace_description and not traits.namespaces:
        tool = structs.replace(tool, description=f"{tool.namespace_description}\n\n{tool.description}".rstrip())
    if tool.form == "text":
        custom = adapt_custom(tool, name, namespace, adaptation)
        return custom if extras is None else structs.replace(custom, extras=extras)
    strict = tool.strict
    if traits.strict_by_mode:
        strict = None
    if strict and not (traits.strict_tools and strict_allowed):
        reason = (
            "the target takes no more strict tools" if traits.strict_tools else "the target cannot enforce the schema"
        )
        adaptation.ledger.report_dropped_field("tool.strict", reason, tool)
        strict = None
    proof = adaptation.tool_set.proofs.get(tool.where) if adaptation.tool_set is not None else None
    parameters, is_enforced = _adapt_parameters(tool, strict is True, adaptation, proof)
    if strict and not is_enforced:
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
        extras=extras,
    )


def _adapt_parameters(
    tool: Tool, strict: bool, adaptation: Adaptation, proof: PlainProof | None = None
) -> tuple[bytes | None, bool]:
    """Return the parameters as the target takes them, and whether they are enforced if `strict` requests that.

    `proof` is the result of `prove_plain` for the tool's parameters, if it is known already.
    """
    traits = adaptation.traits
    schema = tool.parameters
    if schema is None:
        nothing = _NO_PARAMETERS_STRICT if strict else NO_PARAMETERS
        return nothing if traits.needs_parameters else None, strict
    if tool.openapi:
        schema = _report_conversion(to_json_schema(schema, proof), tool, adaptation) or schema
    if strict and (traits.output_strict_only or needs_closing(schema, adaptation)):
        closed = to_strict(schema, adaptation)
        if closed.narrowed:
            reason = "a strict schema could not express all of it: it is sent unchanged and not enforced"
            adaptation.ledger.report_dropped_field("tool.strict", reason, tool)
            strict = False
        else:
            schema = _report_conversion(closed, tool, adaptation) or schema
    proof = proof if schema is tool.parameters else None
    if traits.schema == "openapi":
        parameters = _report_conversion(to_openapi(schema), tool, adaptation)
    elif traits.result_names:
        parameters = _report_conversion(adapt_gemini(schema, proof), tool, adaptation)
    else:
        parameters = _report_conversion(
            adapt_root(schema, property_keys=traits.property_keys, proof=proof), tool, adaptation
        )
    return NO_PARAMETERS if parameters is None and traits.needs_parameters else parameters, strict


def _report_conversion(converted: ConvertedSchema, tool: Tool, adaptation: Adaptation) -> bytes | None:
    """Report the losses of a schema conversion and record how to undo it in arguments; return the schema."""
    adaptation.report_notes(converted.notes, "tool.parameters", tool)
    if converted.schema is None and tool.parameters is not None:
        _report_annotations(tool.parameters, tool, adaptation)
    if converted.undo is not None:
        name = qualify_name(tool.name, tool.namespace)
        adaptation.arguments[name] = (*adaptation.arguments.get(name, ()), converted.undo)
    return converted.schema


def _report_annotations(schema: bytes, tool: Tool, adaptation: Adaptation) -> None:
    """Report the annotations of a schema without arguments, since such a schema is not sent."""
    members = json.decode_object(schema) if json.is_object(schema) else {}
    for name in members.keys() - _STRUCTURAL:
        pointer = adaptation.ledger.find_pointer("tool.parameters", tool)
        adaptation.ledger.report_dropped(f"{pointer}/{name}", "the target takes no schema without arguments")


def _build_stubs(messages: Iterable[Message], adaptation: Adaptation) -> list[Tool]:
    """Declare the tools that the history calls, in the order of their first call."""
    names = {
        adaptation.alias_tool(part.name, part.namespace): None
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    return [Tool(name=name, parameters=NO_PARAMETERS) for name in names]


def find_schema_faults(schema: bytes, *, openapi: bool = False, proof: PlainProof | None = None) -> tuple[Fault, ...]:
    """Return all errors in a schema, with pointers into it.

    `proof` is the result of `prove_plain` for these bytes, if it is known already.
    """
    proof = prove_plain(schema) if proof is None else proof
    return () if proof.valid else find_faults(schema, openapi=openapi)


def are_valid(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> bool:
    """Return whether the tools have no errors; `proofs` are results of `prove_plain` by the tools' pointers."""
    return not any(find_faults_in(tool, proofs.get(tool.where)) for tool in tools) and not any(find_duplicates(tools))


def count_unproven_bytes(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> int:
    """Count the bytes of the schemas that `prove_plain` has not proven to be valid."""
    schemas = [tool for tool in tools if isinstance(tool, Tool) and tool.parameters]
    return sum(len(tool.parameters or b"") for tool in schemas if not proofs.get(tool.where, UNPROVEN).valid)


def find_faults_in(tool: AnyTool, proof: PlainProof | None = None) -> list[tuple[str, str, bool]]:
    """Return the errors of one tool: a pointer, a message, and whether the pointer is into the tool's schema.

    `proof` is the result of `prove_plain` for the tool's parameters, if it is known already.
    """
    if isinstance(tool, NativeTool):
        return [(at, message, False) for at, message in find_native_faults(tool)]
    found = [] if tool.name.strip() else [("", "the tool has no name", False)]
    if tool.parameters is not None:
        faults = find_schema_faults(tool.parameters, openapi=tool.openapi, proof=proof)
        found += [(at, message, True) for at, message in faults]
        if not faults and not (proof is not None and proof.valid) and not accepts_objects(json.peek(tool.parameters)):
            found.append(("", f"the parameters of {tool.name!r} must be an object, and this schema accepts none", True))
    return found


def find_duplicates(tools: tuple[AnyTool, ...]) -> Iterator[Fault]:
    """Yield an error for each tool whose name an earlier, different tool has: a call of it would be ambiguous."""
    known: dict[tuple[str, str], Tool] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            continue
        before = known.setdefault((tool.namespace, tool.name), tool)
        if before is not tool and (before.description, before.parameters) != (tool.description, tool.parameters):
            yield tool.where, f"the tool at {before.where} has the same name, {json.encode(tool.name).decode()}"
