"""Rules about what runs at the vendor: MCP servers, containers, and what Vertex does not have."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.messages.blocks import ContainerUpload, Link, Stored
from dragoman.simulator.apis.messages.mutations import changed, user_blocks_added, with_exchange, with_tool
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.rules_media import media_of
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import Container
from dragoman.simulator.apis.messages.tools import Advisor, CodeExecution, McpToolset, WebFetch, kind_of
from dragoman.simulator.rule import Json, Situation, Violation

_SECTION = "wire/anthropic_messages.md section 13"
_MCP = "wire/anthropic_messages.md section 4"


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
    yield changed(body, mcp_servers=[{"type": "url", "url": "https://mcp.example.com", "name": "extra"}])


@rule("vertex-features", _SECTION, _on_vertex)
def vertex_features(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Vertex has no links, no uploaded files, no programs, no fetches, no advisor, no MCP connector, no fallbacks."""
    if not reading.vertex:
        return
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, WebFetch | CodeExecution | Advisor | McpToolset):
            words = f"tools.{number}: tool type '{kind_of(tool)}' is not supported on this platform"
            yield Violation(words, f"/tools/{number}/type")
    for member in ("mcp_servers", "fallbacks", "container"):
        if getattr(reading.request, member, None) is not None:
            yield Violation(f"{member}: Extra inputs are not permitted", f"/{member}")
    for where, path, block in media_of(reading):
        if isinstance(block.source, Link | Stored):
            yield Violation(
                f"{path}.source: URL and file sources are not supported on this platform", f"{where}/source"
            )
    for _turn, placed in reading.blocks():
        if isinstance(placed.block, ContainerUpload):
            yield Violation(f"{placed.path}: `container_upload` is not supported on this platform", placed.where)


def _same_server(body: Json, _: Random) -> Iterator[Json]:
    server = {"type": "url", "url": "https://mcp.example.com", "name": "extra"}
    if "anthropic_version" not in body and not body.get("mcp_servers"):
        yield changed(body, mcp_servers=[server, server])
        yield changed(body, mcp_servers=[{**server, "url": "http://mcp.example.com"}])
        yield with_tool(body, {"type": "mcp_toolset", "mcp_server_name": "nobody"})


@rule("mcp-servers", f"{_MCP}; no source for the words", _same_server)
def mcp_servers(reading: Reading, _: Situation) -> Iterator[Violation]:
    """MCP servers have names of their own and HTTPS, and a toolset names one of them."""
    servers = reading.request.mcp_servers or []
    names: set[str] = set()
    for number, server in enumerate(servers):
        if not server.url.startswith("https://"):
            yield Violation(f"mcp_servers.{number}.url: URL must use https", f"/mcp_servers/{number}/url")
        if server.name in names:
            yield Violation("mcp_servers: MCP server names must be unique", f"/mcp_servers/{number}/name")
        names.add(server.name)
    for number, tool in enumerate(reading.tools):
        if isinstance(tool, McpToolset) and tool.mcp_server_name not in names:
            words = f"MCP server '{tool.mcp_server_name}' is not defined in mcp_servers"
            yield Violation(f"tools.{number}.mcp_toolset.mcp_server_name: {words}", f"/tools/{number}/mcp_server_name")


def _skilled(body: Json, _: Random) -> Iterator[Json]:
    if "max_tokens" in body and "anthropic_version" not in body and "code_execution" not in str(body):
        yield changed(body, container={"skills": [{"type": "anthropic", "skill_id": "pdf", "version": "latest"}]})


@rule("container-skills", "platform.claude.com skills-guide: skills need the code execution tool", _skilled)
def container_skills(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Skills need a container in which programs run."""
    asked = reading.generating
    skills = asked.container.skills if asked is not None and isinstance(asked.container, Container) else None
    if skills and not any(isinstance(tool, CodeExecution) for tool in reading.tools):
        words = "container: skills can only be used when a code execution tool is enabled"
        yield Violation(words, "/container/skills")


RULES = (vertex_features, mcp_servers, container_skills)
