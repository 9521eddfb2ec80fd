"""The context of a call for the function that runs it: dependencies of the program, and progress reports.

A parameter annotated with `RunContext[Database]` is not part of the schema. It gets the dependency of that type among
those that the run was started with, and is checked before the model is called.
"""

from collections.abc import Iterable
from types import UnionType
from typing import TYPE_CHECKING, Any, Generic, get_args, get_origin

from dragoman.core.parts import ToolCall
from dragoman.tools.handler import Handler, Invocation, ToolDefinitionError, invocation, reporter

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    DepsT = TypeVar("DepsT", default=None)
else:
    from typing import TypeVar

    DepsT = TypeVar("DepsT")


class RunContext(Generic[DepsT]):
    """The call that a tool runs for, and the dependency of its type."""

    def __init__(self, deps: DepsT, current: Invocation) -> None:
        self.deps = deps
        self._invocation = current

    @property
    def call(self) -> ToolCall:
        """The call of the model."""
        return self._invocation.call

    @property
    def key(self) -> str:
        """The idempotency key of the call; "" if it has none."""
        return self._invocation.key

    def report(self, done: float, total: float | None = None, message: str = "") -> None:
        """Report progress, if anyone listens."""
        send = reporter()
        if send is not None:
            send(done, total, message)


def context_type_of(annotation: Any) -> Any:
    """Return the type of the dependency that a context parameter needs, None if it needs none.

    For an annotation that is not a context it returns `...`.
    """
    if annotation is RunContext:
        return None
    return get_args(annotation)[0] if get_origin(annotation) is RunContext else ...


def _class_of(kind: Any) -> Any:
    """Return what `isinstance` takes for a type: `list` for `list[int]`."""
    origin = get_origin(kind)
    return origin if isinstance(origin, type) and origin is not UnionType else kind


def find_dependency(kind: Any, deps: Iterable[Any]) -> Any:
    """Return the dependency of a type, an exact match first; raises `LookupError` if there is none."""
    if kind is None or kind is type(None):
        return None
    if kind is Any:
        return next(iter(deps), None)
    given = tuple(deps)
    target = _class_of(kind)
    for each in given:
        if type(each) is target:
            return each
    for each in given:
        if isinstance(each, target):
            return each
    raise LookupError(getattr(kind, "__name__", str(kind)))


def check_context_type(kind: Any) -> None:
    """Raise `ToolDefinitionError` if no value can be recognised as one of this type."""
    if kind in (None, Any):
        return
    try:
        isinstance(None, _class_of(kind))
    except TypeError as error:
        raise ToolDefinitionError(f"RunContext[{kind}] cannot be matched with a dependency: {error}") from None


def check_dependencies(handlers: Iterable[Handler], deps: Iterable[Any]) -> None:
    """Raise `TypeError` if a tool needs a dependency that is not given."""
    given = tuple(deps)
    for handler in handlers:
        contexts: dict[str, Any] = getattr(handler, "contexts", {})
        for parameter, kind in contexts.items():
            try:
                find_dependency(kind, given)
            except LookupError as error:
                needed = f"parameter {parameter!r} of tool {handler.name!r} needs a {error.args[0]}"
                raise TypeError(f"{needed}: pass one with deps=") from None


def build_context(kind: Any) -> RunContext[Any]:
    """Return the context of the current call."""
    current = invocation() or Invocation(ToolCall(id="", name="", arguments=""))
    return RunContext(find_dependency(kind, current.deps), current)
