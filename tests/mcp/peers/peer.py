"""A server for the tests, over stdio or HTTP: `peer.py stdio`, or `peer.py http PORT_FILE`. Calls select what it does."""

import asyncio
import base64
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

server = MCPServer("peer", version="1.2")
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 8).decode()


class Sum(BaseModel):
    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two numbers."""
    return Sum(total=a + b)


@server.tool()
def everything() -> CallToolResult:
    """Answer with every kind of content."""
    return CallToolResult(
        content=[
            TextContent(text="words"),
            ImageContent(data=PIXEL, mime_type="image/png"),
            AudioContent(data="UklGRg==", mime_type="audio/wav"),
            ResourceLink(uri="peer://report", name="report", mime_type="text/csv"),
            EmbeddedResource(
                resource=TextResourceContents(uri="peer://note", mime_type="text/markdown", text="# note")
            ),
            EmbeddedResource(
                resource=BlobResourceContents(uri="peer://f.pdf", mime_type="application/pdf", blob="JVBE")
            ),
        ],
        structured_content={"kept": True},
    )


@server.tool()
def fail() -> CallToolResult:
    """Fail."""
    return CallToolResult(content=[TextContent(text="the printer is on fire")], is_error=True)


@server.tool()
async def steps(ctx: Context[Any, Any]) -> str:
    """Tell of two steps."""
    await ctx.report_progress(1, 2, "one")
    await ctx.report_progress(2, 2, "two")
    return "done"


@server.tool()
async def hang(marks: str) -> str:
    """Write `begun` into a file, and `cancelled` when stopped."""
    file = Path(marks)
    file.write_text("begun")  # noqa: ASYNC240  nobody else waits
    try:
        await asyncio.sleep(60)
    except BaseException:
        file.write_text("cancelled")  # noqa: ASYNC240
        raise
    return "never"


@server.tool()
def die() -> str:
    """End the process as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool()
def mumble(words: str) -> str:
    """Say something on standard error."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
    return "said"


@server.tool()
async def ask(ctx: Context[Any, Any]) -> str:
    """Ask the user."""
    answer = await ctx.elicit("Your name?", Sum)
    return str(answer)


@server.tool()
async def inquire(ctx: Context[Any, Any]) -> str | InputRequiredResult:
    """Ask the user, by the answer."""
    answer: Any = (ctx.input_responses or {}).get("total")
    if answer is not None:
        return f"told {answer.content}"
    form = ElicitRequestFormParams(message="How many?", requested_schema=Sum.model_json_schema())
    return InputRequiredResult(input_requests={"total": ElicitRequest(params=form)})


@server.tool()
def meta(ctx: Context[Any, Any]) -> dict[str, Any]:
    """Tell the request's metadata."""
    return {"meta": dict(ctx.request_context.meta or {})}


def change_tool(words: str) -> None:
    def colour() -> str:
        return words

    colour.__doc__ = words
    server.add_tool(colour, name="colour")


@server.tool()
async def change(words: str, ctx: Context[Any, Any]) -> str:
    """Make the tool `colour` another one; no words take it away."""
    server.remove_tool("colour")
    if words:
        change_tool(words)
    await ctx.session.send_tool_list_changed()
    await ctx.notify_tools_changed()
    return "changed"


@server.tool()
def session(ctx: Context[Any, Any]) -> str:
    """Tell the id of the session."""
    request: Any = ctx.request_context.request
    return request.headers["mcp-session-id"]


@server.tool(name="a.very/odd name that is so long that no vendor takes it in any of their requests")
def odd() -> str:
    """Answer."""
    return "odd"


change_tool(os.environ.get("PEER_COLOUR", "Tell the colour."))


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    listening = socket.create_server(("127.0.0.1", int(sys.argv[3]) if len(sys.argv) > 3 else 0))
    Path(sys.argv[2]).write_text(str(listening.getsockname()[1]))
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    asyncio.run(uvicorn.Server(config).serve([listening]))


main()
