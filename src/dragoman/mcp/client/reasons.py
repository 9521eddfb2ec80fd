"""Why a server is not available, in terms of what is configured: read by whoever runs the gateway, and by models."""

from dragoman.mcp.sdk import MCPError, ValidationError, types
from dragoman.mcp.settings import ToolServer


def words_of(error: BaseException, settings: ToolServer) -> str:
    """Say what went wrong, in terms of what is configured."""
    match error:
        case BaseExceptionGroup():
            return words_of(error.exceptions[0], settings)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        case TimeoutError():
            return f"it did not answer within {settings.connect:g} seconds"
        case OSError() if settings.command and not isinstance(error, ConnectionError):
            place = settings.cwd or "a directory of its own"
            return f"{settings.command!r} cannot be run in {place}: {error.strerror or error}"
        case ValidationError():
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            return f"it answered with what is not of this protocol: {first['msg']} at {place}"
        case MCPError(code=types.CONNECTION_CLOSED):
            return "it ended before it had answered" if settings.command else "the connection was closed"
        case _:
            return f"{error}" or type(error).__name__
