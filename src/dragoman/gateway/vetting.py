"""Look at the tools of a request before an upstream is asked: all that is wrong with them is told at once.

A request that is translated must have tools that mean something. One that passes in its own dialect is judged by the
vendor itself, which knows best what it takes: only what nobody could read is refused here.
"""

import asyncio

import msgspec
from msgspec import Raw, Struct

from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.record import Call, Dialect
from dragoman.interpreter.rejections import CALL_CODE, is_about_call
from dragoman.interpreter.tool_faults import are_fine, tools_problem, unseen, wrong_choice
from dragoman.interpreter.tools_apart import all_faults, unreadable

_LARGE = 16 << 10
"""Bytes of schemas above which they are looked at beside the event loop."""
_MOST_KNOWN = 4096
_READABLE_TOOLS = "readable tools"
_MEANINGFUL_TOOLS = "meaningful tools"
_READABLE: dict[int, None] = {}
"""How tools hash, with their dialect, that could be read: what one dialect reads another may not."""


class _Inner(Struct):
    """What an envelope holds."""

    tools: Raw = Raw()


class _Held(_Inner):
    """Where the tools of a request stand: in it, or in what an envelope holds."""

    request: _Inner | None = None


_HELD = msgspec.json.Decoder(_Held)


def require_readable(call: Call, dialect: Dialect) -> None:
    """Refuse tools that nobody could read, in a request that passes in its own dialect."""
    if _is_known(call, _READABLE_TOOLS, dialect):
        return
    try:
        held = _HELD.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # what is wrong with all of it is told where it is read
    found = bytes(held.tools) or (bytes(held.request.tools) if held.request is not None else b"")
    mark = hash((dialect.name, found))
    if found and mark not in _READABLE:
        if unreadable(call, dialect):
            # Once it is refused here, the vendor has no say: all is told that it would have found as well.
            raise tools_problem(all_faults(call, dialect))
        if len(_READABLE) >= _MOST_KNOWN:
            _READABLE.clear()
        _READABLE[mark] = None
    _know(call, _READABLE_TOOLS, dialect)


def is_known_to_mean(call: Call, dialect: Dialect) -> bool:
    """Tell whether the tools of a request came before, among the same settings, and were found to mean something."""
    return _is_known(call, _MEANINGFUL_TOOLS, dialect)


async def require_meaningful(call: Call, dialect: Dialect, request: Request) -> None:
    """Refuse tools that mean nothing to anybody, in a request that is translated."""
    tools = request.tools
    beside = len(call.body) > _LARGE and unseen(tools) > _LARGE
    fine = await asyncio.to_thread(are_fine, tools) if beside else are_fine(tools)
    faults = [] if fine else await asyncio.to_thread(all_faults, call, dialect)
    faults += wrong_choice(request)
    if faults:
        raise tools_problem(faults)
    _know(call, _MEANINGFUL_TOOLS, dialect)


def _is_known(call: Call, what: str, dialect: Dialect) -> bool:
    """Tell whether something was found of what stands around the history of a request, when it came before."""
    around = call.around
    return around is not None and (what, dialect.name) in around.made


def _know(call: Call, what: str, dialect: Dialect) -> None:
    if call.around is not None:
        call.around.keep((what, dialect.name), None)


def explained(problem: Problem, call: Call, dialect: Dialect) -> Problem:
    """Tell all that is wrong with the tools where one of them cannot be read, and what is about a call as such."""
    if problem.kind != "invalid_request" or problem.code is not None or not problem.where:
        return problem
    if any(problem.where.startswith(place) for place in dialect.pointers["tools"]):
        faults = all_faults(call, dialect)
        return tools_problem(faults) if faults else problem
    if is_about_call(call.body, problem.where):
        return Problem("invalid_request", problem.message, where=problem.where, code=CALL_CODE)
    return problem
