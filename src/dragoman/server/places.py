"""Make the upstreams that a configuration names."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from dragoman import __version__
from dragoman.config import Config, UpstreamTable
from dragoman.core.problems import Problem
from dragoman.core.traits import TextCalls
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.media import Library, MediaLimits
from dragoman.gateway.route import Place
from dragoman.gateway.upstream_call import map_failure
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.guarded import Guard
from dragoman.http.link import Failure
from dragoman.upstreams.anthropic import Anthropic
from dragoman.upstreams.code_assist import CodeAssist
from dragoman.upstreams.gemini import Gemini
from dragoman.upstreams.google_tokens import FixedToken, GoogleTokens, Tokens, credentials_file, default_credentials
from dragoman.upstreams.openai import OpenAI
from dragoman.upstreams.place import Upstream
from dragoman.upstreams.vertex import VertexAnthropic, VertexGemini
from dragoman.wire import json

AGENT = f"dragoman/{__version__}"
_KEYED: dict[str, Callable[[str, str, str, str], Upstream]] = {
    "gemini": Gemini,
    "anthropic": Anthropic,
    "openai": OpenAI,
    "openai-responses": partial(OpenAI, responses=True),
}
"""Upstreams that want an address and a key."""


_LINKLESS = frozenset({"vertex-anthropic"})


def linkless(config: Config) -> frozenset[str]:
    """Return the names of upstreams that fetch no linked media."""
    tables = config.upstreams.items()
    return frozenset(
        name for name, table in tables if not (table.kind not in _LINKLESS if table.links is None else table.links)
    )


def text_calls(config: Config) -> dict[str, dict[str, TextCalls]]:
    """Return the upstreams whose models call tools in their text, and the form by patterns of the models' names."""
    forced: dict[str, TextCalls] = {} if config.server.use_native_function_calling else {"*": "json"}
    found: dict[str, dict[str, TextCalls]] = {}
    for name, table in config.upstreams.items():
        said = table.text_calls
        patterns: dict[str, TextCalls] = {"*": said} if isinstance(said, str) else {**(said or {}), **forced}
        if patterns:
            found[name] = patterns
    return found


def library(config: Config) -> Library:
    """Return what fetches it for them."""
    media = config.media
    limits = MediaLimits(fetch=media.fetch, max_bytes=media.max_bytes, max_links=media.max_links, seconds=media.seconds)
    return Library(Guard(media.allow), limits)


async def place(name: str, table: UpstreamTable, client: Client, stack: AsyncExitStack) -> Place:
    """Make one upstream; what it needs beside the gateway lives as long as `stack`."""
    if table.kind == "simulator":
        return await _simulated(name, table, stack)
    upstream = make_upstream(name, table, client)
    return lambda _: upstream


def make_upstream(name: str, table: UpstreamTable, client: Client) -> Upstream:
    """Make an upstream that is not the simulator."""
    keyed = _KEYED.get(table.kind)
    if keyed is not None:
        return keyed(name, table.base_url, table.api_key, AGENT)
    tokens = _tokens(name, table)
    if table.kind == "code-assist":
        send = partial(_asked, name, client, Deadlines(connect=table.connect, first_byte=60.0, idle=60.0))
        return CodeAssist(name, table.base_url, project=table.project, tokens=tokens, agent=AGENT, send=send)
    kind = VertexGemini if table.kind == "vertex-gemini" else VertexAnthropic
    return kind(name, table.base_url, project=table.project, location=table.location, tokens=tokens, agent=AGENT)


def _tokens(name: str, table: UpstreamTable) -> Tokens:
    if table.access_token:
        return FixedToken(table.access_token)
    if not table.credentials:
        return GoogleTokens(default_credentials, name)
    return GoogleTokens(partial(credentials_file, table.credentials, table.client_id, table.client_secret), name)


async def _asked(name: str, client: Client, deadlines: Deadlines, outgoing: Outgoing) -> dict[str, Any]:
    """Ask an upstream for a JSON object that is no answer to a client."""
    try:
        incoming = await client.ask(outgoing, deadlines)
        body = await incoming.read()
    except Failure as failure:
        raise map_failure(failure, name) from None
    if not incoming.good:
        problem = dialect_named("gemini").parse_error(incoming.status, dict(incoming.headers), body)
        words = f"the upstream {name} could not be set up: {problem.message}"
        raise Problem("internal", words, status=502, code="credentials")
    return json.decode(body)


async def _simulated(name: str, table: UpstreamTable, stack: AsyncExitStack) -> Place:
    """Return the simulator, our own unless one is named; each family of models is played in its vendor's dialect."""
    base = table.base_url
    if not base:
        from dragoman.simulator.serving import running  # noqa: PLC0415  only who has no model pays for it

        base = (await stack.enter_async_context(running())).base_url
    gemini = Gemini(name, base, "simulated", AGENT)
    claude = Anthropic(name, base, "simulated", AGENT)
    openai = OpenAI(name, f"{base}/v1", "simulated", AGENT, responses=True)

    def place(model: str) -> Upstream:
        bare = model.removeprefix("models/")
        return gemini if bare.startswith("gemini") else claude if bare.startswith("claude") else openai

    return place
