"""What a simulator keeps from one request to the next, and how it behaves."""

import math
from collections import Counter, deque
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.http.message import Headers, Request
from dragoman.simulator.api import ApiState
from dragoman.simulator.apis import APIS
from dragoman.simulator.faults import read_fault
from dragoman.simulator.model.usage import PromptCache
from dragoman.simulator.recordings import Recordings
from dragoman.simulator.script import Script
from dragoman.simulator.talk import TokenSigner

_MOST_KEPT = 10_000
_MOST_BYTES = 256 << 20
"""Of bodies that are kept: who sends documents for days shall not fill the memory."""


class Settings(Struct, frozen=True, kw_only=True):
    """How a simulator behaves. Without any of these it is a strict and quick stand-in."""

    seed: int = 0
    recorded: bool = False
    """Signatures of the real vendors are let through where they are well formed."""
    chunk: int = 24
    """About how many characters a delta of a stream has; 0 for all at once."""
    delay: float = 0.0
    """Seconds between the frames of a stream."""
    split: int = 0
    """Frames leave in pieces of at most so many bytes; 0 for a frame at once."""
    interleaved: bool = False
    """Parallel calls grow in turns, where the API can say that."""
    partial_args: bool = False
    """Arguments come in pieces on Vertex."""
    fault: str = ""
    """How every request goes wrong."""
    key: str = ""
    """The one key that is accepted; any is if this is empty, but none that begins with `invalid`."""
    script: Script | None = None
    recordings: Recordings | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only go wrong later; raises `ValueError`."""
        for name in ("chunk", "delay", "split"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number from 0 on, not {value}")
        if self.fault:
            read_fault(self.fault)


class Seen(Struct, frozen=True, kw_only=True):
    """A request that came in, and what became of it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    api: str = ""
    status: int = 0
    """What was answered; 0 for a fault that answers nothing."""
    rule: str = ""
    """The rule by which it was refused."""

    def json(self) -> Any:
        """Return the body as Python values."""
        return msgspec.json.decode(self.body)


class State:
    """What all requests of one simulator share: its settings, its memory, and the requests that came in."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.requests: deque[Seen] = deque()
        self._kept_bytes = 0
        self.signer = TokenSigner(self.settings.seed)
        self.prompt_cache = PromptCache()
        self.fault_counts: Counter[str] = Counter()
        """How often each fault has been asked for."""
        self.answer_count = 0
        self._states: dict[str, ApiState] = {}

    def state_of(self, api: str) -> ApiState | None:
        """Return what an API keeps; None for one that keeps nothing."""
        make = APIS[api].create_state
        if make is not None and api not in self._states:
            self._states[api] = make()
        return self._states.get(api)

    def record_request(self, request: Request, api: str, status: int, rule: str = "") -> None:
        """Remember what came in; the oldest is forgotten when it gets too much."""
        self._kept_bytes += len(request.body)
        while self.requests and (len(self.requests) >= _MOST_KEPT or self._kept_bytes > _MOST_BYTES):
            self._kept_bytes -= len(self.requests.popleft().body)
        self.requests.append(
            Seen(
                method=request.method,
                target=request.target,
                headers=request.headers,
                body=request.body,
                api=api,
                status=status,
                rule=rule,
            )
        )
