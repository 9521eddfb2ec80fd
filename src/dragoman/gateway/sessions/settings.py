"""The tools and other settings of a conversation, and what of them holds for a turn."""

from collections.abc import Mapping

from msgspec import Raw

from dragoman.core.request import Request, Tool
from dragoman.dialects.record import Call, Dialect
from dragoman.wire import json

Members = Mapping[str, Raw]
_TOOLS = "tools"


def member(members: Members, name: str) -> Raw | None:
    """Return a member by its name, which may be written in snake_case too."""
    found = members.get(name)
    return found if found is not None else members.get(_snake(name))


def in_force(sent: Members, kept: bytes, dialect: Dialect, *, has_results: bool) -> dict[str, Raw]:
    """Return the settings that hold for a turn: those it brings, and the kept ones that it does not replace.

    A kept choice that forces a call is not forced again on the turn that brings the call's result: that would never
    end. Neither is one that names a tool which is no longer there.
    """
    turns = dialect.turns
    stored = json.decode_object(kept)
    held = {name: raw for name in turns.settings if (raw := member(sent, name)) is not None}
    for name in turns.settings:
        if name not in held and name in stored:
            held[name] = stored[name]
    if (
        turns.choice in held
        and member(sent, turns.choice) is None
        and not _still_holds(held, dialect, has_results=has_results)
    ):
        del held[turns.choice]
    return held


def lasting(held: Members, sent: Members, kept: bytes, dialect: Dialect) -> bytes:
    """Return the settings to be kept: a choice that was only left out for this turn stays, its tool permitting."""
    turns = dialect.turns
    stored = json.decode_object(kept)
    choice = stored.get(turns.choice)
    if choice is None or turns.choice in held or member(sent, turns.choice) is not None:
        return json.encode(dict(held))
    again = {**held, turns.choice: choice}
    return json.encode(again if _still_holds(again, dialect, has_results=False) else dict(held))


def _still_holds(held: Members, dialect: Dialect, *, has_results: bool) -> bool:
    request = _read(held, dialect)
    choice = request.tool_choice
    if choice is None:
        return True
    named = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    if not request.tools or not named.issuperset(choice.names):
        return False
    return not (has_results and (choice.mode == "required" or choice.names))


def _read(held: Members, dialect: Dialect) -> Request:
    """Read settings as the dialect does, in a request that says nothing else."""
    body = {name: raw for name, raw in held.items() if name in {_TOOLS, dialect.turns.choice}}
    return dialect.parse_request(Call(json.encode({"model": "", dialect.history: [], **body})))


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name)
