"""OpenAI Chat Completions: `POST /v1/chat/completions`."""

from typing import Any, cast

from dragoman.simulator.api import Accepted, Api, RuleNote
from dragoman.simulator.apis.chat import (
    rules_media,
    rules_messages,
    rules_models,
    rules_schemas,
    rules_settings,
    rules_shape,
    rules_tools,
)
from dragoman.simulator.apis.chat.errors import fail, refuse
from dragoman.simulator.apis.chat.read import read
from dragoman.simulator.apis.chat.shape import ChatRequest
from dragoman.simulator.apis.chat.store import Completions
from dragoman.simulator.apis.chat.stream import stream
from dragoman.simulator.apis.chat.words import GOT, SOME, say
from dragoman.simulator.apis.chat.write import silenced, whole
from dragoman.simulator.apis.openai.headers import of_answer
from dragoman.simulator.apis.openai.keys import BAD_KEY, NO_KEY
from dragoman.simulator.rule import Json, Rule, Situation, Violation, first_violation
from dragoman.simulator.shape import Misshapen, Shaped
from dragoman.simulator.signatures import Signer
from dragoman.wire.json import Malformed, decode, encode
from dragoman.wire.pointer import split

RULES: tuple[Rule[ChatRequest], ...] = (
    *rules_models.EXISTENCE_RULES,
    *rules_messages.RULES,
    *rules_media.RULES,
    *rules_tools.RULES,
    *rules_schemas.RULES,
    *rules_settings.RULES,
    *rules_models.RULES,
    rules_messages.CONTENT_RULE,
    rules_settings.JSON_RULE,
)
"""In the order in which they are looked at; OpenAI tells one fault."""
_SHAPE: Shaped[ChatRequest] = Shaped(ChatRequest, "chat", say)
_NO_COUNT = (
    "Unknown request URL: POST /v1/chat/completions/input_tokens. Please check the URL for typos, or see the docs at "
    "https://platform.openai.com/docs/api-reference/."
)


_NOT_JSON = Violation(say(Misshapen("json", "", "", "")), rule="chat.json")


def accept(body: bytes, situation: Situation, _: Signer) -> Accepted | Violation:
    """Judge a request; Chat Completions has no signatures to judge."""
    try:
        return _judged(body, situation)
    except (Malformed, RecursionError):
        # The shape stops at the first fault; what stands behind it may be no JSON at all.
        return _NOT_JSON


def _judged(body: bytes, situation: Situation) -> Accepted | Violation:
    request = _SHAPE.read(body)
    if isinstance(request, Violation):
        return _with_value(request, body)
    violation = first_violation(RULES, request, situation)
    if violation is not None:
        return violation
    return Accepted(ask=read(request), body=request, stream=bool(request.stream))


def _with_value(violation: Violation, body: bytes) -> Violation:
    """Name the value at fault, which the shape does not tell."""
    if GOT not in violation.message:
        return violation
    message = violation.message.replace(GOT, _told(body, violation.where))
    return Violation(message, violation.where, violation.status, violation.rule)


def _told(body: bytes, where: str) -> str:
    value: Any = decode(body)
    for step in split(where):
        if step == SOME:
            return "another"
        value = cast("Json", value)[step] if isinstance(value, dict) else value[int(step)]
    return encode(value).decode()


def count(_accepted: Accepted, _tokens: int) -> bytes:
    """Tell that tokens are not counted here."""
    error = {"message": _NO_COUNT, "type": "invalid_request_error", "param": None, "code": "unknown_url"}
    return encode({"error": error})


API = Api(
    name="chat",
    rules=(*rules_shape.NOTES, *(RuleNote(rule.name, rule.says, rule.source) for rule in RULES)),
    accept=accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    silenced=silenced,
    headers=of_answer,
    memory=Completions,
)
