"""Answers in several hops: Gemini 4 stops at a limit, and goes on when it is asked again with the token it gave.

The token tells how far the answer had come, and is signed. What was asked is asked again as it was, so the answer is
the same one.
"""

from base64 import b64decode, b64encode
from binascii import Error
from typing import Any

from msgspec import structs

from dragoman.simulator.api import Accepted, Occasion
from dragoman.simulator.apis.gemini.heard import heard_in
from dragoman.simulator.model.usage import text_tokens
from dragoman.simulator.signatures import Signer
from dragoman.simulator.talk import Answer, Usage

_CONTINUES = "gemini-4"
_HOP = 600
"""Characters of a hop; with Google it is some 32,000 tokens."""


def hop(answer: Answer, accepted: Accepted, occasion: Occasion) -> tuple[Answer, dict[str, Any]]:
    """Return what of an answer is said in this hop, and how a candidate tells that there is more."""
    heard = heard_in(accepted)
    begin = place_of(heard.request.continuation_token or "", occasion.signer) or 0
    plain = answer.end == "stop" and not (answer.calls or answer.query) and accepted.ask.output_schema is None
    if not plain or not heard.model.startswith(_CONTINUES) or len(answer.text) <= _HOP:
        return answer, {}
    text, rest = answer.text[begin : begin + _HOP], answer.text[begin + _HOP :]
    thought = answer.usage.thought if not begin else 0
    usage = Usage(
        input=answer.usage.input, output=thought + text_tokens(text), cached=answer.usage.cached, thought=thought
    )
    said = structs.replace(answer, text=text, thought=answer.thought if not begin else "", usage=usage)
    if not rest:
        return said, {}
    token = _token(begin + _HOP, occasion.signer)
    return structs.replace(said, end="length"), {"finishReason": "CONTINUATION", "continuationToken": token}


def place_of(token: str, signer: Signer) -> int | None:
    """Return how far an answer had come when a token was given; None for a token that was not given here."""
    try:
        written, _, signature = b64decode(token + "=" * (-len(token) % 4), validate=True).decode().partition(" ")
    except (Error, ValueError):
        return None
    return int(written) if written.isdecimal() and signer.judge(signature, written) == "genuine" else None


def _token(place: int, signer: Signer) -> str:
    return b64encode(f"{place} {signer.issue(str(place), 'continuation')}".encode()).decode()
