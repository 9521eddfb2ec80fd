"""Validate the tools of a request before an upstream is called: report all that is wrong, with its pointer.

Tools that cannot be parsed together are read one by one, so that each error is reported and not only the first. A
schema is wrong if no draft of JSON Schema gives it a meaning.
"""

from collections.abc import Iterator, Mapping

from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, NativeTool, Request, Tool, ToolChoice
from dragoman.interpreter.schema.drafts import Fault, find_faults
from dragoman.interpreter.schema.plain import UNPROVEN, PlainProof, prove_plain
from dragoman.interpreter.tool_kinds import is_called
from dragoman.interpreter.tools_cache import NO_PROOFS
from dragoman.wire import json


def schema_faults(schema: bytes, *, openapi: bool = False, proof: PlainProof | None = None) -> tuple[Fault, ...]:
    """Return all that is wrong, by places in the schema.

    `proof` is what `prove_plain` found of these bytes, if it has read them before.
    """
    proof = prove_plain(schema) if proof is None else proof
    return () if proof.valid else find_faults(schema, openapi=openapi)


CODE = "invalid_tool"
_DESCRIBED = frozenset({"function", "parameters", "input_schema"})
"""Members by which a caller describes a tool of its own."""
_MOST_LISTED = 100


def are_valid(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> bool:
    """Tell whether nothing is wrong with the tools, of whose schemas some are proven to be plain."""
    return not any(faults_of(tool, proofs.get(tool.where)) for tool in tools) and not any(twice(tools))


def unproven_bytes(tools: tuple[AnyTool, ...], proofs: Mapping[str, PlainProof] = NO_PROOFS) -> int:
    """Count the bytes of the schemas that are not proven to be plain."""
    schemas = [tool for tool in tools if isinstance(tool, Tool) and tool.parameters]
    return sum(len(tool.parameters or b"") for tool in schemas if not proofs.get(tool.where, UNPROVEN).valid)


def faults_of(tool: AnyTool, proof: PlainProof | None = None) -> list[tuple[str, str, bool]]:
    """Return what is wrong with one tool: places in it or, if that is said, in its schema.

    `proof` is what `prove_plain` found of the tool's parameters, if it has read them before.
    """
    if isinstance(tool, NativeTool):
        return [("", "a tool of the caller's must be described as one", False)] if _is_halfway(tool) else []
    found = [] if tool.name.strip() else [("", "a tool has no name", False)]
    if tool.parameters is not None:
        wrong = schema_faults(tool.parameters, openapi=tool.openapi, proof=proof)
        found += [(at, words, True) for at, words in wrong]
    return found


def _is_halfway(tool: NativeTool) -> bool:
    """Tell whether what could be read only as a vendor's own tool was meant as the caller's."""
    members = json.decode_object(tool.raw) if json.is_object(tool.raw) else {}
    if "type" in members:
        return bytes(members["type"]) == b'"function"'
    return not _DESCRIBED.isdisjoint(members)


def twice(tools: tuple[AnyTool, ...]) -> Iterator[Fault]:
    """Iterate the tools that are declared before with other words: nobody could tell which of the two is called."""
    known: dict[tuple[str, str], Tool] = {}
    for tool in tools:
        if not isinstance(tool, Tool):
            continue
        before = known.setdefault((tool.namespace, tool.name), tool)
        if before is not tool and (before.description, before.parameters) != (tool.description, tool.parameters):
            yield tool.where, f"another tool is called {json.encode(tool.name).decode()}, at {before.where}"


def wrong_choice(request: Request) -> list[Fault]:
    """Return what the choice names that is not among the tools."""
    choice = request.tool_choice
    if choice is None or not choice.names or choice.mode == "none":
        return []
    known = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    natives = [tool for tool in request.tools if isinstance(tool, NativeTool)]
    return [
        (_named_at(choice), f"the tool {json.encode(name).decode()} is chosen, and is not among the tools")
        for name in choice.names
        if name not in known and not any(is_called(tool, name) for tool in natives)
    ]


def _named_at(choice: ToolChoice) -> str:
    return choice.where or "/tool_choice"


def tools_problem(faults: list[Fault]) -> Problem:
    """Return the error that lists all that is wrong."""
    listed = faults[:_MOST_LISTED]
    more = f"; and {len(faults) - len(listed)} more" if len(faults) > len(listed) else ""
    told = "; ".join(f"{where}: {words}" for where, words in listed)
    count = "1 error" if len(faults) == 1 else f"{len(faults)} errors"
    message = f"{count} in the definitions of tools: {told}{more}"
    return Problem("invalid_request", message, where=listed[0][0], code=CODE, violations=tuple(listed))
