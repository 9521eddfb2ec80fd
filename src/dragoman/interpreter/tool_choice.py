"""Adapt `tool_choice` to the target: its mode, the tools it allows, and parallel calls."""

from msgspec import structs

from dragoman.core.request import AnyTool, NativeTool, Request, Tool, ToolChoice
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.foreign_fields import report_unknown
from dragoman.interpreter.schema.drafts import Fault
from dragoman.interpreter.tool_kinds import find_choice, has_name
from dragoman.wire import json


def find_choice_faults(request: Request) -> list[Fault]:
    """Return an error for each name in the tool choice that is not among the tools."""
    choice = request.tool_choice
    if choice is None or not choice.names or choice.mode == "none":
        return []
    known = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    natives = [tool for tool in request.tools if isinstance(tool, NativeTool)]
    return [
        (choice.where or "/tool_choice", f"tool_choice names {json.encode(name).decode()}, which is not in tools")
        for name in choice.names
        if name not in known and not any(has_name(tool, name) for tool in natives)
    ]


Tools = tuple[AnyTool, ...]


def drop_disallowed_tools(tools: Tools, choice: ToolChoice, adaptation: Adaptation) -> Tools:
    """Drop tools that the choice does not allow, if the target has no list of allowed tools."""
    if not (choice.names or choice.listed) or choice.mode == "none":
        return tools
    single = len(choice.names) == 1 and choice.mode == "required" and adaptation.can_force
    every_function = bool(choice.names) and (adaptation.traits.allowed_subset or single)
    kept: list[AnyTool] = []
    for tool in tools:
        is_native = isinstance(tool, NativeTool)
        if (not choice.listed or is_listed(tool, choice)) if is_native else every_function or tool.name in choice.names:
            kept.append(tool)
        else:
            adaptation.ledger.report_dropped(
                tool.where, "tool_choice does not allow it, and the target has no list of allowed tools"
            )
    return tuple(kept)


def is_listed(tool: NativeTool, choice: ToolChoice) -> bool:
    """Return whether the choice's list of allowed tools has a vendor's own tool."""
    return choice.extras is not None and any(_matches_entry(raw, tool) for raw in choice.extras.fields.values())


def _matches_entry(entry: bytes, tool: NativeTool) -> bool:
    """Return whether an entry of the list of allowed tools means this tool: the tool has all fields of the entry."""
    if not (json.is_object(entry) and json.is_object(tool.raw)):
        return False
    fields, members = json.decode_object(entry), json.decode_object(tool.raw)
    return "type" in fields and all(
        name in members and json.peek(members[name]) == json.peek(value) for name, value in fields.items()
    )


def adapt_choice(choice: ToolChoice, declared: Tools, sent: Tools, adaptation: Adaptation) -> ToolChoice | None:
    """Return the tool choice as the target takes it; `declared` are the caller's tools, `sent` the adapted ones."""
    traits, ledger = adaptation.traits, adaptation.ledger
    if choice.extras is not None:
        _report_unknown_extras(choice, choice.extras, declared, sent, adaptation)
    mode, names = choice.mode, ()
    if not sent:
        # Without tools, the modes "auto" and "none" are implied.
        if mode == "required" or choice.names:
            ledger.report_dropped_field("tool_choice", "there are no tools to choose from")
        return None
    if traits.choice_of_functions and not any(isinstance(tool, Tool) for tool in sent):
        if mode in ("required", "none") or choice.names:
            ledger.report_dropped_field("tool_choice", "the target has a choice among functions only")
        return None
    if mode == "none":
        return _forbid_calls(choice, adaptation)
    if choice.names:
        if (native := _adapt_native_choice(choice, declared, sent)) is not None and adaptation.can_force:
            return structs.replace(native, parallel=_adapt_parallel(choice, adaptation), where=choice.where)
        mode, names = mode or "auto", _alias_names(_name_natives(choice, declared), sent, adaptation)
        if not names:
            ledger.report_dropped_field("tool_choice", "the chosen tool is not among the tools sent")
            mode = "auto"
    if mode == "required" and not adaptation.can_force:
        ledger.report_approximated_field("tool_choice", "the model cannot be forced to call: requested in the prompt")
        required = " or ".join(names)
        adaptation.instructions.append(f"Call the tool {required}." if required else "Call one of the tools.")
        mode, names = "auto", ()
    if names and not traits.allowed_subset and not (mode == "required" and len(names) == 1):
        ledger.report_approximated_field(
            "tool_choice", "the target has no list of allowed tools: the others are not sent"
        )
        names = ()
    parallel = _adapt_parallel(choice, adaptation) if choice.parallel is not None else None
    if mode is None:
        if parallel is None:
            return None
        mode = "auto" if traits.parallel_needs_mode else None
    if not names or not traits.allowed_natives or (mode == "required" and len(names) == 1):
        return ToolChoice(mode=mode, names=names, parallel=parallel, where=choice.where)
    extras = _list_natives(sent, len(names), traits.dialect)
    return ToolChoice(mode=mode, names=names, listed=True, parallel=parallel, where=choice.where, extras=extras)


