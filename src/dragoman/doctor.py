"""Check a configuration: credentials, the connection to each upstream, a tool round trip, external MCP servers.

Each check reports its result and how to fix a failure. The output is for the operator of the gateway, so it shows
addresses and the upstream's own messages, but never secrets. The round trip is sent in Anthropic's dialect, so that it
is translated for most upstreams. Hashes of tools are printed in the format of `pinned` in `[tools.*]`.
"""

import contextlib
import re
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct, structs

from dragoman.config import Config, UpstreamTable
from dragoman.core.problems import Kind, Problem
from dragoman.dialects.record import Call
from dragoman.gateway.agents.toolset import AgentRegistry, ToolServers, find_unknown_tools
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.context import CallContext
from dragoman.gateway.record import Record
from dragoman.gateway.redact import credentials_of, redact
from dragoman.gateway.router import Target, default_model
from dragoman.gateway.upstream_call import UpstreamClient, read_body, translate
from dragoman.http.client import Client, Deadlines, Outgoing
from dragoman.http.upstream_connection import ConnectionFailure, UntrustedCertificate
from dragoman.interpreter.response import translate_response
from dragoman.mcp.client import Servers, ServerStatus, open_servers
from dragoman.server.services import find_text_calls, open_upstream
from dragoman.tools.handler import NAMESPACE_SEPARATOR
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.upstream import Upstream
from dragoman.wire import json

_DIALECT = "messages"
"""The dialect of the round trip: one that most upstreams do not use, so that translation is tested too."""
_TOOL = {
    "name": "get_weather",
    "description": "Get the weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_QUESTION = {"role": "user", "content": "What is the weather in Tokyo now? Use the tool, then answer in one sentence."}
_RESULT = '{"temperature": 21, "unit": "celsius", "sky": "clear"}'
_MAX_TOKENS = 4000
_MAX_TEXT = 60
_REMEDIES: Mapping[Kind, str] = {
    "authentication": "check the key in [upstreams.{name}]",
    "permission": "the account may not use this model: enable it there, or test another with --model {name}/MODEL",
    "not_found": "use a model that the upstream has, with --model {name}/MODEL and in [models]",
    "rate_limit": "wait, or raise the quota of the account",
    "billing": "add credit to the account",
    "overloaded": "the upstream is overloaded: try again later",
    "timeout": "try again with a longer --timeout; check the status of the upstream",
    "unreachable": "check base_url in [upstreams.{name}], the network and HTTPS_PROXY",
    "unsupported": 'if the model has no tools, set text_calls = "json" in [upstreams.{name}]',
    "malformed_reply": "the server does not have this API: check kind and base_url in [upstreams.{name}]",
}
_NO_TOOLS = re.compile(r"not support\w*\b.*\b(?:tools?|function)\b|\b(?:tools?|function)\b.*not support", re.IGNORECASE)
"""How servers of open models reject a request with tools."""
_CODES: Mapping[str, str] = {"credentials": "check the key or credentials in [upstreams.{name}]"}


async def run_round_trip(target: Target, client: Client) -> str:
    """Let a model call a tool, send the result and return the call and the answer; raises `Problem`."""
    reply = await _ask_model(target, client, [_QUESTION])
    calls = [part for part in reply if part["type"] == "tool_use"]
    if not calls:
        message = "the model answered without calling the tool"
        raise Problem("unsupported", f"{message}: {_join_text(reply)}")
    if calls[0]["name"] != "get_weather":
        raise Problem(
            "malformed_reply", f"the model called a tool that the request does not have: {calls[0]['name']!r}"
        )
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": _RESULT} for call in calls]
    turns = [_QUESTION, {"role": "assistant", "content": reply}, {"role": "user", "content": results}]
    answer = _join_text(await _ask_model(target, client, turns))
    if not answer:
        raise Problem("malformed_reply", "the model returned no text after the tool result")
    return f"get_weather({_shorten(json.encode(calls[0]['input']).decode())}) -> {answer}"


async def _ask_model(target: Target, client: Client, messages: list[Any]) -> list[Any]:
    """Send messages to a model and return the content blocks of its reply."""
    body = json.encode({"model": target.model, "max_tokens": _MAX_TOKENS, "messages": messages, "tools": [_TOOL]})
    client_request = ClientRequest(dialect=_DIALECT, call=Call(body, target.model))
    translation, context = await translate(client_request, target), CallContext(client_request, Record())
    upstream_reply = await UpstreamClient(client).send_translated(context, target, translation)
    reply = await read_body(upstream_reply.incoming, target)
    rendered = translate_response(reply, target.upstream.dialect, _DIALECT, upstream_reply.context)
    return json.decode(rendered.body)["content"]


def _join_text(parts: list[Any]) -> str:
    return _shorten(" ".join(part["text"] for part in parts if part["type"] == "text"))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}…"


