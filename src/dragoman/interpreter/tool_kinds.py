"""Adapt special kinds of tools: those that vendors run, strict ones, whose schemas are enforced, and free-form ones.

Each dialect has its own counterparts of other vendors' tools in `compat.py`.
"""

from collections.abc import Mapping, Sequence

from msgspec import structs

from dragoman.core.request import AnyTool, NativeTool, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.adaptation import NO_LIMIT, Adaptation
from dragoman.interpreter.ids import hash_text
from dragoman.interpreter.schema.conversion import ConvertedSchema
from dragoman.interpreter.schema.drafts import Fault
from dragoman.interpreter.schema.limits import measure_complexity
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import to_json_schema
from dragoman.interpreter.schema.roots import is_openai_strict, to_anthropic_output, to_openai_strict
from dragoman.interpreter.search_settings import translate_settings
from dragoman.interpreter.translation import TurnFunctionsNeeded
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json
from dragoman.wire.pointer import escape

HOSTED_TOOL = "a tool that only its own vendor runs"
UNKNOWN_TOOL = "the target has no such kind of tool"
"""Why a vendor's own tool is dropped: the vendor runs it, or the client does."""
NO_SEARCH = "neither the target nor the gateway can search the web for this request: the prompt says so"
"""Why a web search is dropped."""
_SEARCH = "search"
_NAME = "/name"
"""The purpose of a vendor's web search."""
NO_PROGRAMS = "the target runs no programs that call tools: the model calls them directly"
DECLARED = "declared as a function with the documented parameters"
_NOTICES = {
    "search": (
        "You have no web search in this conversation. Do not say that you have searched, and invent no results: if you "
        "are asked to search, say that you cannot."
    )
}
"""What the prompt says about a tool that its client declares and that cannot be run."""
_DESCRIBED = frozenset({"function", "parameters", "input_schema"})
"""Fields that only a function of the caller has, not a vendor's own tool."""


def adapt_native(tool: NativeTool, adaptation: Adaptation) -> NativeTool | None:
    """Return the target's counterpart of a vendor's own tool, and report what it does not have."""
    found = find_counterpart(tool, adaptation.traits)
    if found is None:
        if find_purpose(tool.raw) == _SEARCH:
            adaptation.missing[_SEARCH] = tool.where
            adaptation.ledger.report_dropped(tool.where, NO_SEARCH)
            return None
        if find_purpose(tool.raw) == "programs":
            adaptation.ledger.report_dropped(tool.where, NO_PROGRAMS, "informational")
            return None
        kind = find_kind(tool)
        reason = HOSTED_TOOL if is_hosted(tool) else f"{UNKNOWN_TOOL}: {kind}" if kind else UNKNOWN_TOOL
        adaptation.ledger.report_dropped(tool.where, reason)
    elif json.peek(found.raw) != json.peek(tool.raw):
        # Every tool search finds the same tools, and every web search the same web.
        is_search = find_purpose(tool.raw) == "tool_search"
        grade = "informational" if is_search or find_purpose(tool.raw) == _SEARCH else None
        adaptation.ledger.report_approximated(tool.where, "replaced by the target's own tool of that kind", grade)
        settings = list_settings(tool)
        if grade is not None and _NAME in settings:
            settings.remove(_NAME)
            # The name of a vendor's search is its type without the date.
            if not find_kind(tool).startswith(json.get_text(json.as_object(json.peek(tool.raw)), _NAME[1:])):
                adaptation.ledger.report_dropped(tool.where + _NAME, "the target's own tool has another name", grade)
        if find_purpose(tool.raw) == _SEARCH:
            return translate_settings(tool, found, settings, adaptation.ledger, implied=adaptation.implied_settings)
        for pointer in settings:
            adaptation.ledger.report_dropped(tool.where + pointer, "settings of a vendor's own tool are not translated")
    return found


