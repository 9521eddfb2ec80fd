"""The fault matrix: what goes wrong upstream, and what the SDK of each client must raise for it.

A fault is written as the simulator reads it behind a model's name. Before the first byte of an answer an error has its
true status; after it the status was sent already, and the error is in the stream.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import product

from msgspec import Struct, structs

from dragoman.config import RetriesTable
from dragoman.simulator.runner import in_thread
from server.conftest import Gateway, run_server_gateway, upstreams

CLIENTS = ("chat", "responses", "messages", "gemini")
UPSTREAMS = {
    "gemini": "gemini/gemini-3.8-flash",
    "anthropic": "anthropic/claude-opus-4-8",
    "openai": "openai/gpt-5.2",
    "responses": "responses/gpt-5.2",
}
IMPATIENT = {"hang": {"first_byte": 0.2}, "stall": {"idle": 0.4}}
"""Upstreams that are not waited for, by the faults that show it."""
WHOLE, STREAMED = (False,), (True,)
BOTH = (False, True)


class Row(Struct, frozen=True, kw_only=True):
    """A fault before the first byte, and the status that each client must see."""

    fault: str
    status: int
    messages: int = 0
    """The status for Anthropic's clients, where they know it by another."""
    gemini: int = 0
    manners: tuple[bool, ...] = BOTH
    upstreams: tuple[str, ...] = tuple(UPSTREAMS)
    clients: tuple[str, ...] = CLIENTS

    def expected(self, client: str) -> int:
        """Return the status that a client must see."""
        own = {"messages": self.messages, "gemini": self.gemini}.get(client, 0)
        return own or self.status


ROWS = (
    Row(fault="400", status=400),
    Row(fault="404", status=404),
    Row(fault="413", status=413),
    # Google has no such status: its own upstream would not say it either.
    Row(fault="422", status=422, gemini=400, upstreams=("anthropic", "openai", "responses")),
    # Our own key is refused: a client that heard so would look for the fault in its own.
    Row(fault="401", status=502),
    Row(fault="403", status=502),
    Row(fault="429,retry-after=50", status=429),
    Row(fault="503", status=503, messages=529),
    Row(fault="529", status=503, messages=529),
    Row(fault="500", status=502),
    Row(fault="502", status=502),
    Row(fault="504", status=504),
    Row(fault="html", status=502),
    Row(fault="html,status=404", status=404),
    Row(fault="empty", status=502),
    # An empty answer of the others is an answer; Gemini's own clients get it as it is.
    Row(fault="no-candidates", status=502, upstreams=("openai",)),
    Row(fault="no-candidates", status=502, upstreams=("gemini",), clients=("chat", "responses", "messages")),
    Row(fault="no-candidates", status=502, upstreams=("gemini",), clients=("gemini",), manners=STREAMED),
    Row(fault="malformed-call", status=502, upstreams=("responses",)),
    Row(fault="bad-json", status=502, manners=WHOLE),
    Row(fault="eof", status=502, gemini=503, manners=WHOLE),
    Row(fault="cut", status=502, gemini=503, manners=WHOLE),
    Row(fault="reset", status=502, gemini=503, manners=WHOLE),
    Row(fault="stream-error", status=502, manners=WHOLE),
    Row(fault="stall", status=504, manners=WHOLE, upstreams=("anthropic",)),
    Row(fault="reset,after=0", status=502, gemini=503, manners=STREAMED),
    Row(fault="eof,after=0", status=502, manners=STREAMED),
    Row(fault="bad-json,after=0", status=502, manners=STREAMED),
    Row(fault="stream-error,after=0", status=502, manners=STREAMED),
    Row(fault="stall,after=0", status=504, manners=STREAMED, upstreams=("responses",)),
    Row(fault="hang", status=504, upstreams=("gemini", "openai")),
)
BROKEN = ("stream-error,after=5", "cut,after=5", "eof,after=5", "bad-json,after=5", "reset,after=5", "stall,after=5")
"""Faults of a stream of which the client has heard something."""


class Cell(Struct, frozen=True, kw_only=True):
    """One fault for one client on one upstream."""

    client: str
    model: str
    streamed: bool
    status: int
    """The status that the client must see; 0 if the error is in the stream, after some text."""

    @property
    def name(self) -> str:
        """What the cell is called."""
        return f"{self.client} {'streamed' if self.streamed else 'whole'} {self.model}"


def _cells() -> Iterator[Cell]:
    for row in ROWS:
        for client, upstream, streamed in product(row.clients, row.upstreams, row.manners):
            status = row.expected(client)
            yield Cell(client=client, model=_model(upstream, row.fault), streamed=streamed, status=status)
    for fault, client, upstream in product(BROKEN, CLIENTS, UPSTREAMS):
        yield Cell(client=client, model=_model(upstream, fault), streamed=True, status=0)


def _model(upstream: str, fault: str) -> str:
    kind = next((kind for kind in IMPATIENT if fault.startswith(kind)), "")
    return f"{kind and kind + '-'}{UPSTREAMS[upstream]}~{fault}"


CELLS = {cell.name: cell for cell in _cells()}


@contextmanager
def fail() -> Generator[Gateway]:
    """A gateway whose simulator fails as the request specifies; without retries and with short timeouts."""
    with in_thread(delay=0.002, chunk=6) as simulator:
        impatient = {
            f"{kind}-{name}": structs.replace(table, **deadlines)
            for kind, deadlines in IMPATIENT.items()
            for name, table in upstreams(simulator.base_url).items()
        }
        with run_server_gateway(simulator, upstreams=impatient, retries=RetriesTable(most=0)) as gateway:
            yield gateway
