"""A tool handler: the definition that is sent to the model, the function that runs a call, and execution settings.

A handler is an immutable value without state between calls. `run` takes the arguments of one call as a JSON value (a
string for a tool with form "text"), or the return value of `convert`, and returns any value that `results.parse_output`
can convert into a tool result.

Progress of a running call is reported to a listener. Both sides are optional: a tool need not report and a caller need
not listen. The listener is a context variable, as the current call is, so it receives only the progress of calls that
started in its context. Its exceptions are logged and do not reach the tool.
"""

import inspect
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypedDict

from msgspec import Struct, structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import NativeTool, Request, Tool
from dragoman.guard import attempt

NAMESPACE_SEPARATOR = "__"
"""Separates a namespace and a tool name."""


def qualify_name(namespace: str, name: str) -> str:
    """Return `namespace__name`, or the name alone without a namespace."""
    return f"{namespace}{NAMESPACE_SEPARATOR}{name}" if namespace else name


def list_client_tools(request: Request) -> frozenset[str]:
    """Return the names of the tools that a request declares and the client runs, its vendor's own among them."""
    functions = (qualify_name(tool.namespace, tool.name) for tool in request.tools if isinstance(tool, Tool))
    natives = (name for tool in request.tools if isinstance(tool, NativeTool) for name in tool.calls)
    return frozenset((*functions, *natives))


class ToolDefinitionError(ValueError):
    """The definition of a tool is invalid; the message says why and what to do."""


class ToolFailure(Exception):  # noqa: N818  not a program error: an expected failure that the tool reports
    """Raised by a tool that could not do its work; the model receives the message unchanged."""


class Flags(TypedDict, total=False):
    """Execution settings of a tool; the fields of `Handler` document each of them."""

    timeout: float | None
    sequential: bool
    side_effects: bool
    untrusted: bool
    sends_out: bool
    destination: str
    max_output: int | None


class Handler(Struct, frozen=True, kw_only=True):
    """A tool definition and the function that runs it: on the event loop if it is async, else in a thread."""

    definition: Tool
    run: Callable[[Any], Any]
    convert: Callable[[Any], Any] | None = None
    """Converts valid arguments to the input of `run`; raises `ValueError` for arguments it does not accept."""
    timeout: float | None = None
    """Timeout of a call in seconds; None for the executor's default, `math.inf` for no timeout."""
    sequential: bool = False
    """Do not run a call concurrently with the other calls of its turn: it runs after those before it, and those after
    it wait."""
    side_effects: bool = False
    """The tool changes state: a call with an idempotency key is run once and its result is cached."""
    untrusted: bool = False
    """The output may contain text of third parties: a web page, an e-mail, the response of an external server."""
    sends_out: bool = False
    """The tool can send data to an external destination."""
    destination: str = ""
    """Name of the argument with the destination, a URL or a list of URLs; "" if no argument has it."""
    max_output: int | None = None
    """Maximum bytes of text and JSON of one result that the model receives; None for the executor's default."""

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ToolDefinitionError(f"tool {self.name!r}: timeout must be greater than 0 seconds, not {self.timeout}")
        if self.max_output is not None and self.max_output < 0:
            raise ToolDefinitionError(f"tool {self.name!r}: max_output must not be negative")

    @property
    def name(self) -> str:
        """The name that calls use, with the namespace of the definition before it, if it has one."""
        return qualify_name(self.definition.namespace, self.definition.name)

    @property
    def is_async(self) -> bool:
        """Whether `run` is a coroutine function, which needs no thread."""
        return is_async(self.run)

    def with_name(self, name: str) -> Self:
        """Return the same handler with another name and without a namespace."""
        return structs.replace(self, definition=structs.replace(self.definition, name=name, namespace=""))

    def __repr__(self) -> str:
        flags = [word for word in ("sequential", "side_effects", "untrusted", "sends_out") if getattr(self, word)]
        limits = [f"{word}={value}" for word in ("timeout", "max_output") if (value := getattr(self, word)) is not None]
        return " ".join((f"<tool {self.name}", *flags, *limits)) + ">"


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether a function, or an object with `__call__`, returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  checks whether `__call__` is async, not whether it exists


class Invocation(Struct, frozen=True):
    """The tool call that is being run, with its execution context."""

    call: ToolCall
    key: str = ""
    """The idempotency key, for the tool to pass on to the system that it changes; "" if the caller gave none."""
    depth: int = 0
    """Nesting depth: how many outer tools wait for this call."""
    untainted: bool = False
    """Third parties cannot have influenced the call: no untrusted output was read before, or the user wrote its URL."""
    owner: str = ""
    """The caller that the call is run for; data that a tool stores for one owner is not visible to others."""
    deps: tuple[Any, ...] = ()
    """The dependencies of the run, which tools get through a `RunContext` parameter."""


_INVOCATION: ContextVar[Invocation | None] = ContextVar("dragoman_tool_invocation", default=None)


def invocation() -> Invocation | None:
    """Return the call that the current code runs for; None outside a tool."""
    return _INVOCATION.get()


def enter_invocation(current: Invocation) -> None:
    """Set the current call in the context of this task or thread."""
    _INVOCATION.set(current)


_LOG = logging.getLogger("dragoman.tools")


class Progress(Struct, frozen=True):
    """One progress report of a running call."""

    call: ToolCall
    done: float
    """The work done so far; it grows with each report."""
    total: float | None = None
    """The value of `done` at the end, if known."""
    message: str = ""


Listener = Callable[[Progress], None]
Report = Callable[[float, float | None, str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("dragoman_tool_progress", default=None)


@contextmanager
def progress_to(listener: Listener) -> Generator[None]:
    """Send the progress of all calls that run in this block to a listener, in the task or thread of the tool."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def reporter() -> Report | None:
    """Return a function that reports progress of the current call; None if no listener is set or outside a tool.

    The function may be called later and from another thread or task: it holds its call.
    """
    listener, current = _LISTENER.get(), invocation()
    if listener is None or current is None:
        return None

    def report(done: float, total: float | None = None, message: str = "") -> None:
        notified = attempt(listener, Progress(current.call, done, total, message))
        if notified.error is not None:  # a failing listener must not break the tool
            _LOG.error("the progress listener failed", exc_info=notified.error)

    return report
