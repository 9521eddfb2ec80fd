"""Open models by name, as the gateway does: the same routes, retries and translation, without its server."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import cache

import msgspec
from msgspec import structs

from dragoman.agent.sources import ModelClient, OpenedModel, find_model_name
from dragoman.config import ANONYMOUS_NAME, Config, load, read_upstreams
from dragoman.core.events import Event
from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.gateway.context import build_program_context
from dragoman.gateway.generate import Gateway
from dragoman.gateway.record import Record
from dragoman.gateway.router import default_model
from dragoman.server.agent_services import choose_default_model
from dragoman.server.services import open_storeless_gateway
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
            raise Problem("invalid_request", "no model is named: pass the name of one to Agent, or model= to the run")
        async with aclosing(self._model(structs.replace(request, model=model))) as events:
            async for event in events:
                yield event


@asynccontextmanager
async def open_model(model: str | ModelClient) -> AsyncGenerator[OpenedModel]:
    """Open the configured upstreams while the block runs; yields a function that returns a model.

    No store is opened: the history of an agent has the signatures of its calls, so a run writes nothing to the disk.
    """
    if isinstance(model, str):
        config = load()
        default = model or config.mcp.model or choose_default_model(config)
        if config.upstreams == read_upstreams({}):
            _warn_of_simulator()
    else:
        table = _table_for(model)
        config, default = Config(upstreams={_ENDPOINT: table}), find_model_name(model) or _find_default_model(table)
    async with open_storeless_gateway(config) as gateway:
        yield lambda: LibraryModel(gateway, default)


def _table_for(client: ModelClient) -> UpstreamTable:
    """Return the settings of an upstream; raises `Problem` if the kind, the options or the key are not valid."""
    kind = getattr(client, "kind", "") or _find_kind(client)
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise Problem("invalid_request", f"unknown kind {kind!r} of model endpoint; use one of {known}")
    base_url = str(client.base_url).rstrip("/")
    settings = {"kind": kind, "base_url": base_url, "api_key": client.api_key or ""}
    try:
        return msgspec.convert({**getattr(client, "options", {}), **settings}, UpstreamTable)
    except (msgspec.ValidationError, TypeError) as error:
        raise Problem("invalid_request", f"the options of the model endpoint are not valid: {error}") from None


def _find_kind(client: ModelClient) -> str:
    """Return the kind that has the name of the SDK that a client is from, else OpenAI's Chat Completions."""
    package = type(client).__module__.partition(".")[0]
    return package if package in KINDS else CHAT_KIND.name


def _find_default_model(table: UpstreamTable) -> str:
    """Return the default model of a vendor's own server; "" for any other server, whose models are unknown."""
    return f"{_ENDPOINT}/{default_model(table.kind)}" if KINDS[table.kind].is_vendors_server(table) else ""


@cache
def _warn_of_simulator() -> None:
    """Say once that no model answers; without a log handler, Python writes warnings to stderr."""
    _LOG.warning(_SIMULATED)
