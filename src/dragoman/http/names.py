"""Look up the addresses of hosts that strangers name.

Their own servers answer, as slowly as they like, and a lookup cannot be ended: it has threads of its own, so that no
other work waits for them, and few.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import cache

_AT_ONCE = 8


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, "names")


async def resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host, each once; raises `OSError`."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), _looked_up, host, port)


def _looked_up(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
