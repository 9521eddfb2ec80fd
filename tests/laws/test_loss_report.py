"""The report of losses of recorded traffic is short, and most of it has no material loss."""

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

from conformance.recordings import replies
from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.dialects.record import Call
from dragoman.interpreter.adaptation import traits_for
from dragoman.interpreter.reply_adapter import Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.tool_kinds import find_tool_for
from dragoman.interpreter.translate import translate_request
from laws.documents import DIALECTS, MODELS, requests
from shelf import needs_shelf

Reports = Iterator[Sequence[Loss]]
MOST_ENTRIES = 10


def other_dialects(source: str) -> list[str]:
    return [name for name in DIALECTS if name != source]


def ask_for_search(client: str) -> Context:
    """Return the context of a client that declares a web search, as one whose replies have searches does."""
    tool = find_tool_for("search", traits_for(client, MODELS[client]))
    return Context(request=Request(model="m", messages=(), tools=(tool,) if tool is not None else ()))


def translate_stream(body: bytes, source: str, client: str) -> Sequence[Loss]:
    translator = StreamTranslator(source, client, ask_for_search(client))
    translator.feed(body)
    translator.close()
    return translator.losses


def report_replies(*, streamed: bool) -> Reports:
    for source in DIALECTS:
        for reply in replies(source):
            for client in other_dialects(source) if reply.streamed is streamed else ():
                try:
                    if streamed:
                        yield translate_stream(reply.body, source, client)
                    else:
                        yield translate_response(reply.body, source, client, ask_for_search(client)).losses
                except Problem:
                    continue  # the client gets an error


def report_requests() -> Reports:
    for source in DIALECTS:
        for _, body in requests(source):
            for target in other_dialects(source):
                try:
                    call = Call(json.dumps(body).encode(), "m")
                    yield translate_request(call, source, target, model=MODELS[target]).losses
                except Problem:
                    continue


def measure_share(reports: Sequence[Sequence[Loss]], matches: Callable[[Sequence[Loss]], bool]) -> float:
    return 100 * sum(map(matches, reports)) / len(reports)


def has_no_material_loss(losses: Sequence[Loss]) -> bool:
    return all(loss.grade == "informational" for loss in losses)


@needs_shelf
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_most_recorded_replies_have_a_short_report_without_material_loss(streamed):
    reports = list(report_replies(streamed=streamed))
    assert len(reports) > 3000
    assert measure_share(reports, has_no_material_loss) >= 86
    assert sum(map(len, reports)) / len(reports) <= 2
    assert measure_share(reports, lambda losses: len(losses) <= MOST_ENTRIES) >= 99


@needs_shelf
def test_most_recorded_requests_have_no_material_loss():
    reports = list(report_requests())
    assert len(reports) > 8000
    assert measure_share(reports, has_no_material_loss) >= 60
