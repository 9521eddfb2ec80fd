"""Where models, tools and saved conversations come from when they are named rather than passed.

This package cannot open a configuration, an upstream or a store itself. The package `dragoman.library` does, and is
imported by name when an agent first needs it.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from msgspec import Struct

from dragoman.agent.model import closing
from dragoman.agent.steps import Recorder
from dragoman.core.events import Event
from dragoman.core.losses import Loss
from dragoman.core.request import Message, Request
from dragoman.tools import Registry


class ModelEndpoint(Struct, frozen=True, kw_only=True):
    """A model at an address, used instead of a model name from the configuration."""

    base_url: str
    """The base URL, as for the vendor's own client."""
    model: str
    api_key: str = ""
    kind: str = ""
    """The kind of upstream, as in the configuration; "" for a server with OpenAI's Chat Completions API."""
    options: Mapping[str, Any] = {}
    """Other keys of an `[upstreams.NAME]` table, such as `first_byte`."""

    def __repr__(self) -> str:
        """Show everything but the key."""
        return f"<ModelEndpoint {self.model} at {self.base_url}>"


@runtime_checkable
class ModelClient(Protocol):
    """An object with the address and the key of a model server, such as a client of a vendor's SDK.

    A `model`, a `kind` and `options`, as `ModelEndpoint` has them, are read if it has them.
    """

    @property
    def base_url(self) -> object:
        """The base URL: a string, or an object whose `str()` is one."""
        ...

    @property
    def api_key(self) -> str | None:
        """The key; None or "" for a server without keys."""
        ...


@runtime_checkable
class ToolSource(Protocol):
    """Tools that are opened for a run, such as those of an MCP server."""

    def open_tools(self, registry: Registry) -> AbstractAsyncContextManager[object]:
        """Add the tools to a registry while the block runs."""
        ...


class SavedTurn(Protocol):
    """A turn of a conversation that is stored under a name; no other program continues it meanwhile."""

    @property
    def run_id(self) -> str:
        """The name under which the run is recorded."""
        ...

    @property
    def is_new(self) -> bool:
        """Whether the conversation was never saved."""
        ...

    @property
    def history(self) -> tuple[Message, ...]:
        """The messages before the turn."""
        ...

    @property
    def untrusted(self) -> bool:
        """Whether messages are missing from the history that may have had untrusted content."""
        ...

    @property
    def recorder(self) -> Recorder:
        """Records the run while it runs."""
        ...

    async def save(self, history: tuple[Message, ...], model: str) -> None:
        """Save the conversation after the turn."""
        ...


class ReportingModel(Protocol):
    """A model that reports what its translations lost."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The losses of all calls so far."""
        ...

    def __call__(self, request: Request) -> AsyncIterator[Event]:
        """Yield the events of the reply to a request."""
        ...


OpenedModel = Callable[[], ReportingModel]
"""Returns an open model for one run."""


class Library(Protocol):
    """What `dragoman.library` offers."""

    def open_model(self, model: str | ModelClient) -> AbstractAsyncContextManager[OpenedModel]:
        """Open a model while the block runs; it is also used for requests that name no model."""
        ...

    def open_turn(self, name: str) -> AbstractAsyncContextManager[SavedTurn]:
        """Start a turn of the conversation with a name; the turn ends with the block."""
        ...


class NamedModel:
    """A model by its name or address. As a function it is opened for each request; an agent opens it for each run."""

    def __init__(self, model: str | ModelClient) -> None:
        self._model = model
        self.name = model if isinstance(model, str) else find_model_name(model)

    def __repr__(self) -> str:
        return f"<NamedModel {self.name}>"

    def open(self) -> AbstractAsyncContextManager[OpenedModel]:
        """Open the model while the block runs."""
        return load_library().open_model(self._model)

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the events of the reply to a request."""
        async with self.open() as new_model, closing(new_model()(request)) as events:
            async for event in events:
                yield event


def find_model_name(client: ModelClient) -> str:
    """Return the name of the model that a client is for; "" if it has none."""
    name = getattr(client, "model", "")
    return name if isinstance(name, str) else ""


def load_library() -> Library:
    """Import the package that opens models and conversations by name."""
    # By name: this package is below that one, and most users of the loop pass a function and never need it.
    return cast("Library", import_module("dragoman.library"))
