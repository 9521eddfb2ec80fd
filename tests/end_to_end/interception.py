"""`dragoman intercept` as a user starts it, with a real mitmproxy from the index, and what it leaves behind."""

import os
import re
import socket
import socketserver
import subprocess
import sys
from base64 import b64decode
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from cli.terminal import environment
from server.processes import PROGRAM

MITMPROXY = "mitmproxy==11.0.2"
FOLDERS = "dragoman-intercept-*"


class Site:
    """A folder of a test: its configuration, its state, and the programs that are found from there."""

    def __init__(self, folder: Path, programs: Path, upstream: str, *, server: str = "") -> None:
        self.folder = folder
        self.programs = programs
        self.data = folder / "data"
        (folder / "dragoman.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nhold = 0.05\n{server}\n[upstreams.google]\nkind = "simulator"\nbase_url = "{upstream}"\n'
            f'[intercept.client]\nupstream = "google"\n'
        )

    def variables(self, **more: str) -> dict[str, str]:
        """What the command finds in its environment."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        proxies = {name: "" for name in os.environ if name.lower() in {"https_proxy", "all_proxy", "no_proxy"}}
        own = {"PATH": path, "XDG_DATA_HOME": str(self.data), "GEMINI_API_KEY": "any"}
        return environment(self.folder, **proxies, **own, **more)

    def start(self, *arguments: str, stdin: int = subprocess.DEVNULL, **more: str) -> "subprocess.Popen[str]":
        """Start the command; what it runs writes to standard output."""
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", PROGRAM, "intercept", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.variables(**more),
            start_new_session=True,
        )

    def run(self, *arguments: str, seconds: float = 90, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end."""
        with self.start(*arguments, **more) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            finally:
                process.kill()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def script(self, text: str) -> list[str]:
        """Return the arguments after `--` that run a Python program."""
        file = self.folder / "child.py"
        file.write_text(text)
        return ["--", sys.executable, str(file)]

    def left_behind(self) -> list[Path]:
        """What is there of folders that should be gone."""
        return [*self.folder.glob(FOLDERS)]


def proxies_of(folder: Path) -> list[int]:
    """The processes of mitmproxy that were started for a folder."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if b"mitmdump" in words and str(folder).encode() in words:
                found.append(int(process.name))
    return found


def children_of(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def only(result: Mapping[str, str], before: Mapping[str, str]) -> set[str]:
    """Names of the variables that are not as they were."""
    return {name for name in {*result, *before} if result.get(name) != before.get(name)}


@contextmanager
def tunnels() -> Generator[tuple[int, list[tuple[str, str]]]]:
    """A proxy that a user already has: its port, the requested hosts, and their credentials."""
    asked: list[tuple[str, str]] = []

    class Tunnel(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            head = b""
            while b"\r\n\r\n" not in head:
                head += self.request.recv(4096)
            target = head.split()[1].decode()
            shown = re.search(rb"(?i)proxy-authorization: basic (\S+)", head)
            asked.append((target, b64decode(shown[1]).decode() if shown else ""))
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port))) as far:
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = Thread(target=_copy, args=(far, self.request))
                back.start()
                _copy(self.request, far)
                back.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], asked
        server.shutdown()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
        sink.shutdown(socket.SHUT_WR)
