"""Find every error in the definitions of tools that cannot be read together, each with its pointer.

Tools are read one by one, so that each error is reported and not only the first.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct, structs

from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.schema.faults import Fault
from dragoman.interpreter.tool_faults import faults_of, twice
from dragoman.wire import json
from dragoman.wire.lookup import Document, lookup
from dragoman.wire.pointer import split


def faults_in(tool: AnyTool, ledger: Ledger) -> list[Fault]:
    """Return what is wrong with one tool, by places in the document that `ledger` looks into."""
    base = ledger.place("tool.parameters", tool)
    return [(base + at if in_schema else tool.where + at, words) for at, words, in_schema in faults_of(tool)]


_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Members of a tool that hold several of the caller's."""


_MISSING = re.compile(r"missing required field `(\w+)`")


_MOST_IN_ONE = 20


_ANY_NAME = "unnamed"


class _Alone(Struct, frozen=True):
    """One tool as the only one of a request."""

    where: str
    """Where it stands in the caller's document."""
    here: str
    """Where it stands as the only one."""
    member: str
    """The member of the request that holds it."""
    tool: Any

    def place(self, where: str) -> str:
        """Return a place in it as one in the caller's document."""
        return self.where + where.removeprefix(self.here)


def all_faults(call: Call, dialect: Dialect) -> list[Fault]:
    """Return all that is wrong with the tools of a request."""
    faults: list[Fault] = []
    tools: list[AnyTool] = []
    for alone in _each(call.body, dialect):
        unread, read, ledger = _read(alone, dialect)
        found = [*unread, *(fault for tool in read for fault in faults_in(tool, ledger))]
        faults += [(alone.place(at), words) for at, words in found]
        if not unread:
            tools += [structs.replace(tool, where=alone.place(tool.where)) for tool in read]
    document = Document(call.body)
    exact = ((document.find(where), where, words) for where, words in faults)
    return [*((found[0] if found else where, words) for found, where, words in exact), *twice(tuple(tools))]


def _each(body: bytes, dialect: Dialect) -> Iterator[_Alone]:
    for candidate in dialect.pointers["tools"]:
        found = lookup(body, candidate)
        if found is None:
            continue
        place, raw = found
        member = split(place)[-1]
        tools = json.peek(raw)
        if not isinstance(tools, list):
            if tools is not None:
                yield _Alone(place, f"/{member}", member, tools)
            continue
        for index, tool in enumerate(cast("list[Any]", tools)):
            yield from _apart(tool, f"{place}/{index}", member)


def _apart(tool: Any, where: str, member: str) -> Iterator[_Alone]:
    members = cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    group = next((name for name in _GROUPS if isinstance(members.get(name), list) and members[name]), None)
    if group is None:
        yield _Alone(where, f"/{member}/0", member, [tool])
        return
    for index, one in enumerate(members[group]):
        yield _Alone(f"{where}/{group}/{index}", f"/{member}/0/{group}/0", member, [{**members, group: [one]}])


def _read(alone: _Alone, dialect: Dialect) -> tuple[list[Fault], tuple[AnyTool, ...], Ledger]:
    """Return what cannot be read of a tool, the tool without that, and what tells the places of its fields."""
    faults: list[Fault] = []
    document: dict[str, Any] = {"model": "any", dialect.history: [], alone.member: alone.tool}
    while len(faults) < _MOST_IN_ONE:
        body = json.encode(document)
        try:
            request = dialect.parse_request(Call(body, "any"))
        except Problem as problem:
            missing = _MISSING.search(problem.message)
            where = f"{problem.where}/{missing[1]}" if missing is not None else problem.where
            faults.append((where, problem.message))
            if not where.startswith(f"/{alone.member}") or not _mend(document, where):
                break
        else:
            return faults, request.tools, Ledger(dialect.pointers, body)
    return faults, (), Ledger(dialect.pointers)


def _mend(document: Any, where: str) -> bool:
    """Put a name where one must stand, and take out what else is wrong; tell whether anything changed."""
    *above, last = split(where)
    value: Any = document
    for token in above:
        if isinstance(value, list):
            items = cast("list[Any]", value)
            value = items[int(token)] if token.isdecimal() and int(token) < len(items) else None
        else:
            value = cast("dict[str, Any]", value).get(token) if isinstance(value, dict) else None
    if isinstance(value, list) and last.isdecimal() and int(last) < len(cast("list[Any]", value)):
        del value[int(last)]
        return True
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    if last == "name" and members.get(last) != _ANY_NAME:
        members[last] = _ANY_NAME
        return True
    return members.pop(last, None) is not None