def handle_missing(missing: Mapping[str, str], choice: ToolChoice | None, adaptation: Adaptation) -> None:
    """Raise `TurnFunctionsNeeded` for what the caller can run itself; add a notice to the prompt for the rest."""
    needed = adaptation.turn_functions.intersection(missing)
    if needed and (choice is None or choice.mode != "none"):
        raise TurnFunctionsNeeded(needed, missing[min(needed)])
    adaptation.instructions += [_NOTICES[purpose] for purpose in missing if purpose in _NOTICES]


def declare_client_tools(tools: Sequence[AnyTool], adaptation: Adaptation) -> list[AnyTool]:
    """Return the tools with each vendor's own tool that the client runs replaced by functions, for another target.

    A function gets an alias if the client has another tool of that name.
    """
    declared: list[AnyTool] = []
    taken = {qualify_name(tool.name, tool.namespace) for tool in tools if isinstance(tool, Tool)}
    for tool in tools:
        functions = _find_functions(tool, adaptation.traits.dialect) if isinstance(tool, NativeTool) else ()
        if not functions:
            declared.append(tool)
            continue
        adaptation.ledger.report_approximated_field("tool.type", DECLARED, tool, "informational")
        for function in functions:
            name = qualify_name(function.name, function.namespace)
            if name in taken:
                alias = f"{name}_{hash_text(name, 8)}"
                adaptation.names[alias] = (function.namespace, function.name)
                adaptation.ledger.report_approximated(tool.where, f"another tool is named {name!r}: sent as {alias!r}")
                declared.append(structs.replace(function, name=alias, namespace=""))
            else:
                declared.append(function)
            taken.add(name)
    return declared


def _find_functions(tool: NativeTool, target: str) -> tuple[Tool, ...]:
    dialect = DIALECTS.get(tool.dialect)
    if dialect is None or dialect.declare_client_tool is None or dialect.name == target:
        return ()
    return dialect.declare_client_tool(tool)


def find_kind(tool: NativeTool) -> str:
    """Return the type of a vendor's own tool, or the members that it is in; "" if it has none."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    kind = json.peek(members["type"]) if "type" in members else ", ".join(members)
    return kind if isinstance(kind, str) else ""


def find_native_faults(tool: NativeTool) -> list[Fault]:
    """Return the errors of a tool that was parsed as a vendor's own."""
    if _is_incomplete(tool):
        return [("", "the function is incomplete: add the fields that this API requires of a function")]
    if _is_impossible(tool):
        kind = json.encode(find_kind(tool)).decode()
        return [("/type", f"this API has no tools of the type {kind}: declare a function")]
    return []


def _is_incomplete(tool: NativeTool) -> bool:
    """Return whether a tool that was parsed as a vendor's own is an incomplete function of the caller."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return bytes(members["type"]) == b'"function"'
    return not _DESCRIBED.isdisjoint(members)


def _is_impossible(tool: NativeTool) -> bool:
    """Return whether the tool's own API has no such tools, and no vendor has one of that kind."""
    dialect = DIALECTS.get(tool.dialect)
    has_natives = dialect is None or dialect.is_hosted is not None
    return not has_natives and not find_purpose(tool.raw)


def is_hosted(tool: NativeTool) -> bool:
    """Return whether the vendor of the tool's dialect runs it."""
    dialect = DIALECTS.get(tool.dialect)
    return dialect is not None and dialect.is_hosted is not None and dialect.is_hosted(tool.raw)


def drop_conflicts(tools: list[AnyTool], adaptation: Adaptation) -> list[AnyTool]:
    """Drop vendors' own tools that the model does not take together with functions."""
    if adaptation.traits.native_tools or not any(isinstance(tool, Tool) for tool in tools):
        return tools
    kept: list[AnyTool] = []
    for tool in tools:
        if isinstance(tool, NativeTool) and b"codeExecution" not in tool.raw:
            adaptation.ledger.report_dropped(tool.where, "the model takes this tool or functions, not both")
            if find_purpose(tool.raw) == _SEARCH:
                adaptation.missing[_SEARCH] = tool.where
        else:
            kept.append(tool)
    return kept


