"""Anthropic Messages, in its direct form and in that of Vertex."""

from typing import Any

from msgspec.json import decode, encode

from dragoman.simulator.api import Accepted, Api
from dragoman.simulator.apis.messages.errors import BAD_KEY, BAD_TOKEN, NO_KEY, fail, headers, missing_headers, refuse
from dragoman.simulator.apis.messages.read import read_ask
from dragoman.simulator.apis.messages.reading import read_body
from dragoman.simulator.apis.messages.rules import notes, rules_for
from dragoman.simulator.apis.messages.stream import stream
from dragoman.simulator.apis.messages.write import whole
from dragoman.simulator.rule import Situation, Violation, first_violation
from dragoman.simulator.signatures import Signer


def accept(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    """Accept a request, or tell what is wrong with it."""
    try:
        return _judged(body, situation, signer)
    except RecursionError:
        return Violation("The request body is nested too deeply", "", 400, "messages.json")


def _judged(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    reading = read_body(body, situation)
    if isinstance(reading, Violation):
        return reading
    wrong = first_violation(rules_for(signer), reading, situation)
    if wrong is not None:
        return wrong
    streams = bool(reading.generating is not None and reading.generating.stream)
    return Accepted(ask=read_ask(reading), body=reading, stream=streams)


def count(_: Accepted, tokens: int) -> bytes:
    """Answer how many tokens a request has."""
    return encode({"input_tokens": tokens})


def silenced(data: bytes) -> bytes:
    """Take the blocks out of a reply, or a frame out of a stream when it is about one."""
    reply: dict[str, Any] = decode(data)
    if str(reply["type"]).startswith("content_block"):
        return b""
    return encode({**reply, "content": []}) if reply["type"] == "message" else data


API = Api(
    name="messages",
    rules=notes(),
    accept=accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    bad_token=BAD_TOKEN,
    headers=headers,
    silenced=silenced,
    checks_headers=missing_headers,
)
