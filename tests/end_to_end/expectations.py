"""What an SDK must have seen and an upstream must have got in a cell of the matrix."""

import json
from typing import Any

from msgspec import structs

from end_to_end.matrix import CLIENTS, UPSTREAMS, Cell
from end_to_end.scenarios import IMAGE, SYSTEM, THOUGHT, Scenario
from end_to_end.talk import ReceivedRequest, ReceivedResult, Reply, Result, VendorTool

_OWN_SIGNATURE = "ZHJhZ29tYW4tc2lt"
"""Prefix of every signature of the simulator; a signature without it is a placeholder."""


def check(cell: Cell, client: str, upstream: str, scenario: Scenario, *, streamed: bool) -> None:
    """Hold a cell to its scenario."""
    scenario = scenario.select(client)
    reader = UPSTREAMS[upstream][1]
    assert len(cell.received) == len(cell.replies) == (2 if scenario.results else 1)
    assert all(request.status == 200 for request in cell.requests)
    assert [_is_streamed(request) for request in cell.requests] == [streamed] * len(cell.requests)
    _check_first(cell.replies[0], scenario, shown=client != "chat" and reader.NAME != "chat")
    for received in cell.received:
        assert (received.system, received.prompt, received.choice) == (SYSTEM, scenario.prompt, scenario.choice)
        _check_tools(received, scenario, is_own=client == reader.NAME)
    assert (cell.received[0].calls, cell.received[0].results) == ((), ())
    if scenario.results:
        _check_second(cell.replies[1], scenario)
        _check_history(cell, scenario)
        _check_results(cell.received[1], CLIENTS[client], reader, scenario)
        _check_thoughts(cell.received[1], client, reader, scenario)


def _is_streamed(request: Any) -> bool:
    return ":stream" in request.target or request.json().get("stream", False)


def _check_tools(received: ReceivedRequest, scenario: Scenario, *, is_own: bool) -> None:
    """The tools arrived unchanged; a vendor's own tool is a function with its parameters at other vendors."""
    vendor = scenario.vendor_tool
    assert received.vendor_tools == ((vendor.declaration,) if vendor is not None and is_own else ())
    if vendor is None or is_own:
        assert received.tools == scenario.tools
        return
    (tool,) = received.tools
    assert (tool.name, set(tool.schema["properties"])) == (vendor.name, vendor.parameters)
    assert tool.description


def _check_first(reply: Reply, scenario: Scenario, *, shown: bool) -> None:
    answer = scenario.answer
    assert reply.text == answer.text
    assert reply.thought == (answer.thought if shown else "")
    assert [(call.name, call.arguments) for call in reply.calls] == [
        (call.name, call.arguments) for call in answer.calls
    ]
    ids = {call.id for call in reply.calls}
    assert len(ids) == len(answer.calls)
    assert "" not in ids
    assert reply.finish == ("calls" if answer.calls else "stop")
    assert min(reply.tokens) > 0


def _check_second(reply: Reply, scenario: Scenario) -> None:
    assert scenario.quoted in reply.text
    assert (reply.calls, reply.finish) == ((), "stop")
    assert min(reply.tokens) > 0
    assert reply.cached > 1000 if scenario.is_cached else reply.cached == 0


def _check_history(cell: Cell, scenario: Scenario) -> None:
    """The calls came back as they were made, and each result with the id of its call."""
    received = cell.received[1]
    assert received.calls == cell.replies[0].calls
    assert [result.call_id for result in received.results] == [call.id for call in received.calls]
    assert len(received.results) == len(scenario.results)
    for call, result in zip(received.calls, received.results, strict=True):
        assert result.name in {None, call.name}


def _check_results(received: ReceivedRequest, client: Any, reader: Any, scenario: Scenario) -> None:
    vendor = scenario.vendor_tool
    for sent, got in zip(scenario.results, received.results, strict=True):
        assert structs.replace(got, call_id="", name=None) == _build_expected_result(sent, client, reader, vendor)
    in_result = client.SAYS_IMAGES and reader.HOLDS_IMAGES
    assert received.images == tuple(sent.image for sent in scenario.results if sent.image and not in_result)


def _build_expected_result(sent: Result, client: Any, reader: Any, vendor: VendorTool | None) -> ReceivedResult:
    """Return a tool result as an upstream gets it: a failure as a flag or as text, an image as such or as a placeholder."""
    in_words = sent.failed and not (client.SAYS_FAILED and reader.FLAGS_FAILED)
    value = sent.value if vendor is None or client.NAME == reader.NAME else vendor.text
    if sent.failed and client.FAILS_BY_MEMBER and not reader.FAILS_BY_MEMBER:
        value = {"error": value}
    if in_words:
        value = f"Error: {value if isinstance(value, str) else json.dumps(value)}"
    in_result = client.SAYS_IMAGES and reader.HOLDS_IMAGES
    if sent.image and client.SAYS_IMAGES and not reader.HOLDS_IMAGES:
        value = f"{sent.text}[image follows]"
    failed = (sent.failed and not in_words) if reader.FLAGS_FAILED else None
    return ReceivedResult(call_id="", value=value, failed=failed, images=(IMAGE,) if sent.image and in_result else ())


def _check_thoughts(received: ReceivedRequest, client: str, reader: Any, scenario: Scenario) -> None:
    """What the vendor signed came back to it, and the text of its thoughts if the client could ask for that."""
    signs_calls = reader.NAME == "gemini"
    replayed = scenario.thinks and reader.REPLAYS
    assert all(signature.startswith(_OWN_SIGNATURE) for signature in received.signatures)
    assert bool(received.signatures) == (signs_calls or replayed)
    # Gemini does not sign its thoughts, so a client that drops them loses only their text.
    is_lost = scenario.forgets and signs_calls and client != reader.NAME
    returned = replayed and client != "chat" and not is_lost
    assert "".join(received.thoughts) == (THOUGHT if returned else "")
