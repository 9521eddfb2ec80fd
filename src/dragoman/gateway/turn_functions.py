"""Functions that the gateway runs itself in the middle of a reply, for a target that lacks what the client declared.

A provider prepares the client's request for one purpose, such as a web search: it replaces the declaration by functions
that any model can call. `agents/turn_runner.py` runs them in the agent loop.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.request import Request
from dragoman.core.response import Usage
from dragoman.gateway.client_request import ClientRequest
from dragoman.tools import Execution, Handler
from dragoman.tools.handler import list_client_tools


def _render_nothing(_call: ToolCall) -> Iterable[AnyPart]:
    return ()


def _count_nothing(_execution: Execution) -> Usage:
    return Usage()


class TurnFunction(Struct, frozen=True, kw_only=True):
    """A function that the model can call, and the parts of the reply that the client gets for a call of it."""

    handler: Handler
    render_result: Callable[[ToolCall, Execution], Iterable[AnyPart]]
    """Returns the client's parts for a call that has its result, also if it failed or was refused."""
    render_call: Callable[[ToolCall], Iterable[AnyPart]] = _render_nothing
    """Returns the client's parts for a call that starts; a refused call does not."""
    count_usage: Callable[[Execution], Usage] = _count_nothing
    """Returns what a call adds to the usage of the reply."""


def _keep_request(request: Request) -> Request:
    return request


class PreparedRequest(Struct, frozen=True, kw_only=True):
    """A client's request that a model without the declared tool can answer, with functions of the gateway."""

    request: Request
    """It declares all tools that the client runs, so that calls of them are left to the client."""
    functions: tuple[TurnFunction, ...]
    losses: tuple[Loss, ...] = ()
    shape_request: Callable[[Request], Request] = _keep_request
    """Changes each request to the model before it is sent, for example leaves out tools that were not found yet."""


class FunctionProvider(Protocol):
    """Prepares requests for one purpose."""

    def prepare(self, request: Request, client_request: ClientRequest) -> PreparedRequest:
        """Return the request for the model; `request` may have been prepared for another purpose."""
        ...


def prepare_request(
    providers: Mapping[str, FunctionProvider], purposes: Iterable[str], request: Request, client_request: ClientRequest
) -> PreparedRequest:
    """Prepare a request for several purposes, in the order of the providers."""
    prepared = PreparedRequest(request=request, functions=())
    wanted = frozenset(purposes)
    for purpose, provider in providers.items():
        if purpose in wanted:
            prepared = _add(prepared, provider.prepare(prepared.request, client_request))
    return prepared


def _add(first: PreparedRequest, second: PreparedRequest) -> PreparedRequest:
    def shape_request(request: Request) -> Request:
        return second.shape_request(first.shape_request(request))

    return structs.replace(
        second,
        functions=(*first.functions, *second.functions),
        losses=(*first.losses, *second.losses),
        shape_request=shape_request,
    )


def choose_name(name: str, request: Request) -> str:
    """Return `name`, or if a tool of the client has that name, one that is free."""
    taken = list_client_tools(request)
    candidates = (name, *(f"{name}_{number}" for number in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)
