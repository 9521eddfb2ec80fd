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
            return f"it answered with what is not of this protocol: {misfit(error)}"
        case MCPError(code=types.CONNECTION_CLOSED):
            return "it ended before it had answered" if settings.command else "the connection was closed"
        case _:
            return f"{error}" or type(error).__name__


def misfit(error: ValidationError, skip: tuple[str | int, ...] = ()) -> str:
    """Say what does not fit first, and where; `skip` is the way to what the words are about."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"][len(skip) if first["loc"][: len(skip)] == skip else 0 :]))
    return f"{first['msg']} at {place}" if place else first["msg"]
