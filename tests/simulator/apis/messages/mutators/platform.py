"""Mutators for the rules about platform: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import change, user_blocks_added, with_exchange, with_tool
from simulator.mutation import Mutate


def _on_vertex(body: Json, _: Random) -> Iterator[Json]:
    if "anthropic_version" not in body:
        return
    linked = {"type": "url", "url": "https://example.com/a.png"}
    yield from user_blocks_added(body, {"type": "image", "source": linked})
    yield from user_blocks_added(body, {"type": "document", "source": {"type": "file", "file_id": "file_01"}})
    shown = {"type": "tool_result", "tool_use_id": "toolu_01Extra", "content": [{"type": "image", "source": linked}]}
    for once in with_exchange(body):
        once["messages"][-1]["content"] = [shown]
        yield once
    yield with_tool(body, {"type": "web_fetch_20250910", "name": "web_fetch"})
    yield with_tool(body, {"type": "code_execution_20250825", "name": "code_execution"})
    yield change(body, mcp_servers=[{"type": "url", "url": "https://mcp.example.com", "name": "extra"}])


def _same_server(body: Json, _: Random) -> Iterator[Json]:
    server = {"type": "url", "url": "https://mcp.example.com", "name": "extra"}
    if "anthropic_version" not in body and not body.get("mcp_servers"):
        yield change(body, mcp_servers=[server, server])
        yield change(body, mcp_servers=[{**server, "url": "http://mcp.example.com"}])
        yield with_tool(body, {"type": "mcp_toolset", "mcp_server_name": "nobody"})


def _add_skill(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body and "anthropic_version" not in body and "code_execution" not in str(body):
        yield change(body, container={"skills": [{"type": "anthropic", "skill_id": "pdf", "version": "latest"}]})


MUTATORS: dict[str, Mutate] = {
    "messages.vertex-features": _on_vertex,
    "messages.mcp-servers": _same_server,
    "messages.container-skills": _add_skill,
}
