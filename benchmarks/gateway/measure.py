"""Send the same traffic to all servers in turn, round after round, and report what each spent.

Rounds are interleaved, so that a noisy neighbour disturbs all alike. What counts is the CPU time of a server's
processes; a ratio is the median of the rounds' ratios.
"""

import asyncio
import os
import random
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from msgspec import Struct

from benchmarks.bodies import render
from benchmarks.gateway import peers
from benchmarks.gateway.cases import YARDSTICK_ROUTE, Case
from benchmarks.gateway.load import Post, WrongAnswer, send
from benchmarks.gateway.program import Program
from benchmarks.gateway.start import wait_for_answer
from benchmarks.gateway.traffic import traffic
from benchmarks.gateway.upstream import EVENTS

OURS, TRANSLATOR, FORWARDER, LITELLM = "dragoman", "translator", "forwarder", "LiteLLM"
_LITELLM_START = 120.0
_LITELLM_MOST = 60
"""LiteLLM gets fewer requests a round: it takes a hundred times as long for one."""
_FIRST_REQUESTS = 100


class Row(Struct, frozen=True, kw_only=True):
    """One measured case: microseconds of CPU per request or event, of each server in each round."""

    name: str
    bytes: int
    goal: float | None
    load: float
    """The machine's load average afterwards."""
    spent: dict[str, list[float]]
    wrong: str = ""
    """What was wrong with an answer, and whose it was."""

    def median(self, server: str) -> float:
        """Return what a server spends."""
        return statistics.median(self.spent[server])

    def ratio(self, server: str, yardstick: str) -> float:
        """Return how many times the yardstick's cost a server's is."""
        return statistics.median(
            one / other for one, other in zip(self.spent[server], self.spent[yardstick], strict=True)
        )

    @property
    def is_missed(self) -> bool:
        """Return whether the goal is missed."""
        return self.goal is not None and self.ratio(OURS, TRANSLATOR) > self.goal


class _Server(Struct, frozen=True):
    name: str
    program: Program
    address: str
    headers: str = ""


class SideBySideRun:
    """The servers, as long as the block runs; `others` are further versions of the gateway by name."""

    def __init__(self, folder: Path, rounds: int, others: Mapping[str, str], litellm: str | None) -> None:
        self._folder = folder
        self._rounds = rounds
        self._others = others
        self._litellm = litellm
        self._sent = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            upstream = stack.enter_context(peers.upstream())
            self._upstream = upstream.address()
            programs = {
                OURS: peers.gateway(self._upstream, self._folder),
                **{name: peers.gateway(self._upstream, self._folder, path) for name, path in self._others.items()},
                TRANSLATOR: peers.translator(self._upstream),
                FORWARDER: peers.forwarder(self._upstream),
            }
            self._servers = [
                _Server(name, stack.enter_context(program), program.address()) for name, program in programs.items()
            ]
            if self._litellm is not None:
                peer = peers.LiteLLM(self._litellm, self._upstream, self._folder)
                program = stack.enter_context(peer.program)
                wait_for_answer(program, peer.address, peer.headers, _LITELLM_START)
                self._servers.append(_Server(LITELLM, program, peer.address, peer.headers))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def names(self) -> list[str]:
        """The servers, in the order they were started."""
        return [server.name for server in self._servers]

    def row(self, case: Case) -> Row:
        """Measure one case."""
        asyncio.run(send(f"{self._upstream}/pace?{case.pace}", [Post(b"", (b"ok",))], 1))
        servers = [server for server in self._servers if server.name != LITELLM or case.route == YARDSTICK_ROUTE]
        spent: dict[str, list[float]] = {server.name: [] for server in servers}
        size = 0
        # The first round is not counted: what is made at first use is made there.
        for number in range(-1, self._rounds):
            posts = self._posts(case, _FIRST_REQUESTS if number < 0 else case.count)
            size = len(posts[OURS][-1].body)
            order = list(servers)
            random.Random(number).shuffle(order)  # noqa: S311  only an order
            for server in order:
                try:
                    cost = self._spent(case, server, posts.get(server.name, posts[OURS]))
                except WrongAnswer as error:
                    return self._result(case, size, {}, f"{server.name}: {error}")
                if number >= 0:
                    spent[server.name].append(cost)
        return self._result(case, size, spent)

    def _result(self, case: Case, size: int, spent: dict[str, list[float]], wrong: str = "") -> Row:
        load = os.getloadavg()[0]
        return Row(name=case.name, bytes=size, goal=case.goal, load=load, spent=spent, wrong=wrong)

    def _posts(self, case: Case, count: int) -> dict[str, list[Post]]:
        """Return a round's requests: the client's, and as each yardstick gets and answers them."""
        count = min(count, case.count)
        requests = traffic(case.size, case.mode, count, self._sent)
        self._sent += count
        yardstick = case.on_yardstick()

        def posts(kind: Case, marker: bytes) -> list[Post]:
            bodies = [render(kind.dialect, request.conversation, **kind.members) for request in requests]
            return [Post(body, (marker, one.ticket)) for body, one in zip(bodies, requests, strict=True)]

        found = {OURS: posts(case, case.marker)}
        found[TRANSLATOR] = found[OURS] if case == yardstick else posts(yardstick, yardstick.marker)
        # It passes on what Gemini answers, whatever it was asked.
        found[FORWARDER] = [Post(post.body, (b'"functionCall"', post.markers[1])) for post in found[TRANSLATOR]]
        found[LITELLM] = found[OURS][:_LITELLM_MOST]
        return found

    def _spent(self, case: Case, server: _Server, posts: list[Post]) -> float:
        """Return microseconds of CPU per request, or per event of a stream."""
        path = case.on_yardstick().path if server.name in (TRANSLATOR, FORWARDER) else case.path
        before = server.program.cpu_seconds()
        asyncio.run(send(server.address + path, posts, case.connections, server.headers))
        return (server.program.cpu_seconds() - before) * 1e6 / (len(posts) * (EVENTS if case.stream else 1))
