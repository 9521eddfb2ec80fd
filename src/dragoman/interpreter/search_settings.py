"""Translate the settings of a vendor's web search: allowed and blocked domains, the user's place, how often, how much.

Each dialect has a table of the settings that its search has (`search_settings`). A setting that the target's search
does not have is reported; a value of a wrong type is rejected before an upstream is called.
"""

from collections.abc import Container, Iterable
from typing import Any

import msgspec
from msgspec import structs

from dragoman.core.losses import Grade
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json
from dragoman.wire.lookup import find_leaves, lookup
from dragoman.wire.splice import graft

NO_SETTING = "the target's web search has no such setting"
_TYPES: dict[str, Any] = {"allowed_domains": list[str], "blocked_domains": list[str], "max_uses": int}
"""The types of settings that are not strings."""
_HINTS = frozenset(
    {
        "search_context_size",
        "search_content_types",
        "cache_control",
        "allowed_callers",
        "defer_loading",
        "strict",
        "response_inclusion",
    }
)
"""Settings whose loss is informational: they change how much is searched and sent, not what is found."""
_LIVE = "external_web_access"
"""OpenAI's switch for live pages; every other search has these."""


def translate_settings(
    tool: NativeTool, found: NativeTool, given: Iterable[str], ledger: Ledger, *, implied: Container[str] = ()
) -> NativeTool:
    """Return the target's search `found` with the settings of `tool` that it has; report the others.

    `given` are the pointers of all settings of `tool`, and `implied` the names of those that are sent elsewhere.
    """
    own, target = _list_pointers(tool), DIALECTS[found.dialect]
    fields: dict[str, bytes] = {}
    translated: list[str] = []
    for setting, pointer in own.items():
        value = lookup(tool.raw, pointer)
        if value is None or value[1] == b"null":
            continue
        _require_type(value[1], setting, tool.where + pointer)
        is_sent = setting in target.search_settings and setting not in target.unsent_settings
        if is_sent:
            fields[target.search_settings[setting]] = value[1]
        if is_sent or setting in implied:
            translated.append(value[0])
    leaves = find_leaves(tool.raw, "")
    for setting in given:
        if not any(_is_below(pointer, setting) for pointer in translated):
            grade = grade_setting(setting.rpartition("/")[2], leaves.get(setting))
            if grade is not None:
                ledger.report_dropped(tool.where + setting, NO_SETTING, grade)
            continue
        for leaf, value in leaves.items():
            is_sent = any(_is_below(leaf, pointer) for pointer in translated)
            if _is_below(leaf, setting) and not is_sent and value is not None:
                ledger.report_dropped(tool.where + leaf, NO_SETTING)
    return structs.replace(found, raw=graft(found.raw, fields)) if fields else found


def _list_pointers(tool: NativeTool) -> dict[str, str]:
    """Return the pointers of a search's settings, by name; also that of the limit that `take_call_limit` puts there."""
    dialect = DIALECTS[tool.dialect]
    limit = {"max_uses": "/max_uses"} if dialect.call_limit else {}
    return {**dialect.search_settings, **limit}


def grade_setting(name: str, value: object) -> Grade | None:
    """Return the grade of the loss of a setting; None if every search does what it says."""
    if name == _LIVE and value is True:
        return None
    return "informational" if name in _HINTS else "material"


def _is_below(pointer: str, above: str) -> bool:
    return f"{pointer}/".startswith(f"{above}/")


def _require_type(raw: bytes, setting: str, where: str) -> None:
    try:
        msgspec.json.decode(raw, type=_TYPES.get(setting, str))
    except msgspec.ValidationError as error:
        raise Problem("invalid_request", f"the web search's {setting} is invalid: {error}", where=where) from None


def merge_lists(before: bytes | None, more: bytes) -> bytes:
    """Return a list with the items of another that it does not have."""
    known = json.as_list(json.peek(before)) if before is not None else []
    return json.encode([*known, *(item for item in json.as_list(json.peek(more)) if item not in known)])
