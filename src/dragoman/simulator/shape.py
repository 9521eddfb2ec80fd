"""Hold a body to a typed shape, and tell what is wrong as a vendor does.

A shape is a msgspec type written down from the vendor's documents. It refuses unknown members, missing ones, wrong
types, words that are not in a list and numbers out of bounds; which of the five it was names the rule.
"""

import re
from collections.abc import Callable
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.json import Decoder

from dragoman.simulator.rule import Violation
from dragoman.wire.pointer import from_path

T = TypeVar("T")
Fault = Literal["json", "unknown-field", "required", "type", "enum", "bounds"]
_PATH = re.compile(r" - at `(?:key in )?(\$[^`]*)`$")
_FAULTS: tuple[tuple[re.Pattern[str], Fault], ...] = (
    (re.compile(r"Object contains unknown field `(?P<name>[^`]*)`"), "unknown-field"),
    (re.compile(r"Object missing required field `(?P<name>[^`]*)`"), "required"),
    (re.compile(r"Invalid (?:enum )?value (?P<name>.*)"), "enum"),
    (re.compile(r"Expected `[^`]*`(?:, got `[^`]*`)?$"), "type"),
    (re.compile(r"Expected"), "bounds"),
)


class Strict(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Base of shapes: exactly the vendor's members."""


class Misshapen(Struct, frozen=True):
    """What is wrong with a body: the fault, its pointer, the member's name where one is named, msgspec's words."""

    fault: Fault
    where: str
    name: str
    words: str


class Shaped(Generic[T]):
    """A body of type `T`, or what is wrong with it in the words of `say`. Rules are named `{prefix}.{fault}`."""

    def __init__(self, hint: Any, prefix: str, say: Callable[[Misshapen], str], status: int = 400) -> None:
        self._decoder: Decoder[T] = Decoder(hint)
        self._prefix = prefix
        self._say = say
        self._status = status

    def read(self, body: bytes) -> T | Violation:
        """Decode a body."""
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as error:
            wrong = _read_error(str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            wrong = Misshapen("json", "", "", str(error))
        return Violation(self._say(wrong), wrong.where, self._status, f"{self._prefix}.{wrong.fault}")


def _read_error(message: str) -> Misshapen:
    path = _PATH.search(message)
    where = from_path(path[1]) if path is not None else ""
    words = message[: path.start()] if path is not None else message
    for pattern, fault in _FAULTS:
        found = pattern.match(words)
        if found is not None:
            return Misshapen(fault, where, found.groupdict().get("name") or "", words)
    return Misshapen("type", where, "", words)
