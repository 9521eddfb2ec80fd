"""Encode the values of steps as bytes that a durable engine can store, and decode them.

A step returns a model's reply (`Response`), the result of a call (`Execution`, without its handler, because functions
cannot be stored), or a text.
"""

from typing import assert_never

from msgspec import Raw, Struct, json

from dragoman.core.parts import ToolResult
from dragoman.core.request import Message
from dragoman.core.response import Finish, Response, Usage
from dragoman.core.serialization import decode_messages, encode_messages
from dragoman.core.value import Extras
from dragoman.tools import Execution, Outcome

StepValue = Response | Execution | str


class _Response(Struct, frozen=True, kw_only=True, tag="response", omit_defaults=True):
    id: str
    model: str
    message: Raw
    finish: Finish
    usage: Usage | None = None
    created: int | None = None
    extras: Extras | None = None


class _Execution(Struct, frozen=True, kw_only=True, tag="execution", omit_defaults=True):
    answered: Raw
    outcome: Outcome
    milliseconds: float = 0.0
    size: int = 0
    repeated: bool = False


class _Text(Struct, frozen=True, tag="text"):
    text: str


_DECODER = json.Decoder(_Response | _Execution | _Text)


def encode_value(value: StepValue) -> bytes:
    """Encode the value of a step."""
    match value:
        case str():
            return json.encode(_Text(value))
        case Response():
            reply = encode_messages([Message(role="assistant", parts=value.parts)])
            return json.encode(
                _Response(
                    id=value.id,
                    model=value.model,
                    message=Raw(reply),
                    finish=value.finish,
                    usage=value.usage,
                    created=value.created,
                    extras=value.extras,
                )
            )
        case Execution():
            result = encode_messages([Message(role="user", parts=(value.result,))])
            return json.encode(
                _Execution(
                    answered=Raw(result),
                    outcome=value.outcome,
                    milliseconds=value.milliseconds,
                    size=value.size,
                    repeated=value.repeated,
                )
            )
        case _:
            assert_never(value)


def decode_value(data: bytes) -> StepValue:
    """Decode the value of a step; raise `ValueError` if the data is invalid."""
    value: _Response | _Execution | _Text = _DECODER.decode(data)
    match value:
        case _Text():
            return value.text
        case _Response():
            (message,) = decode_messages(bytes(value.message))
            return Response(
                id=value.id,
                model=value.model,
                parts=message.parts,
                finish=value.finish,
                usage=value.usage,
                created=value.created,
                extras=value.extras,
            )
        case _Execution():
            (message,) = decode_messages(bytes(value.answered))
            (result,) = message.parts
            if not isinstance(result, ToolResult):
                raise ValueError("the stored value is not a tool result")  # noqa: TRY004  the stored data is wrong, not a Python type
            return Execution(
                result=result,
                outcome=value.outcome,
                milliseconds=value.milliseconds,
                size=value.size,
                repeated=value.repeated,
            )
        case _:
            assert_never(value)


packed, unpacked = encode_value, decode_value
"""The names by which earlier versions documented these two."""
