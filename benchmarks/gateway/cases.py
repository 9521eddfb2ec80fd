"""The requests to the gateway: which dialect to which upstream, how large, how varied; and the goals."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

MODELS = {"gemini": "gemini-2.5-flash", "openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}
"""Clients name the upstream as the model; this is what it is called there."""


class Route(Struct, frozen=True):
    """A client's dialect, an upstream, and further members of the requests."""

    dialect: str
    upstream: str
    members: dict[str, Any] = {}


ROUTES = {
    "chat-gemini": Route("chat", "gemini"),
    "responses-gemini": Route("responses", "gemini", {"store": False}),
    "responses-stored-gemini": Route("responses", "gemini", {"store": True}),
    "messages-gemini": Route("messages", "gemini"),
    "gemini-openai": Route("gemini", "openai"),
    "chat-anthropic": Route("chat", "anthropic"),
    "chat-openai": Route("chat", "openai"),
}
YARDSTICK_ROUTE = "chat-gemini"
_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_MARKERS = {
    "chat": b'"tool_calls"',
    "responses": b'"function_call"',
    "messages": b'"tool_use"',
    "gemini": b'"functionCall"',
}
_COUNTS = {"small": 600, "medium": 200, "large": 24}
_CONNECTIONS = {"small": 8, "medium": 8, "large": 4}
_STREAMS = 96
_STREAM_CONNECTIONS = 32
_PACE = 0.005
_ALL = {
    "small": ("same", "newmsg", "clients50", "agents20", "fresh"),
    "medium": ("same", "newmsg", "fresh"),
    "large": ("same", "agents2", "fresh"),
}
_SOME = {"small": ("newmsg", "agents20", "fresh"), "medium": ("newmsg", "fresh"), "large": ("agents2", "fresh")}
_TABLE = {YARDSTICK_ROUTE: _ALL, "responses-stored-gemini": {"small": ("newmsg",)}}
GOALS = {
    "small:same": 4.5,
    "small:newmsg": 4.0,
    "small:clients50": 4.0,
    "small:agents20": 4.5,
    "small:fresh": 6.0,
    "medium:newmsg": 4.0,
    "medium:fresh": 10.0,
    "large:agents2": 1.2,
    "large:fresh": 4.0,
    "small:newmsg:sse5": 1.6,
}
"""How many times the translator's cost ours may be, on the route that the translator has too."""


class Case(Struct, frozen=True, kw_only=True):
    """One row of the table."""

    route: str
    size: str
    mode: str
    stream: bool = False

    @property
    def name(self) -> str:
        """The route, the size, the mode, and `sse5` for streams with an event every 5 ms."""
        return f"{self.route}:{self._kind}"

    @property
    def _kind(self) -> str:
        return f"{self.size}:{self.mode}{':sse5' if self.stream else ''}"

    @property
    def goal(self) -> float | None:
        """How many times the translator's cost ours may be."""
        return GOALS.get(self._kind) if self.route == YARDSTICK_ROUTE else None

    @property
    def dialect(self) -> str:
        """The client's."""
        return ROUTES[self.route].dialect

    @property
    def model(self) -> str:
        """What the client names as its model."""
        return ROUTES[self.route].upstream

    @property
    def path(self) -> str:
        """Where the client sends it."""
        if self.dialect != "gemini":
            return _PATHS[self.dialect]
        verb = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
        return f"/v1beta/models/{self.model}:{verb}"

    @property
    def members(self) -> dict[str, Any]:
        """What a body has besides the conversation; Gemini has the model and streaming in the URL."""
        if self.dialect == "gemini":
            return {}
        expected = {"model": self.model, **ROUTES[self.route].members}
        return {**expected, "stream": True} if self.stream else expected

    @property
    def marker(self) -> bytes:
        """What every right answer holds."""
        return _MARKERS[self.dialect]

    @property
    def count(self) -> int:
        """How many requests a round has."""
        return _STREAMS if self.stream else _COUNTS[self.size]

    @property
    def connections(self) -> int:
        """How many requests are under way at once."""
        return _STREAM_CONNECTIONS if self.stream else _CONNECTIONS[self.size]

    @property
    def pace(self) -> float:
        """Seconds between two events of the upstream."""
        return _PACE if self.stream else 0.0

    def on_yardstick(self) -> "Case":
        """Return the same traffic on the route that the translator has."""
        return Case(route=YARDSTICK_ROUTE, size=self.size, mode=self.mode, stream=self.stream)


def all_cases() -> Iterator[Case]:
    """Iterate the table's rows."""
    for route in ROUTES:
        for size, modes in _TABLE.get(route, _SOME).items():
            for mode in modes:
                yield Case(route=route, size=size, mode=mode)
        yield Case(route=route, size="small", mode="newmsg", stream=True)


def chosen(patterns: str) -> list[Case]:
    """Return the cases whose names match one of the comma-separated patterns; a name that is no row yet makes one."""
    known = list(all_cases())
    found: list[Case] = []
    for pattern in patterns.split(","):
        matching = [case for case in known if fnmatchcase(case.name, pattern)]
        found += [case for case in matching or [_parse_case(pattern)] if case not in found]
    return found


def _parse_case(name: str) -> Case:
    route, size, mode, *rest = [*name.split(":"), "", ""][: max(3, name.count(":") + 1)]
    if route not in ROUTES or size not in _COUNTS or not mode or rest not in ([], ["sse5"]):
        raise ValueError(f"no case is called {name!r}; write ROUTE:SIZE:MODE or ROUTE:SIZE:MODE:sse5")
    return Case(route=route, size=size, mode=mode, stream=bool(rest))
