"""Rules about what runs at the vendor: MCP servers, containers, and what Vertex does not have."""

from collections.abc import Iterator

from dragoman.simulator.apis.messages.blocks import ContainerUpload, Link, Stored
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.rules_media import media_of
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.apis.messages.shape import Container
from dragoman.simulator.apis.messages.tools import Advisor, CodeExecution, McpToolset, WebFetch, kind_of
from dragoman.simulator.rule import Situation, Violation

_SECTION = "wire/anthropic_messages.md section 13"
_MCP = "wire/anthropic_messages.md section 4"


@rule("vertex-features", _SECTION)
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


@rule("mcp-servers", f"{_MCP}; no source for the words")
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


@rule("container-skills", "platform.claude.com skills-guide: skills need the code execution tool")
def container_skills(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Skills need a container in which programs run."""
    asked = reading.generating
    skills = asked.container.skills if asked is not None and isinstance(asked.container, Container) else None
    if skills and not any(isinstance(tool, CodeExecution) for tool in reading.tools):
        words = "container: skills can only be used when a code execution tool is enabled"
        yield Violation(words, "/container/skills")


RULES = (vertex_features, mcp_servers, container_skills)