def _list_natives(tools: Tools, start: int, dialect: str) -> Extras | None:
    """Return entries for the vendor's own tools in the list of allowed tools, numbered from `start`."""
    kinds = [json.decode_object(tool.raw)["type"] for tool in tools if isinstance(tool, NativeTool)]
    listed = {f"/tools/{number}": b'{"type":%s}' % bytes(kind) for number, kind in enumerate(kinds, start)}
    return Extras(dialect, listed) if listed else None


def _report_unknown_extras(
    choice: ToolChoice, extras: Extras, declared: Tools, sent: Tools, adaptation: Adaptation
) -> None:
    """Report the extra fields of a choice, except list entries for vendor tools that are sent."""
    pointers = {tool.where for tool in sent}
    natives = [tool for tool in declared if isinstance(tool, NativeTool) and tool.where in pointers]
    for pointer, raw in extras.fields.items():
        if not (choice.listed and any(_matches_entry(raw, tool) for tool in natives)):
            report_unknown(choice.where + pointer, raw, extras.dialect, adaptation.traits.dialect, adaptation.ledger)


def _forbid_calls(choice: ToolChoice, adaptation: Adaptation) -> ToolChoice:
    """Return a choice that forbids all calls; names are reported as a loss, and one call at a time is implied."""
    traits = adaptation.traits
    if choice.names:
        adaptation.ledger.report_dropped_field("tool_choice.names", "the mode forbids all calls")
    parallel = choice.parallel if traits.parallel_switch and not traits.parallel_needs_mode else None
    return ToolChoice(mode="none", parallel=parallel, where=choice.where)


def _adapt_native_choice(choice: ToolChoice, declared: Tools, sent: Tools) -> ToolChoice | None:
    """Return the choice of the target's counterpart, if the choice names one vendor's own tool that has one."""
    if choice.mode != "required" or len(choice.names) != 1:
        return None
    name = choice.names[0]
    pointers = {tool.where for tool in declared if isinstance(tool, NativeTool) and has_name(tool, name)}
    counterpart = next((tool for tool in sent if isinstance(tool, NativeTool) and tool.where in pointers), None)
    return find_choice(counterpart) if counterpart is not None else None


def _adapt_parallel(choice: ToolChoice, adaptation: Adaptation) -> bool | None:
    if choice.parallel is None or adaptation.traits.parallel_switch:
        return choice.parallel
    if choice.parallel is False:
        reason = "requested in the prompt, and only the first call of a reply is sent"
        adaptation.ledger.report_approximated_field("tool_choice.parallel", reason)
        adaptation.instructions.append("Call at most one tool at a time.")
        adaptation.single_call = True
    return None


def _name_natives(choice: ToolChoice, declared: Tools) -> ToolChoice:
    """Return the choice with the names of the listed tools that are sent as functions."""
    if not choice.listed:
        return choice
    listed = [tool for tool in declared if isinstance(tool, NativeTool) and is_listed(tool, choice)]
    return structs.replace(choice, names=(*choice.names, *(name for tool in listed for name in tool.calls)))


def _alias_names(choice: ToolChoice, tools: Tools, adaptation: Adaptation) -> tuple[str, ...]:
    sent = {tool.name for tool in tools if isinstance(tool, Tool)}
    aliases = {original: alias for alias, (_, original) in adaptation.names.items()}
    names: list[str] = []
    for index, original in enumerate(choice.names):
        name = aliases.get(original, original)
        if name in sent:
            names.append(name)
        elif len(choice.names) > 1:
            pointer = adaptation.ledger.find_pointer("tool_choice.names")
            adaptation.ledger.report_dropped(f"{pointer}/{index}", "the chosen tool is not among the tools sent")
    return tuple(names)


def add_validation(choice: ToolChoice | None) -> ToolChoice:
    """Return the choice with the mode that enforces the schemas of all tools: some tool is strict."""
    if choice is None:
        return ToolChoice(mode="auto", validated=True)
    return structs.replace(choice, mode=choice.mode or "auto", validated=choice.mode in (None, "auto"))
