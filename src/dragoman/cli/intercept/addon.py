"""What runs inside mitmproxy, in its own environment: listed hosts go to the surface, and nothing else is read.

It uses the standard library alone, and of mitmproxy only what is handed to it. All other hosts never come here: they
are tunnelled by `allow_hosts`. It ends with the process that started it, which holds the other end of standard input,
and then also takes the folder of this run away.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

RUN = "DRAGOMAN_INTERCEPT_RUN"
"""The variable that names the folder of this run."""
ROUTES = "routes.json"
READY = "dragoman intercept listens on "
REFUSED = "dragoman intercept is not trusted for "


class Redirect:
    """An addon: its methods are called by mitmproxy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        told = json.loads((folder / ROUTES).read_text(encoding="utf-8"))
        self._gateway: tuple[str, int] = (told["host"], told["port"])
        self._headers: dict[str, str] = told["headers"]
        self._routes = [(re.compile(pattern), prefix) for pattern, prefix in told["routes"]]
        self._master: Any = None

    def load(self, loader: Any) -> None:
        """Begin."""
        self._master = loader.master

    def running(self) -> None:
        """Tell where the proxy listens."""
        (_, port, *_), *_ = self._master.addons.get("proxyserver").listen_addrs()
        _print(f"{READY}{port}")
        asyncio.get_running_loop().add_reader(0, self._on_input)

    def requestheaders(self, flow: Any) -> None:
        """Send a request for a listed host to the surface, as it comes."""
        request = flow.request
        # What was begun with another host, or without TLS, was not asked of a listed one.
        place = f"{request.host.lower()}:{request.port}"
        found = next((prefix for pattern, prefix in self._routes if pattern.fullmatch(place)), None)
        if found is not None and request.scheme == "https":
            request.scheme, (request.host, request.port) = "http", self._gateway
            request.path = found + request.path
            request.headers.update(self._headers)
            # A proxy of the user's stands before the internet, not before this machine.
            flow.server_conn.via = None
        request.stream = True

    def responseheaders(self, flow: Any) -> None:
        """Let a reply pass as it comes: a stream that is held is no stream."""
        flow.response.stream = True

    def tls_failed_client(self, data: Any) -> None:
        """Tell that the program hung up on our certificate: it would else only say that it has no connection."""
        if data.context.client.sni:
            _print(f"{REFUSED}{data.context.client.sni}")

    def done(self) -> None:
        """Leave nothing behind, even if whoever started this cannot tidy up any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _on_input(self) -> None:
        if not os.read(0, 1024):
            asyncio.get_running_loop().remove_reader(0)
            self._master.shutdown()


def _print(message: str) -> None:
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


addons = [Redirect(Path(os.environ[RUN]))] if RUN in os.environ else []
