"""Tools whose calls are held to their schemas: which can be strict at the target, and which stay so."""

from msgspec import structs

from dragoman.core.request import AnyTool, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.interpreter.adaptation import NO_LIMIT, Adaptation
from dragoman.interpreter.schema.conversion import Converted
from dragoman.interpreter.schema.limits import complexity
from dragoman.interpreter.schema.plain import to_json_schema
from dragoman.interpreter.schema.roots import is_openai_strict, to_anthropic_output, to_openai_strict


class StrictRoom:
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


def is_held(tool: Tool) -> bool:
    """Tell whether calls of a function are to be held to its schema."""
    return tool.strict is True and tool.form == "json"


def report_mode(tools: tuple[AnyTool, ...], adaptation: Adaptation) -> None:
    """Report that the mode holds all functions to their schemas, unless all asked for that."""
    functions = [tool for tool in tools if isinstance(tool, Tool) and tool.form == "json"]
    if all(map(is_held, functions)):
        return
    for tool in functions:
        if tool.strict:
            adaptation.ledger.field_approximated("tool.strict", "said for all tools at once, by the mode", tool)
        elif tool.strict is False:
            adaptation.ledger.field_approximated("tool.strict", "held to its schema like all tools, by the mode", tool)


def hold_to_schemas(tools: tuple[AnyTool, ...], choice: ToolChoice, adaptation: Adaptation) -> tuple[AnyTool, ...]:
    """Say of each tool that its calls are held to its schema, where the choice says it of all (Gemini's VALIDATED)."""
    traits = adaptation.traits
    if not choice.validated or traits.strict_by_mode:
        return tools
    held: list[AnyTool] = []
    strict_left = traits.strict_max if traits.strict_tools else 0
    for tool in tools:
        if not isinstance(tool, Tool):
            held.append(tool)
        elif strict_left > 0 and _is_strict_already(tool, adaptation):
            strict_left -= 1
            held.append(structs.replace(tool, strict=True))
        else:
            adaptation.ledger.field_approximated("tool_choice", f"calls of {tool.name} are not held to its schema")
            held.append(tool)
    return tuple(held)


def _is_strict_already(tool: Tool, adaptation: Adaptation) -> bool:
    """Tell whether a schema means the same when it is strict: nothing of it changes but that it is closed."""
    schema = tool.parameters
    if schema is not None and tool.openapi:
        schema = to_json_schema(schema).schema
    return schema is None or not to_strict(schema, adaptation).notes


def to_strict(schema: bytes, adaptation: Adaptation) -> Converted:
    """Convert a schema into the subset that the target enforces."""
    return to_anthropic_output(schema) if adaptation.traits.output_strict_only else to_openai_strict(schema)


def must_be_closed(schema: bytes, adaptation: Adaptation) -> bool:
    """Tell whether a strict schema has to change: OpenAI's own stay, those for a compatible server may be open."""
    traits = adaptation.traits
    return traits.strict_needs_all and not (adaptation.source_issuer == traits.issuer and is_openai_strict(schema))