def declares_search(tools: Sequence[AnyTool]) -> bool:
    """Return whether one of the tools is a web search that the vendor runs."""
    natives = (tool for tool in tools if type(tool) is NativeTool)
    return any(find_purpose(tool.raw) == _SEARCH for tool in natives)


def find_counterpart(tool: NativeTool, traits: Traits) -> NativeTool | None:
    """Return the tool of a model's vendor that does what `tool` does, or None."""
    return find_tool_for(find_purpose(tool.raw), traits, tool.where)


def find_tool_for(purpose: str, traits: Traits, where: str = "") -> NativeTool | None:
    """Return the tool of a model's vendor for a purpose, such as "search"; None if it has none."""
    target = DIALECTS.get(traits.dialect)
    found = target.vendor_tools.get(purpose) if target is not None else None
    if found is None or (purpose == _SEARCH and not traits.web_search):
        return None
    return NativeTool(dialect=traits.dialect, raw=found.raw, where=where)


def list_settings(tool: NativeTool) -> list[str]:
    """Return the relative pointers of a tool's fields other than its type: its settings."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return [f"/{escape(name)}" for name in members if name != "type"]
    known = _list_purposes()
    inside = [(name, raw) for name, raw in members.items() if name in known and json.is_object(raw)]
    others = [f"/{escape(name)}" for name in members if name not in known]
    return [*(f"/{name}/{escape(inner)}" for name, raw in inside for inner in json.decode_object(raw)), *others]


def find_choice(tool: NativeTool) -> ToolChoice | None:
    """Return the tool choice that makes a vendor use its own tool, or None."""
    dialect = DIALECTS.get(tool.dialect)
    found = dialect.vendor_tools.get(find_purpose(tool.raw)) if dialect is not None else None
    return found.choice if found is not None else None


def has_name(tool: NativeTool, name: str) -> bool:
    """Return whether a tool choice means the tool by `name`: the name of its calls, its own or its type."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    return name in tool.calls or name in (json.peek(members.get(member, b"")) for member in ("name", "type"))


def find_purpose(raw: bytes) -> str:
    """Return the purpose of a vendor's tool, such as "search"; "" if no table of vendor tools has it."""
    members = json.decode_object(raw) if json.is_object(raw) else {}
    kind = json.peek(members["type"]) if "type" in members else ""
    names = [kind, kind.rsplit("_", 1)[0]] if isinstance(kind, str) and kind else list(members)
    known = _list_purposes()
    return next((known[name] for name in names if name in known), "")


def _list_purposes() -> dict[str, str]:
    """Return the purpose of each vendor tool, by its name."""
    return {
        name: purpose
        for dialect in DIALECTS.values()
        for purpose, tool in dialect.vendor_tools.items()
        for name in tool.names
    }


class StrictBudget:
    """The target's remaining capacity for strict tools: tools, optional parameters and parameters of several types."""

    def __init__(self, traits: Traits) -> None:
        self._is_bounded = traits.strict_optional_max is not None or traits.strict_unions_max is not None
        self._tools = traits.strict_max
        self._optional = traits.strict_optional_max or NO_LIMIT
        self._unions = traits.strict_unions_max or NO_LIMIT

    def can_add(self, tool: Tool) -> bool:
        """Return whether one more tool can be strict."""
        if self._tools <= 0:
            return False
        if not self._is_bounded or not tool.strict:
            return True
        cost = measure_complexity(tool.parameters)
        return cost.optional <= self._optional and cost.unions <= self._unions

    def add(self, tool: Tool) -> None:
        """Subtract the cost of a strict tool from the remaining capacity."""
        self._tools -= 1
        if self._is_bounded:
            cost = measure_complexity(tool.parameters)
            self._optional -= cost.optional
            self._unions -= cost.unions


