"""Reads the members by which compatible servers take thinking: each server has a form of its own.

They are in few requests, so only those that have one of them get here.
"""

from collections.abc import Callable
from typing import Any, cast

from dragoman.core.problems import Problem
from dragoman.core.request import EFFORTS, Thinking
from dragoman.dialects.chat.fields import build_extras
from dragoman.wire.json import Malformed, decode, decode_object, encode
from dragoman.wire.pointer import escape


def _get_known(values: dict[Any, Any]) -> Callable[[Any], Any]:
    """Return a function that maps a known value; None for any other, and for a number in place of a truth value."""
    return lambda value: values.get(value) if isinstance(value, (str, bool)) else None


def _get_count(value: Any) -> int | None:
    """Return a token count; None for any other value."""
    return value if type(value) is int and value >= 0 else None


_SWITCHES = {True: "enabled", False: "disabled"}
_TYPES = {"enabled": "enabled", "disabled": "disabled", "adaptive": "adaptive"}
_FORMS: dict[str, dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "thinking": {"type": ("mode", _get_known(_TYPES)), "budget_tokens": ("budget", _get_count)},
    "enable_thinking": {"": ("mode", _get_known(_SWITCHES))},
    "chat_template_kwargs": {
        "enable_thinking": ("mode", _get_known(_SWITCHES)),
        "thinking": ("mode", _get_known(_SWITCHES)),
    },
    "reasoning": {
        "enabled": ("mode", _get_known(_SWITCHES)),
        "effort": ("effort", _get_known(dict(zip(EFFORTS, EFFORTS, strict=True)))),
        "max_tokens": ("budget", _get_count),
        "exclude": ("visible", _get_known({True: False})),
    },
    "thinking_budget": {"": ("budget", _get_count)},
    "thinking_token_budget": {"": ("budget", _get_count)},
}
"""Members of a request by which servers turn thinking on or off: the members below each ("" for its own value), the
field of `Thinking` that each gives, and what reads it.
"""
_BOOLEAN, _INTEGER, _TEXT, _OBJECT = (
    (bool, "true or false"),
    (int, "an integer"),
    (str, "a string"),
    (dict, "an object"),
)
_TYPES_OF_MEMBERS: dict[str, tuple[type, str]] = {
    "enable_thinking": _BOOLEAN,
    "thinking_budget": _INTEGER,
    "thinking_token_budget": _INTEGER,
    "thinking/type": _TEXT,
    "thinking/budget_tokens": _INTEGER,
    "reasoning/enabled": _BOOLEAN,
    "reasoning/effort": _TEXT,
    "reasoning/max_tokens": _INTEGER,
    "reasoning/exclude": _BOOLEAN,
}
"""The type of each member that is not an object, and its name for an error; the variables of a template have any."""


FORMS = frozenset(f"/{member}" for member in _FORMS)
"""The pointers of those members."""


def read_thinking(known: Thinking | None, fields: dict[str, bytes]) -> tuple[Thinking | None, dict[str, bytes]]:
    """Add to `known`, which has the effort, what the raw members of a request say; return it and the rest of `fields`.

    A value that is unknown, or contradicts one before it, is not parsed. `Thinking.extras` has all that was parsed.
    Raise `Problem` for a member of a wrong JSON type.
    """
    found: dict[str, Any] = {"effort": known.effort} if known is not None else {}
    written = {"/reasoning_effort": encode(known.effort)} if known is not None else {}
    rest = dict(fields)
    for member, form in _FORMS.items():
        raw = fields.get(f"/{member}", b"null")
        try:
            value = decode(raw)
        except Malformed as error:  # nested too deeply
            raise Problem("invalid_request", error.message, where=f"/{member}") from None
        _require_types(member, value, form)
        parsed = _read_form(value, form, found)
        if not parsed:
            continue
        written[f"/{member}"] = encode(parsed.get("", parsed))
        del rest[f"/{member}"]
        if "" not in parsed:
            others = decode_object(raw).items()
            rest |= {f"/{member}/{escape(name)}": bytes(one) for name, one in others if name not in parsed}
    if len(rest) == len(fields) and rest.keys() == fields.keys():
        return known, fields
    return Thinking(**found, extras=build_extras(written)), rest


def _require_types(member: str, value: Any, form: dict[str, tuple[str, Callable[[Any], Any]]]) -> None:
    """Raise `Problem` if a member, or one below it that the form reads, is of a wrong type; null is no value."""
    expected, name = _TYPES_OF_MEMBERS.get(member, _OBJECT)
    if value is not None and type(value) is not expected:
        raise Problem("invalid_request", f"{member.replace('/', '.')} must be {name}", where=f"/{member}")
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for below in form:
        if f"{member}/{below}" in _TYPES_OF_MEMBERS:
            _require_types(f"{member}/{below}", members.get(below), {})


def _read_form(value: Any, form: dict[str, tuple[str, Callable[[Any], Any]]], found: dict[str, Any]) -> dict[str, Any]:
    """Add the fields of `Thinking` that one member gives to `found`; return the values that were parsed."""
    parsed: dict[str, Any] = {}
    members: dict[str, Any] = {"": value}
    if isinstance(value, dict) and "" not in form:
        members = cast("dict[str, Any]", value)
    for name, (field, read) in form.items():
        result = read(members[name]) if name in members else None
        if result is not None and found.setdefault(field, result) == result:
            parsed[name] = members[name]
    return parsed
