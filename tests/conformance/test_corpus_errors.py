"""Every recorded error, translated to every dialect, raises the right exception in the official client with its message."""

import pytest

from conformance.recordings import DIALECTS, Refused, errors
from dragoman.dialects.record import ErrorReply
from dragoman.interpreter.errors import translate_error
from oracles import read_error
from shelf import enough

STATUS_CLASSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "APIStatusError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    429: "RateLimitError",
}
REFINED = {(400, 401), (400, 404), (400, 429), (400, 402), (429, 402)}
"""Vendors answer 400 to an unknown model or key and to an empty purse; their code says so, and so does our status."""


def wrong(recorded: Refused, reply: ErrorReply, target: str) -> str:
    raised = read_error(target, reply.status, {"content-type": "application/json", **reply.headers}, reply.body)
    if reply.status != recorded.status and (recorded.status, reply.status) not in REFINED:
        return f"{recorded.status} became {reply.status}"
    expected = "ClientError" if target == "gemini" else STATUS_CLASSES[reply.status]
    if raised is None or (raised.name, raised.status) != (expected, reply.status):
        return f"{reply.status} raised {raised}"
    # Anthropic's and Google's exceptions print the body as Python does, quotes and line ends escaped.
    printed = {recorded.words, repr(recorded.words)[1:-1], recorded.words.replace("'", "\\'").replace("\n", "\\n")}
    if not any(words in raised.message for words in printed):
        return f"{recorded.words!r} is not in {raised.message!r}"
    return ""


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_a_recorded_error_is_raised_with_its_status_class_and_message(source, target):
    found: list[str] = []
    for recorded in errors(source):
        reply = translate_error(recorded.status, recorded.headers, recorded.body, source, target)
        if what := wrong(recorded, reply, target):
            found.append(f"{recorded.id}: {what}")
    assert len(errors(source)) > enough(15)
    assert not found, "\n".join(found)