def is_strict(tool: Tool) -> bool:
    """Return whether the tool is a function whose schema is to be enforced on its calls."""
    return tool.strict is True and tool.form == "json"


def report_mode(tools: tuple[AnyTool, ...], adaptation: Adaptation) -> None:
    """Report that the calling mode enforces the schemas of all functions, unless all are strict."""
    functions = [tool for tool in tools if isinstance(tool, Tool) and tool.form == "json"]
    if all(map(is_strict, functions)):
        return
    for tool in functions:
        if tool.strict:
            adaptation.ledger.report_approximated_field(
                "tool.strict", "sent as the calling mode, which applies to all tools", tool
            )
        elif tool.strict is False:
            adaptation.ledger.report_approximated_field(
                "tool.strict", "the calling mode, which another tool needs, enforces the schemas of all tools", tool
            )


def make_strict(tools: tuple[AnyTool, ...], choice: ToolChoice, adaptation: Adaptation) -> tuple[AnyTool, ...]:
    """Make each tool strict if the choice enforces the schemas of all tools (Gemini's VALIDATED mode)."""
    traits = adaptation.traits
    if not choice.validated or traits.strict_by_mode:
        return tools
    adapted: list[AnyTool] = []
    strict_left = traits.strict_max if traits.strict_tools else 0
    for tool in tools:
        if not isinstance(tool, Tool):
            adapted.append(tool)
        elif strict_left > 0 and _is_strict_already(tool, adaptation):
            strict_left -= 1
            adapted.append(structs.replace(tool, strict=True))
        else:
            adaptation.ledger.report_approximated_field(
                "tool_choice", f"the schema of {tool.name} is not enforced on its calls"
            )
            adapted.append(tool)
    return tuple(adapted)


def _is_strict_already(tool: Tool, adaptation: Adaptation) -> bool:
    """Return whether a schema means the same in strict mode: it is only closed (no additional properties)."""
    schema = tool.parameters
    if schema is not None and tool.openapi:
        schema = to_json_schema(schema).schema
    return schema is None or not to_strict(schema, adaptation).notes


def to_strict(schema: bytes, adaptation: Adaptation) -> ConvertedSchema:
    """Convert a schema into the subset that the target enforces."""
    return to_anthropic_output(schema) if adaptation.traits.output_strict_only else to_openai_strict(schema)


def needs_closing(schema: bytes, adaptation: Adaptation) -> bool:
    """Return whether a strict schema must be closed (no additional properties, all properties required).

    It need not if the server is only compatible with OpenAI and takes open ones, or if the client's dialect is OpenAI's
    and the schema is closed already.
    """
    traits = adaptation.traits
    return traits.strict_needs_all and not (adaptation.source_issuer == traits.issuer and is_openai_strict(schema))


_FREE_TEXT = b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}'


def adapt_custom(tool: Tool, name: str, namespace: str, adaptation: Adaptation) -> Tool:
    """Return a free-form tool, for a target without such tools as a function with one text argument."""
    if adaptation.traits.custom_tools:
        return structs.replace(tool, name=name, namespace=namespace, extras=None, cache=None)
    adaptation.custom |= {tool.name}
    adaptation.ledger.report_approximated(tool.where, "a free-form tool is sent as a function with one text argument")
    description = tool.description
    if tool.grammar is not None:
        grammar = json.decode(tool.grammar)
        rule = f"The input must match this {grammar.get('syntax')} grammar:\n{grammar.get('definition')}"
        description = f"{description}\n\n{rule}" if description else rule
    parameters = _FREE_TEXT
    if adaptation.traits.schema == "openapi":
        parameters = to_openapi(_FREE_TEXT).schema
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        openapi=adaptation.traits.schema == "openapi",
        strict=False if adaptation.traits.strict_explicit else None,
        namespace=namespace,
        where=tool.where,
    )
