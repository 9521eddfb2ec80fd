"""Find what a known server requires or refuses in a request of its own dialect, as edits of the client's body.

A server is known if its dialect has a row for it (`Dialect.servers`). What is not in the row stays as the client wrote
it: a server may accept more than the table says.
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import structs

from dragoman.core.request import Request, Thinking, Tool, ToolChoice
from dragoman.core.traits import Traits
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation, find_model_traits
from dragoman.interpreter.parameters import adapt_output, adapt_shared_value
from dragoman.wire import json
from dragoman.wire.lookup import Document

Edits = dict[str, bytes | None]
"""Raw values by pointer; None removes a value."""
_NO_FIELD = "the server does not take it"


def takes_thinking(thinking: Thinking, traits: Traits) -> bool:
    """Return whether the server takes the members by which the client set thinking, with the values they have."""
    written = {_find_effort(traits): b""} if thinking.extras is None else _strip_slashes(thinking.extras.fields)
    if not written.keys() <= _list_thinking_members(traits):
        return False
    if thinking.effort is not None and thinking.effort not in traits.efforts:
        return False
    if thinking.budget is not None and not traits.budget_member:
        return False
    if thinking.mode is None:
        return True
    settings = traits.thinking_off if thinking.mode == "disabled" else traits.thinking_on
    return any(name in written for name, _ in settings) and not any(
        _contradicts(json.decode(written[name]), json.decode(raw)) for name, raw in settings if name in written
    )


def _strip_slashes(fields: dict[str, bytes]) -> dict[str, bytes]:
    return {pointer.removeprefix("/"): raw for pointer, raw in fields.items()}


def _find_effort(traits: Traits) -> str:
    """Return the name of the member with the effort, as the dialect's own vendor has it."""
    return dialect_named(traits.dialect).pointers["thinking.effort"][0].removeprefix("/")


def _list_thinking_members(traits: Traits) -> set[str]:
    """Return the names of the members by which a server takes thinking."""
    members = {name for name, _ in (*traits.thinking_on, *traits.thinking_off)}
    if traits.efforts:
        members |= {_find_effort(traits), traits.effort_member.partition("/")[0]}
    if traits.budget_member:
        members.add(traits.budget_member.partition("/")[0])
    return members


def _contradicts(written: Any, required: Any) -> bool:
    """Return whether a value differs from the required one; of two objects, only the members of both count."""
    if not (isinstance(written, dict) and isinstance(required, dict)):
        return written != required
    given = cast("dict[str, Any]", written)
    members = cast("dict[str, Any]", required)
    return any(name in given and given[name] != value for name, value in members.items())


def drop_parallel_setting(choice: ToolChoice, adaptation: Adaptation) -> ToolChoice:
    """Return the tool choice without the setting for parallel calls; one call at a time is requested in the prompt."""
    if choice.parallel is False:
        adaptation.ledger.report_approximated_field("tool_choice.parallel", "requested in the prompt")
        adaptation.instructions.append("Call at most one tool at a time.")
    return structs.replace(choice, parallel=None)


def find_server_edits(request: Request, document: Document, dialect: Dialect, adaptation: Adaptation) -> Edits:
    """Return the edits for what else the server refuses, and report each loss."""
    traits, ledger, edits = adaptation.traits, adaptation.ledger, Edits()
    if request.user is not None and not traits.user:
        ledger.report_dropped_field("user", _NO_FIELD)
        edits |= _remove(dialect.pointers["user"], document)
    fields = request.extras.fields if request.extras is not None else {}
    for pointer, field in dialect.shared_fields.items():
        if field == "tier" and not traits.tiers and pointer in fields:
            adapt_shared_value(pointer, fields[pointer], field, adaptation)
            edits[pointer] = None
    usual_fields = find_model_traits(dialect.name, adaptation.model).stream_fields
    edits |= _remove((field[0] for field in usual_fields if field not in traits.stream_fields), document)
    if request.output is not None and request.output.kind == "json_schema" and not traits.output_schema:
        adapt_output(request, adaptation)
        edits |= _remove(dialect.pointers["output"], document)
    return edits | _find_strict_edits(request, document, dialect, adaptation)


def _remove(pointers: Iterable[str], document: Document) -> Edits:
    """Return edits that remove those members that are in the document."""
    return {found[0]: None for pointer in pointers if (found := document.find(pointer)) is not None}


def _find_strict_edits(request: Request, document: Document, dialect: Dialect, adaptation: Adaptation) -> Edits:
    """Return edits that remove `strict` from tools, for a server that cannot enforce schemas."""
    edits = Edits()
    if not adaptation.traits.strict_tools:
        for tool in request.tools:
            if isinstance(tool, Tool) and tool.strict:
                where = tool.where + dialect.pointers["tool.strict"][0]
                adaptation.ledger.report_dropped(where, "the target cannot enforce the schema")
                edits |= _remove((where,), document)
    return edits


def find_thinking_leftovers(request: Request, adaptation: Adaptation) -> Edits:
    """Return the edits that remove what is left of thinking members whose settings were converted to others."""
    thinking, known, edits = request.thinking, _list_thinking_members(adaptation.traits), Edits()
    if thinking is None or thinking.extras is None:
        return edits
    converted = {name for name in _strip_slashes(thinking.extras.fields) if name not in known}
    below = {f"/{name}/" for name in converted}
    fields = request.extras.fields if request.extras is not None else {}
    for pointer in fields:
        if any(pointer.startswith(member) for member in below):
            adaptation.ledger.report_dropped(pointer, _NO_FIELD)
            edits[pointer] = None
    return edits


def find_message_edits(body: bytes, dialect: Dialect, adaptation: Adaptation) -> Edits:
    """Return the edits of the messages that the server would refuse, and report each loss."""
    edits = Edits()
    for change in dialect.edit_messages(body, adaptation.traits) if dialect.edit_messages is not None else ():
        if change.loss:
            adaptation.ledger.report_dropped(change.where, change.loss)
        edits[change.where] = change.raw
    return edits
