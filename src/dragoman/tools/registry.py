"""The registry of tools by name.

A name belongs to one tool; registering a second tool with that name is an error and never replaces the first. A tool is
validated when it is registered, so that no tool is offered to a model that could not be called.
"""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, ParamSpec, TypeVar, overload

from dragoman.core.parts import ToolCall
from dragoman.core.request import Tool
from dragoman.interpreter.schema.validation import MAX_TOOL_NAME_LENGTH, TOOL_NAME
from dragoman.tools.arguments import compile_parameters
from dragoman.tools.handler import NAMESPACE_SEPARATOR, Handler, ToolDefinitionError, qualify_name
from dragoman.tools.signature import FunctionTool, tool

H = TypeVar("H", bound=Handler)
P = ParamSpec("P")
R = TypeVar("R")
_MAX_CANDIDATES = 3


class Registry:
    """A set of tools with unique names."""

    def __init__(self, *tools: Handler | Callable[..., Any]) -> None:
        self._handlers: dict[str, Handler] = {}
        for each in tools:
            self.register(each)

    @property
    def handlers(self) -> dict[str, Handler]:
        """The current tools by name; a change replaces this dict and never modifies it."""
        return self._handlers

    @overload
    def register(self, new: H, namespace: str = "") -> H: ...
    @overload
    def register(self, new: Callable[P, R], namespace: str = "") -> FunctionTool[P, R]: ...
    def register(self, new: Handler | Callable[..., Any], namespace: str = "") -> Handler:
        """Register a tool, or a typed function as a tool; with a namespace its name is `namespace__name`.

        Used as a decorator, it registers the function below it.
        """
        handler = new if isinstance(new, Handler) else tool(new)
        if namespace:
            handler = handler.with_name(qualify_name(namespace, handler.name))
        self.exchange((), (handler,))
        return handler

    def exchange(self, names: Iterable[str], handlers: Iterable[Handler]) -> None:
        """Remove tools and append others atomically: other threads see either the old tools or the new ones.

        If one of the new tools is invalid, nothing is changed.
        """
        gone = frozenset(names)
        kept = {name: handler for name, handler in self.handlers.items() if name not in gone}
        for handler in handlers:
            _require_usable(handler.name, handler.definition)
            if handler.name in kept:
                raise ToolDefinitionError(
                    f"a tool named {handler.name!r} is already registered: unregister it first, or use a namespace"
                )
            kept[handler.name] = handler
        # A new dict: an iteration in another thread continues over the old one.
        self._handlers = kept

    def unregister(self, name: str) -> Handler:
        """Remove a tool and return it; raises `KeyError` if no tool has that name."""
        handler = self.handlers.get(name)
        if handler is None:
            raise KeyError(f"no tool is named {name!r}")
        self.exchange((name,), ())
        return handler

    def unregister_namespace(self, namespace: str) -> tuple[Handler, ...]:
        """Remove all tools of a namespace and return them."""
        return tuple(
            self.unregister(name) for name in self.names if name.startswith(f"{namespace}{NAMESPACE_SEPARATOR}")
        )

    def subset(self, names: Iterable[str]) -> "Registry":
        """Return a registry with a copy of some of the current tools."""
        some = Registry()
        now = self.handlers
        some._handlers = {name: now[name] for name in names if name in now}
        return some

    def select(self, choose: Callable[[], Iterable[str]]) -> "Registry":
        """Return a live view of some of these tools; `choose` is called again when this registry changes."""
        return _Selection(self, choose)

    def has(self, name: str) -> bool:
        """Return whether a tool with that name is registered."""
        return name in self.handlers

    def get(self, name: str) -> Handler | None:
        """Return the tool with that name, or None."""
        return self.handlers.get(name)

    def find(self, call: ToolCall) -> Handler | None:
        """Return the tool of a call, or None; a dialect with namespaces may send namespace and name separately."""
        return self.handlers.get(qualify_name(call.namespace, call.name))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, in the order they were registered."""
        return tuple(self.handlers)

    @property
    def definitions(self) -> tuple[Tool, ...]:
        """The definitions that are sent to the model; `dragoman.tools_to` renders them in each dialect."""
        return tuple(handler.definition for handler in self.handlers.values())

    def nearest(self, name: str) -> tuple[str, ...]:
        """Return the few names closest to `name`, best first, compared with and without the namespace."""
        by_letters: dict[str, list[str]] = {}
        for known in self.handlers:
            for form in (known, known.rpartition(NAMESPACE_SEPARATOR)[2]):
                by_letters.setdefault(form.casefold(), []).append(known)
        wanted = name[:MAX_TOOL_NAME_LENGTH].casefold()
        forms = [form for form in (wanted, wanted.rpartition(NAMESPACE_SEPARATOR)[2]) if form]
        close = [match for form in forms for match in get_close_matches(form, by_letters, _MAX_CANDIDATES)]
        found = dict.fromkeys(known for match in close for known in by_letters[match])
        return tuple(found)[:_MAX_CANDIDATES]

    def __contains__(self, name: object) -> bool:
        return name in self.handlers

    def __iter__(self) -> Iterator[Handler]:
        return iter(self.handlers.values())

    def __len__(self) -> int:
        return len(self.handlers)

    def __repr__(self) -> str:
        count = "1 tool" if len(self) == 1 else f"{len(self)} tools"
        return f"<Registry of {count}{': ' if len(self) else ''}{', '.join(self.names)}>"


class _Selection(Registry):
    """A live view of some tools of another registry."""

    def __init__(self, source: Registry, choose: Callable[[], Iterable[str]]) -> None:
        super().__init__()
        self._source, self._choose = source, choose
        self._seen: dict[str, Handler] | None = None

    @property
    def handlers(self) -> dict[str, Handler]:
        """The tools that are selected at present."""
        whole = self._source.handlers
        # The selection changes only when the source registry does.
        if self._seen is not whole:
            self._seen = whole
            self._handlers = {name: whole[name] for name in self._choose() if name in whole}
        return self._handlers

    def exchange(self, names: Iterable[str], handlers: Iterable[Handler]) -> None:
        """Raise `TypeError`: a view cannot be changed."""
        del names, handlers
        raise TypeError("this registry is a view of another one: change the source registry instead")


def _require_usable(name: str, definition: Tool) -> None:
    if not TOOL_NAME.fullmatch(name) or len(name) > MAX_TOOL_NAME_LENGTH:
        raise ToolDefinitionError(
            f"{name!r} is not a valid tool name: use 1 to {MAX_TOOL_NAME_LENGTH} letters, digits and _ . : / -"
        )
    if definition.openapi:
        raise ToolDefinitionError(
            f"tool {name!r}: its parameters are in Google's OpenAPI format; pass them as JSON Schema"
        )
    if definition.form == "json" and definition.parameters is not None:
        try:
            compile_parameters(definition.parameters)
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"tool {name!r}: {error}") from None
