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
from dragoman.interpreter.tool_errors import CALL_CODE, all_faults, is_about_call
from dragoman.interpreter.tool_faults import are_valid, tools_problem, unproven_bytes, wrong_choice
from dragoman.interpreter.tools_cache import NO_PROOFS, ToolSet
from dragoman.interpreter.translate import CACHES
from dragoman.wire import json

_LARGE = 16 << 10
"""Bytes of schemas above which they are validated beside the event loop."""


class _Inner(Struct):
    """What an envelope holds."""

    tools: Raw = Raw()


class _Held(_Inner):
    """Where the tools of a request stand: in it, or in what an envelope holds."""

    request: _Inner | None = None


_HELD = msgspec.json.Decoder(_Held)


def require_readable(call: Call, dialect: Dialect) -> None:
    """Refuse tools that nobody could read, in a request that passes in its own dialect."""
    try:
        held = _HELD.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return  # what is wrong with all of it is told where it is read
    raw, where = held.tools, "/tools"
    if not raw and held.request is not None:
        raw, where = held.request.tools, "/request/tools"
    tools = bytes(raw)
    if not tools or tools == b"null":
        return
    try:
        CACHES.tools.read(dialect, tools, where)
    except (json.Malformed, Problem):
        faults = all_faults(call, dialect)
        if faults:
            # Once it is refused here, the vendor has no say: all is told that it would have found as well.
            raise tools_problem(faults) from None


def is_validated(request: Request, tool_set: ToolSet | None) -> bool:
    """Tell whether the tools of a request were validated before, and its choice needs no look at them."""
    names = request.tool_choice.names if request.tool_choice is not None else ()
    return tool_set is not None and tool_set.is_valid and tool_set.tools is request.tools and not names


async def require_valid_tools(call: Call, dialect: Dialect, request: Request, tool_set: ToolSet | None = None) -> None:
    """Refuse tools that mean nothing to anybody, in a request that is translated."""
    tools = request.tools
    known = tool_set if tool_set is not None and tool_set.tools is tools else None
    valid = not tools or (known is not None and known.is_valid)
    if not valid:
        proofs = known.proofs if known is not None else NO_PROOFS
        beside = len(call.body) > _LARGE and unproven_bytes(tools, proofs) > _LARGE
        valid = await asyncio.to_thread(are_valid, tools, proofs) if beside else are_valid(tools, proofs)
        if known is not None:
            known.is_valid = valid
    faults = [] if valid else await asyncio.to_thread(all_faults, call, dialect)
    faults += wrong_choice(request)
    if faults:
        raise tools_problem(faults)


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
