"""The vendor's own tools that the client runs: `shell`, `local_shell` and `apply_patch`.

The model calls them like functions; their calls and results are items of their own types.
"""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from dragoman.simulator.apis.conversation import Call, RequestResult, RequestTool, RequestTurn
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.rules_items import read_call_id
from dragoman.simulator.apis.responses.rules_tools import find_client_tools, find_tools
from dragoman.simulator.apis.rule import Json

_STRINGS: Json = {"type": "array", "items": {"type": "string"}, "minItems": 1}


class VendorTool(Struct, frozen=True, kw_only=True):
    """One tool: the type of its calls, the prefix of their ids, and the member with the arguments."""

    call: str
    prefix: str
    member: str
    description: str
    properties: Json
    required: tuple[str, ...]
    defaults: Mapping[str, Any] = {}
    """Members of the arguments that every call has."""
    members: Mapping[str, Any] = {}
    """Other members of a call."""


VENDOR_TOOLS: Mapping[str, VendorTool] = {
    "shell": VendorTool(
        call="shell_call",
        prefix="sh",
        member="action",
        description="Run commands in a shell.",
        properties={"commands": _STRINGS},
        required=("commands",),
        defaults={"max_output_length": None, "timeout_ms": None},
        members={"environment": {"type": "local"}},
    ),
    "local_shell": VendorTool(
        call="local_shell_call",
        prefix="lsh",
        member="action",
        description="Run a command on the user's computer.",
        properties={"command": _STRINGS},
        required=("command",),
        defaults={"type": "exec", "env": {}},
    ),
    "apply_patch": VendorTool(
        call="apply_patch_call",
        prefix="apc",
        member="operation",
        description="Create, update or delete a file with a patch.",
        properties={
            "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            "path": {"type": "string"},
            "diff": {"type": "string"},
        },
        required=("type", "path", "diff"),
    ),
}
"""The tools by their type in `tools`."""
_CALLS = {tool.call: kind for kind, tool in VENDOR_TOOLS.items()}
_RESULTS = {f"{tool.call}_output": kind for kind, tool in VENDOR_TOOLS.items()}


def find_vendor_tools(request: ResponsesRequest) -> set[str]:
    """Return the types of the declared tools; a client tool of such a name hides the vendor's from the model."""
    hidden = {tool["name"] for _, tool, group in find_client_tools(request) if not group}
    return {tool["type"] for _, tool in find_tools(request) if _is_run_by_client(tool)} - hidden


def _is_run_by_client(tool: Json) -> bool:
    environment = cast("Json", tool.get("environment") or {})
    return tool["type"] in VENDOR_TOOLS and environment.get("type", "local") == "local"


def declare_vendor_tool(kind: str) -> RequestTool:
    """Return a tool as the model knows it."""
    tool = VENDOR_TOOLS[kind]
    schema = {"type": "object", "properties": tool.properties, "required": [*tool.required]}
    return RequestTool(name=kind, description=tool.description, schema=schema)


def read_vendor_item(item: Json, items: list[Json]) -> RequestTurn | None:
    """Return the turn of a call or a result; None for an item of any other type."""
    if item["type"] in _CALLS:
        kind = _CALLS[item["type"]]
        call = Call(id=item["call_id"], name=kind, arguments=item[VENDOR_TOOLS[kind].member])
        return RequestTurn(role="assistant", calls=(call,))
    if item["type"] not in _RESULTS:
        return None
    kind, output = _RESULTS[item["type"]], item.get("output") or ""
    text = output if isinstance(output, str) else "\n".join(map(_describe_output, cast("list[Json]", output)))
    failed = item.get("status") == "failed"
    result = RequestResult(call_id=read_call_id(item, items), name=kind, text=text, failed=failed)
    return RequestTurn(role="user", results=(result,))


def _describe_output(entry: Json) -> str:
    outcome = entry["outcome"]
    ending = "timed out" if outcome["type"] == "timeout" else f"exit code {outcome['exit_code']}"
    return "\n".join(text for text in (entry["stdout"], entry["stderr"], ending) if text)


def build_vendor_call(kind: str, arguments: Json) -> Json:
    """Return the type and the members of a call's item."""
    tool = VENDOR_TOOLS[kind]
    return {"kind": tool.call, "status": "completed", tool.member: {**tool.defaults, **arguments}, **tool.members}
