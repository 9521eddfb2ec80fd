"""The simulator's settings, and the state it keeps between requests."""

import math
from collections import Counter, deque
from typing import Any

import msgspec
from msgspec import Struct

from dragoman.http.message import Headers, Request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.api import ApiState
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.usage import PromptCache
from dragoman.simulator.faults import read_fault
from dragoman.simulator.recordings import Recordings
from dragoman.simulator.script import Script

_MOST_KEPT = 10_000
_MOST_BYTES = 256 << 20
"""Limit on the total size of recorded bodies, so that a long-running client cannot fill the memory."""


class Settings(Struct, frozen=True, kw_only=True):
    """The simulator's options. The defaults give a strict and fast simulator."""

    seed: int = 0
    recorded: bool = False
    """Accept well-formed signatures of the real vendors."""
    chunk: int = 24
    """Approximate number of characters in a delta of a stream; 0 for all at once."""
    delay: float = 0.0
    """Seconds between the frames of a stream."""
    split: int = 0
    """Send frames in pieces of at most so many bytes; 0 to send each frame whole."""
    interleaved: bool = False
    """Interleave the deltas of parallel calls, where the API allows that."""
    partial_args: bool = False
    """Stream the arguments of calls in pieces on Vertex."""
    fault: str = ""
    """The fault of every request."""
    key: str = ""
    """The only accepted key; if empty, any key is accepted that does not begin with `invalid`."""
    script: Script | None = None
    recordings: Recordings | None = None

    def __post_init__(self) -> None:
        """Validate the options, so that mistakes are found at the start; raises `ValueError`."""
        for name in ("chunk", "delay", "split"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be 0 or a positive finite number, not {value}")
        if self.fault:
            read_fault(self.fault)


class Seen(Struct, frozen=True, kw_only=True):
    """A request the simulator received, and its outcome."""

    method: str
    target: str
    headers: Headers
    body: bytes
    api: str = ""
    status: int = 0
    """The status of the reply; 0 for a fault that sends none."""
    rule: str = ""
    """The rule that rejected the request; "" if none did."""

    def json(self) -> Any:
        """Return the body as Python values."""
        return msgspec.json.decode(self.body)


class State:
    """What all requests of one simulator share: its settings, its caches, and the requests it received."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.requests: deque[Seen] = deque()
        self._kept_bytes = 0
        self.signer = TokenSigner(self.settings.seed)
        self.prompt_cache = PromptCache()
        self.fault_counts: Counter[str] = Counter()
        """How often each fault has been requested."""
        self.answer_count = 0
        self._states: dict[str, ApiState] = {}

    def state_of(self, api: str) -> ApiState | None:
        """Return the state of an API; None for an API without state."""
        make = APIS[api].create_state
        if make is not None and api not in self._states:
            self._states[api] = make()
        return self._states.get(api)

    def record_request(self, request: Request, api: str, status: int, rule: str = "") -> None:
        """Record a request; the oldest ones are dropped when the limits are exceeded."""
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
