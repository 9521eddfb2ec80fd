"""Ask all servers in turn, round after round, and tell what each spent.

Rounds are interleaved, so that a noisy neighbour disturbs all alike. CPU time of the server's process is what counts.
"""

import asyncio
import random
import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from msgspec import Struct

from benchmarks.gateway import peers
from benchmarks.gateway.cases import Case, cases
from benchmarks.gateway.load import Ask, answers
from benchmarks.gateway.program import Program
from benchmarks.gateway.start import wait_for_answer

_PATH = "/v1/chat/completions"
_LITELLM_START = 120.0


class Row(Struct, frozen=True, kw_only=True):
    """One measured case: microseconds of CPU per unit at best, and how often one holds the other."""

    name: str
    gateway: float
    forwarder: float
    litellm: float | None
    median_ratio: float
    most: float | None
    least: float | None

    @property
    def best_ratio(self) -> float:
        """Compare the quietest rounds: a neighbour can only make things slower."""
        return self.gateway / self.forwarder

    @property
    def peer_ratio(self) -> float:
        """Tell how often LiteLLM's cost holds ours."""
        return (self.litellm or 0.0) / self.gateway

    @property
    def verdict(self) -> str:
        """Judge against the forwarder."""
        return "" if self.most is None else "ok" if self.best_ratio <= self.most else "over"

    @property
    def peer_verdict(self) -> str:
        """Judge against LiteLLM."""
        if self.least is None or self.litellm is None:
            return ""
        return "ok" if self.peer_ratio >= self.least else "over"


class _Server(Struct, frozen=True):
    name: str
    program: Program
    address: str
    headers: str = ""
    marker: bytes = b""
    """What every answer of a server holds that translates nothing; empty where the case says it."""


class Bench:
    """The servers, as long as the block runs."""

    def __init__(self, folder: Path, litellm: str | None, rounds: int, seconds: float) -> None:
        self._folder = folder
        self._litellm = litellm
        self._rounds = rounds
        self._seconds = seconds

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            upstream = stack.enter_context(peers.upstream())
            self._upstream = upstream.address()
            ours = stack.enter_context(peers.gateway(self._upstream, self._folder))
            bare = stack.enter_context(peers.forwarder(self._upstream))
            self._servers = [
                _Server("gateway", ours, ours.address()),
                _Server("forwarder", bare, bare.address(), marker=b'"functionCall"'),
            ]
            if self._litellm is not None:
                peer = peers.LiteLLM(self._litellm, self._upstream, self._folder)
                program = stack.enter_context(peer.program)
                wait_for_answer(program, peer.address, peer.headers, _LITELLM_START)
                self._servers.append(_Server("litellm", program, peer.address, peer.headers))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rows(self, words: str = "") -> Iterator[Row]:
        """Measure each case whose name holds `words`."""
        for case in cases():
            if words in case.name:
                yield self._row(case)

    def _row(self, case: Case) -> Row:
        asyncio.run(answers(f"{self._upstream}/pace?{case.pace}", Ask(b"", b"ok", 1, 0)))
        spent: dict[str, list[float]] = {server.name: [] for server in self._servers}
        for server in self._servers:
            self._spent(case, server)  # what is made at first use is made now
        for number in range(self._rounds):
            order = list(self._servers)
            random.Random(number).shuffle(order)  # noqa: S311  only an order
            for server in order:
                spent[server.name].append(self._spent(case, server))
        ours, bare = spent["gateway"], spent["forwarder"]
        ratios = [mine / least for mine, least in zip(ours, bare, strict=True)]
        return Row(
            name=case.name,
            gateway=min(ours),
            forwarder=min(bare),
            litellm=min(spent["litellm"]) if "litellm" in spent else None,
            median_ratio=statistics.median(ratios),
            most=case.most,
            least=case.least,
        )

    def _spent(self, case: Case, server: _Server) -> float:
        """Return microseconds of CPU per unit."""
        marker = server.marker or case.marker
        ask = Ask(case.body, marker, case.connections, self._seconds, server.headers)
        before = server.program.cpu_seconds()
        count = asyncio.run(answers(server.address + _PATH, ask))
        return (server.program.cpu_seconds() - before) * 1e6 / (count * case.units)
