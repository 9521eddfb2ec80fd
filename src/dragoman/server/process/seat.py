"""The place of a process among those that serve together."""

from socket import socket

from msgspec import Struct

from dragoman.server.process.board import Board
from dragoman.server.process.siblings import Siblings


class Seat(Struct, frozen=True, kw_only=True):
    """What a worker is given by its parent."""

    worker: int
    board: Board
    socket: socket
    """Listens already."""
    siblings: Siblings