class Check(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    check: str
    upstream: str = ""
    server: str = ""
    """Name of the external MCP server, if the check is about one."""
    model: str = ""
    ok: bool
    detail: str
    remedy: str = ""
    seconds: float = 0.0


async def check_upstreams(config: Config, models: Sequence[str] = (), seconds: float = 60.0) -> AsyncGenerator[Check]:
    """Check every upstream; `models` (`upstream/model`) are tested instead of the configured ones."""
    async with AsyncExitStack() as stack:
        client = Client()
        stack.push_async_callback(client.close)
        for name, table in config.upstreams.items():
            tested = _find_models(config, name, table, models)
            if models and not tested:
                continue
            upstream = (await open_upstream(name, table, client, stack))(next(iter(tested), default_model(table.kind)))
            checker = _UpstreamChecker(
                config, name, table, client, Deadlines(connect=10.0, first_byte=seconds, idle=seconds)
            )
            async for check in checker.run(upstream, tested):
                yield check


def _find_models(config: Config, name: str, table: UpstreamTable, models: Sequence[str]) -> tuple[str, ...]:
    """Return the models of an upstream to test."""
    targets = models or [target for targets in config.models.values() for target in targets]
    own = [target.partition("/")[2] for target in targets if target.partition("/")[0] == name]
    named = tuple(dict.fromkeys(model for model in own if "*" not in model))
    return named or (
        () if models or (KINDS[table.kind].compatible and table.base_url) else (default_model(table.kind),)
    )


class _UpstreamChecker:
    """Runs the checks of one upstream."""

    def __init__(self, config: Config, name: str, table: UpstreamTable, client: Client, deadlines: Deadlines) -> None:
        self._config = config
        self._name = name
        self._table = table
        self._client = client
        self._deadlines = deadlines
        self._start_time = time.monotonic()

    async def run(self, upstream: Upstream, models: Sequence[str]) -> AsyncGenerator[Check]:
        try:
            outgoing = await upstream.generate(Call(b"{}", next(iter(models), "")), ())
        except Problem as problem:
            yield self._build_problem("credentials", problem)
            return
        yield self._build_success(
            "credentials", "a key or token is configured" if credentials_of(outgoing) else "none are sent"
        )
        try:
            incoming = await self._client.send(_strip_request(outgoing), self._deadlines)
            incoming.close()
        except ConnectionFailure as failure:
            remedy = (
                "its TLS certificate is not trusted: set SSL_CERT_FILE to a file with its authority"
                if isinstance(failure, UntrustedCertificate)
                else ""
            )
            yield self._build_failure("reachable", str(failure), remedy or _REMEDIES["unreachable"])
            return
        yield self._build_success("reachable", outgoing.origin.url)
        for model in models or (await self._first_listed(upstream),):
            yield await self._check_round_trip(upstream, model)

    async def _check_round_trip(self, upstream: Upstream, model: str) -> Check:
        self._start_time = time.monotonic()
        try:
            patterns = find_text_calls(self._config).get(self._name, {})
            target = Target(upstream, model, self._deadlines)
            pattern = next((pattern for pattern in patterns if fnmatchcase(model, pattern)), None)
            if pattern is not None:
                target = structs.replace(target, text_calls=patterns[pattern])
            detail = await run_round_trip(target, self._client)
        except Problem as problem:
            return self._build_problem("tool round trip", problem, model)
        return self._build_success("tool round trip", detail, model)

    async def _first_listed(self, upstream: Upstream) -> str:
        """Return the first model that a compatible server lists; without a list, the default model of the kind."""
        listing = await upstream.models()
        if listing is not None:
            with contextlib.suppress(ConnectionFailure):
                incoming = await self._client.send(listing.request, self._deadlines)
                for row in listing.read(await incoming.read()):
                    return row.name
        return default_model(self._table.kind)

    def _build_success(self, check: str, detail: str, model: str = "") -> Check:
        return self._build_check(check, model, ok=True, detail=detail)

    def _build_failure(self, check: str, detail: str, remedy: str, model: str = "") -> Check:
        return self._build_check(check, model, ok=False, detail=detail, remedy=remedy)

    def _build_problem(self, check: str, problem: Problem, model: str = "") -> Check:
        kind = "unsupported" if model and _NO_TOOLS.search(problem.message) else problem.kind
        remedy = _CODES.get(problem.code or "") or _REMEDIES.get(kind, "see the message of the upstream")
        return self._build_failure(check, problem.message, remedy, model)

    def _build_check(self, check: str, model: str, *, ok: bool, detail: str, remedy: str = "") -> Check:
        seconds = round(time.monotonic() - self._start_time, 3)
        self._start_time = time.monotonic()
        return Check(
            check=check,
            upstream=self._name,
            model=model,
            ok=ok,
            detail=redact(detail, self._config.secrets),
            remedy=remedy.replace("{name}", self._name),
            seconds=seconds,
        )


def _strip_request(outgoing: Outgoing) -> Outgoing:
    """Return a GET / to the same server, without credentials."""
    return Outgoing(outgoing.origin, "GET", "/", (("accept-encoding", "identity"),))


async def check_tools(config: Config, seconds: float = 60.0) -> AsyncGenerator[Check]:
    """Check every external MCP server, and whether the tools of agents exist."""
    for key, message in find_unknown_tools(config.agents, config.tools):
        yield Check(
            check=key, ok=False, detail=message, remedy="use a server of [tools.*], one of its tools, or web_fetch"
        )
    if not config.tools:
        return
    start_time = time.monotonic()
    async with open_servers(config.tools, patience=seconds) as servers:
        seconds = round(time.monotonic() - start_time, 3)
        for status in servers.status():
            for check in _check_server(status, servers, seconds):
                yield check
        for check in _check_agents(config, servers):
            yield check


def _check_agents(config: Config, servers: Servers) -> Iterable[Check]:
    """Check that the `tools` entries of agents match a tool, for servers that are connected."""
    agent_registry = AgentRegistry(servers.registry, servers=ToolServers(find_origin=servers.origin))
    connected = {status.name for status in servers.status() if status.connected}
    for name, agent in config.agents.items():
        for word in agent.tools:
            if word.partition(NAMESPACE_SEPARATOR)[0] in connected and not agent_registry.find_tools(word):
                near = " or ".join(servers.registry.nearest(word))
                yield Check(
                    check=f"agents.{name}.tools",
                    ok=False,
                    detail=f"{word!r} matches no tool of its server",
                    remedy=f"did you mean {near}?" if near else "use names of tools that the server has",
                )


def _check_server(status: ServerStatus, servers: Servers, seconds: float) -> list[Check]:
    if not status.connected:
        key = "command, args, env and cwd" if status.transport == "stdio" else "url and headers"
        remedy = f"check {key} in [tools.{status.name}], or its entry in GEMINI_MCP_SERVERS"
        detail = redact(status.error)
        return [Check(check="tools", server=status.name, ok=False, detail=detail, remedy=remedy, seconds=seconds)]
    facts = [f"{len(status.tools)} tools over {status.transport}", status.protocol, status.server]
    detail = ", ".join(fact for fact in facts if fact)
    checks = [Check(check="tools", server=status.name, ok=True, detail=detail, seconds=seconds)]
    pins = [f'"{origin[1]}" = "{found}"' for name, found in status.tools.items() if (origin := servers.origin(name))]
    if pins:
        checks.append(
            Check(check="definitions", server=status.name, ok=True, detail=f"pinned = {{ {', '.join(pins)} }}")
        )
    for blocked in status.blocked:
        detail = f"{blocked.tool} is pinned to {blocked.accepted}, but its definition now has the hash {blocked.found}"
        remedy = f"review the new definition; to accept it, put its hash into `pinned` in [tools.{status.name}]"
        checks.append(Check(check="definitions", server=status.name, ok=False, detail=detail, remedy=remedy))
    for tool, reason in status.unusable.items():
        remedy = f"none needed if you do not use this tool; otherwise report it to the maintainer of {status.name}"
        checks.append(
            Check(check="definitions", server=status.name, ok=False, detail=f"{tool}: {reason}", remedy=remedy)
        )
    return checks
