"""Requests that differ from each other as those of real clients do.

Every request ends in a ticket of its own, which the upstream puts into its reply: an answer to another request is
noticed. The same arguments make the same bytes.
"""

import random
import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from benchmarks.bodies import Conversation, Turn, text, tool, tool_rounds

MODES = {
    "same": "one body again and again: what caches can do, not what a request costs",
    "newmsg": "known tools and settings, new messages in every request",
    "clientsN": "N clients with tools of their own, a new conversation in every request",
    "agentsN": "N agents; a conversation grows by a tool round a request, eight requests, then a new one begins",
    "fresh": "tools and messages that were never sent before",
}
GROWTH = 8
"""How many requests of an agent belong to one conversation."""
TICKET = b"ticket "
TICKET_DIGITS = 10
_MODE = re.compile(r"(same|newmsg|fresh)|(clients|agents)([1-9]\d*)")
_ROUNDS = {"small": (0, 0), "medium": (1, 700), "large": (75, 2500)}
_GROWN_RESULT = {"small": 120, "medium": 900, "large": 900}


class Sent(Struct, frozen=True):
    """One request: its conversation, and the ticket a right answer has."""

    conversation: Conversation
    ticket: bytes


def traffic(size: str, mode: str, count: int, start: int) -> list[Sent]:
    """Return `count` requests; `start` numbers the first, and no two runs with other numbers share a conversation."""
    found = _MODE.fullmatch(mode)
    if found is None:
        raise ValueError(f"there is no mode {mode!r}: {', '.join(MODES)}")
    if mode == "same":
        return [_request(size, 0, "known", 0)] * count
    return [_request(size, *one) for one in _seeds(found[1] or found[2], int(found[3] or 1), count, start)]


def _seeds(mode: str, crowd: int, count: int, start: int) -> Iterator[tuple[int, str, int]]:
    """Iterate the number of a conversation, whose tools it has, and by how many rounds it has grown."""
    for at in range(count):
        match mode:
            case "newmsg":
                yield start + at, "known", 0
            case "clients":
                yield start + at, f"client {at % crowd}", 0
            case "agents":
                conversation = start + at // (crowd * GROWTH) * crowd + at % crowd
                yield conversation, f"agent {at % crowd}", at // crowd % GROWTH
            case _:
                yield start + at, f"fresh {start + at}", 0


def _request(size: str, number: int, client: str, grown: int) -> Sent:
    begun = _begin(size, number, client)
    turns = [*begun.turns, *_grown(size, number, grown, begun)]
    return Sent(Conversation(begun.system, begun.tools, turns), _ticket(number, grown).encode())


def _ticket(number: int, grown: int) -> str:
    return f"{TICKET.decode()}{number * GROWTH + grown:0{TICKET_DIGITS}d}"


@lru_cache(maxsize=64)
def _begin(size: str, number: int, client: str) -> Conversation:
    """Return a conversation up to its question; system and tools are the client's."""
    own, chance = random.Random(f"{size} {client}"), random.Random(f"{size} {number}")  # noqa: S311
    rich = size != "small"
    tools = [tool(own, at, rich) for at in range(20 if rich else 2)]
    rounds, result = _ROUNDS[size]
    history = tool_rounds(chance, rounds, result, tools, mark=f"{chance.getrandbits(32):08x}")
    question = f"{text(chance, 400)} {_ticket(number, 0)}"
    return Conversation(text(own, 1200 if rich else 280), tools, [*history, Turn("user", question)])


def _grown(size: str, number: int, grown: int, begun: Conversation) -> Iterator[Turn]:
    """Iterate the calls and results of an agent since its question."""
    chance = random.Random(f"{size} {number} grown")  # noqa: S311
    for at in range(1, grown + 1):
        call_id = f"call_g{at:03d}{chance.getrandbits(32):08x}"
        name = begun.tools[at % len(begun.tools)]["name"]
        yield Turn("call", "", name, call_id, {"file": f"/data/{at}.csv", "lines": at})
        yield Turn("result", f"{text(chance, _GROWN_RESULT[size])} {_ticket(number, at)}", name, call_id)
