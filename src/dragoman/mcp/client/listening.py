"""News of changed tools, for the revision in which a client has to ask for them.

Rules: a server that has no news to give is not asked; one that stops giving them is asked again, after a longer wait
each time. Whenever news begin, tools are taken to have changed before.
"""

import asyncio
import logging
from collections.abc import Callable

from dragoman.mcp.sdk import MODERN_PROTOCOL_VERSIONS, Client, MCPError, SubscriptionLost, types

_LOG = logging.getLogger("dragoman.mcp")
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0


async def listen(client: Client, changed: Callable[[], None]) -> None:
    """Call `changed` whenever the server says that its tools have changed."""
    tools = client.server_capabilities.tools
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or tools is None or not tools.list_changed:
        return
    wait = _FIRST_WAIT
    while True:
        try:
            async with client.listen(tools_list_changed=True) as news:
                changed()  # nobody has told of what was changed before
                async for _ in news:
                    wait = _FIRST_WAIT
                    changed()
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return
            _LOG.debug("no news of tools: %s", error)
        except (SubscriptionLost, TimeoutError) as error:
            _LOG.debug("no more news of tools: %s", error)
        await asyncio.sleep(wait)
        wait = min(_LONGEST_WAIT, wait * 2)
