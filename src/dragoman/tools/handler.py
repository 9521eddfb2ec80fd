"""A tool that can be run: what a model is told of it, what runs it, and how it may be run.

Rules: a handler is a value and holds nothing between calls. `run` takes the arguments of one call as a JSON value (a
text for a tool of form "text"), or what `convert` makes of them, and returns anything that `results` can tell a model.
"""

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self, TypedDict

from msgspec import Struct, structs

from dragoman.core.parts import ToolCall
from dragoman.core.request import Tool

NAMESPACE_SEPARATOR = "__"
"""Stands between a namespace and a name."""


def qualify_name(namespace: str, name: str) -> str:
    """Return a name within its namespace."""
    return f"{namespace}{NAMESPACE_SEPARATOR}{name}" if namespace else name


class ToolDefinitionError(ValueError):
    """A tool cannot be offered as it is; the message says why, and what to do."""


class ToolFailure(Exception):  # noqa: N818  not an error of the program: the tool's own word for "I could not"
    """Raised by a tool to tell the model, in just these words, why it could not do what was asked."""


class Flags(TypedDict, total=False):
    """How a tool may be run; `Handler` says what each means."""

    timeout: float | None
    sequential: bool
    side_effects: bool
    untrusted: bool
    sends_out: bool
    destination: str
    max_output: int | None


class Handler(Struct, frozen=True, kw_only=True):
    """A definition and its executor. A coroutine function runs on the event loop, any other in a thread."""

    definition: Tool
    run: Callable[[Any], Any]
    convert: Callable[[Any], Any] | None = None
    """Makes of valid arguments what `run` takes; a `ValueError` says what is wrong with them."""
    timeout: float | None = None
    """Seconds a call may take; None for the executor's own, `math.inf` for no end."""
    sequential: bool = False
    """A call runs alone among the calls it came with: after those before it, before those after it."""
    side_effects: bool = False
    """It changes something: a call with an idempotency key is run once, and its result remembered."""
    untrusted: bool = False
    """What it returns may have been written by anybody: a page, a mail, somebody else's server."""
    sends_out: bool = False
    """It can carry data to a place outside."""
    destination: str = ""
    """The argument that holds the address it goes to, a URL or a list of them; "" if that cannot be told."""
    max_output: int | None = None
    """Bytes of text and JSON a model is given of one result; None for the executor's own."""

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ToolDefinitionError(f"tool {self.name!r}: a timeout must be more than 0 seconds, not {self.timeout}")
        if self.max_output is not None and self.max_output < 0:
            raise ToolDefinitionError(f"tool {self.name!r}: max_output must not be less than 0")

    @property
    def name(self) -> str:
        """The name it is called by; a namespace of a dialect that has them stands before it."""
        return qualify_name(self.definition.namespace, self.definition.name)

    @property
    def is_async(self) -> bool:
        """Tell whether `run` is a coroutine function, which needs no thread."""
        return is_async(self.run)

    def with_name(self, name: str) -> Self:
        """Return the same tool under another name."""
        return structs.replace(self, definition=structs.replace(self.definition, name=name, namespace=""))

    def __repr__(self) -> str:
        flags = [word for word in ("sequential", "side_effects", "untrusted", "sends_out") if getattr(self, word)]
        limits = [f"{word}={value}" for word in ("timeout", "max_output") if (value := getattr(self, word)) is not None]
        return " ".join((f"<tool {self.name}", *flags, *limits)) + ">"


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling makes a coroutine, of a function or of an object that is called like one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  its form is asked for, not whether it is there


class Invocation(Struct, frozen=True):
    """The call a tool is being run for."""

    call: ToolCall
    key: str = ""
    """The idempotency key, to hand on to whatever the tool changes; "" when the caller gave none."""
    depth: int = 0
    """How many tools wait for this one."""
    untainted: bool = False
    """No stranger can have had a word in it: nothing untrusted was read before, or the user wrote its address."""
    owner: str = ""
    """Whom it is run for: what a tool keeps for one is nobody else's."""


_INVOCATION: ContextVar[Invocation | None] = ContextVar("dragoman_tool_invocation", default=None)


def invocation() -> Invocation | None:
    """Return the call for which this code is being run; None outside a tool."""
    return _INVOCATION.get()


def enter_invocation(current: Invocation) -> None:
    """Mark the context of a task or a thread as running for a call."""
    _INVOCATION.set(current)
