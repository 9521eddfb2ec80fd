"""A proxy that leads nowhere: what a program asks of the world outside is written down and refused."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager


class DeadEnd:
    """Where every way out ends."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.asked: set[str] = set()
        """The hosts that were looked for."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables that send all but loopback here."""
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        sandbox = {spelled: self.base_url for name in names for spelled in (name, name.lower())}
        return sandbox | dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")

    def refuse_all(self) -> None:
        """Refuse until the listener is closed."""
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            with caller:
                caller.settimeout(5)
                try:
                    words = caller.recv(4096).split(b" ", 2)
                    self.asked.add(words[1].decode().rpartition("://")[2].partition(":")[0].partition("/")[0])
                    caller.sendall(b"HTTP/1.1 502 Nowhere\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                except (OSError, IndexError):
                    self.asked.add("(unreadable)")


@contextmanager
def dead_end() -> Generator[DeadEnd]:
    """Keep a dead end as long as the block runs."""
    listener = socket.create_server(("127.0.0.1", 0))
    end = DeadEnd(listener)
    thread = threading.Thread(target=end.refuse_all, daemon=True)
    thread.start()
    try:
        yield end
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
