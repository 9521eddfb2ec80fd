"""Every known bug of another gateway is tested here, or waits for a part that does not exist yet."""

import re
from pathlib import Path

from shelf import cases, needs_shelf

LATER = {
    "T069": "sessions: no stored responses yet; a request that continues one is refused with a clear error",
    "T070": "sessions: no stored responses yet",
    "T117": "server: heartbeats are sent by the HTTP server when nothing flows",
    "T144": "MCP: no client yet",
    "T145": "MCP: no client yet",
    "T147": "MCP: no client yet",
    "T148": "MCP: no client yet",
    "T150": "agent: no loop of server-run tools yet",
    "T151": "agent: no loop of server-run tools yet",
    "T153": "tools: no reader of calls written as text yet",
    "T160": "upstreams: no Code Assist accounts and credentials yet",
}
PARTLY = {
    "T001": "gateway: a store of signatures for clients that echo only ids",
    "T012": "gateway: a store of signatures for Chat clients, which have no field for Anthropic's",
    "T015": "gateway: a store of reasoning for clients that do not echo it",
    "T079": "gateway: choosing Responses for such a request",
    "T126": "upstreams: trying again without ids where an endpoint refuses them",
    "T141": "gateway: estimates for what a cut stream did not count, marked as such",
    "T159": "upstreams: the URL's method, project and user_prompt_id",
}

_TEST = re.compile(r"^def test_t(\d{3})_", re.MULTILINE)


def ids_tested() -> set[str]:
    modules = Path(__file__).parent.glob("test_*.py")
    return {f"T{number}" for module in modules for number in _TEST.findall(module.read_text(encoding="utf-8"))}


@needs_shelf
def test_every_case_is_tested_or_waits_for_a_named_part():
    assert ids_tested() | LATER.keys() == cases().keys()


def test_no_case_is_both_tested_and_waiting():
    assert not ids_tested() & LATER.keys()
    assert PARTLY.keys() <= ids_tested()
