"""The mitmproxy addon that sends requests for the listed hosts to the gateway.

It runs inside mitmproxy, in mitmproxy's own environment, so it imports only the standard library. Other hosts never
reach it: the option `allow_hosts` tunnels them without decryption. It stops when the process that started it ends,
which closes standard input, and then deletes the folder of this run.
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
"""The environment variable with the path of the folder of this run."""
ROUTES = "routes.json"
READY = "dragoman intercept listens on "
REFUSED = "dragoman intercept is not trusted for "


class Redirect:
    """The addon; mitmproxy calls its public methods as event hooks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        settings = json.loads((folder / ROUTES).read_text(encoding="utf-8"))
        self._gateway: tuple[str, int] = (settings["host"], settings["port"])
        self._headers: dict[str, str] = settings["headers"]
        self._routes = [(re.compile(pattern), prefix) for pattern, prefix in settings["routes"]]
        self._master: Any = None

    def load(self, loader: Any) -> None:
        """Keep mitmproxy's master object."""
        self._master = loader.master

    def running(self) -> None:
        """Print the port of the proxy and watch standard input for its end."""
        (_, port, *_), *_ = self._master.addons.get("proxyserver").listen_addrs()
        _print(f"{READY}{port}")
        asyncio.get_running_loop().add_reader(0, self._on_input)

    def requestheaders(self, flow: Any) -> None:
        """Send a request for a listed host to the gateway, streamed."""
        request = flow.request
        # Only the host of the TLS connection counts: a request for another host, or without TLS, is not rewritten.
        authority = f"{request.host.lower()}:{request.port}"
        found = next((prefix for pattern, prefix in self._routes if pattern.fullmatch(authority)), None)
        if found is not None and request.scheme == "https":
            request.scheme, (request.host, request.port) = "http", self._gateway
            request.path = found + request.path
            request.headers.update(self._headers)
            # The user's own proxy is for the internet: the gateway on this machine is contacted directly.
            flow.server_conn.via = None
        request.stream = True

    def responseheaders(self, flow: Any) -> None:
        """Stream the response instead of buffering it."""
        flow.response.stream = True

    def tls_failed_client(self, data: Any) -> None:
        """Report that the program rejected the certificate; it would itself report only a failed connection."""
        if data.context.client.sni:
            _print(f"{REFUSED}{data.context.client.sni}")

    def done(self) -> None:
        """Delete the folder of this run, even if the process that started the proxy has died."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _on_input(self) -> None:
        if not os.read(0, 1024):
            asyncio.get_running_loop().remove_reader(0)
            self._master.shutdown()


def _print(message: str) -> None:
    sys.stdout.write(f"{message}\n")
    sys.stdout.flush()


addons = [Redirect(Path(os.environ[RUN]))] if RUN in os.environ else []
