"""Open models by name, as the gateway does: the same routes, retries and translation, without its server."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import cache

import msgspec
from msgspec import structs

from dragoman.agent import ModelEndpoint
from dragoman.agent.sources import OpenedModel
from dragoman.config import ANONYMOUS_NAME, Config, load, read_upstreams
from dragoman.core.events import Event
from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.gateway.context import build_program_context
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Record
from dragoman.server.agent_services import choose_default_model
from dragoman.server.services import open_gateway_services
from dragoman.upstreams.kind import UpstreamTable
from dragoman.upstreams.openai import CHAT_KIND
from dragoman.upstreams.registry import KINDS

_LOG = logging.getLogger("dragoman.library")
_ENDPOINT = "endpoint"
_SIMULATED = (
    "dragoman: no configuration and no API key found, so the simulator answers instead of a model. "
    "Set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, or write a dragoman.toml."
)


class LibraryModel:
    """A model for one run; its losses are those of all its calls."""

    def __init__(self, gateway: Gateway, default_model: str) -> None:
        self._record = Record(owner=ANONYMOUS_NAME)
        self._model = gateway.model(build_program_context(ANONYMOUS_NAME, self._record))
        self._default_model = default_model

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What was lost in requests and replies so far."""
        return tuple(dict.fromkeys(self._record.all_losses))

    async def __call__(self, request: Request) -> AsyncGenerator[Event]:
        """Yield the events of the reply to a request."""
        model = request.model or self._default_model
        if not model:
            raise Problem("invalid_request", "no model is configured: pass the name of one to Agent")
        async with aclosing(self._model(structs.replace(request, model=model))) as events:
            async for event in events:
                yield event


@asynccontextmanager
async def open_model(model: str | ModelEndpoint) -> AsyncGenerator[OpenedModel]:
    """Open the configured upstreams and the store while the block runs; yields a function that returns a model."""
    config = load() if isinstance(model, str) else _config_for(model)
    default = model if isinstance(model, str) else model.model
    if config.upstreams == read_upstreams({}):
        _warn_of_simulator()
    async with open_gateway_services(config) as services:
        yield lambda: LibraryModel(services.gateway, default or config.mcp.model or choose_default_model(config))


def _config_for(endpoint: ModelEndpoint) -> Config:
    """Return a configuration with one upstream; raises `Problem` if its kind or its options are not valid."""
    kind = endpoint.kind or CHAT_KIND.name
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise Problem("invalid_request", f"unknown kind {kind!r} of model endpoint; use one of {known}")
    settings = {"kind": kind, "base_url": endpoint.base_url, "api_key": endpoint.api_key}
    try:
        table = msgspec.convert({**endpoint.options, **settings}, UpstreamTable)
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"the options of the model endpoint are not valid: {error}") from None
    return Config(upstreams={_ENDPOINT: table})


@cache
def _warn_of_simulator() -> None:
    """Say once that no model answers; without a log handler, Python writes warnings to stderr."""
    _LOG.warning(_SIMULATED)
