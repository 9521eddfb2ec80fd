"""Translate the settings of a vendor's web search: allowed and blocked domains, the user's place, how often, how much.

Each dialect has a table of the settings that its search has (`search_settings`). A setting that the target's search
does not have is reported; a value of a wrong type is rejected before an upstream is called.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import structs

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


def translate_settings(tool: NativeTool, found: NativeTool, given: Iterable[str], ledger: Ledger) -> NativeTool:
    """Return the target's search `found` with the settings of `tool` that it has; report the others.

    `given` are the pointers of all settings of `tool`.
    """
    own, target = DIALECTS[tool.dialect].search_settings, DIALECTS[found.dialect].search_settings
    fields: dict[str, bytes] = {}
    translated: list[str] = []
    for setting, pointer in own.items():
        value = lookup(tool.raw, pointer)
        if value is None or value[1] == b"null":
            continue
        _require_type(value[1], setting, tool.where + pointer)
        if setting in target:
            fields[target[setting]] = value[1]
            translated.append(pointer)
    leaves = find_leaves(tool.raw, "")
    for setting in given:
        if not any(_is_below(pointer, setting) for pointer in translated):
            ledger.report_dropped(tool.where + setting, NO_SETTING)
            continue
        for leaf, value in leaves.items():
            is_sent = any(_is_below(leaf, pointer) for pointer in translated)
            if _is_below(leaf, setting) and not is_sent and value is not None:
                ledger.report_dropped(tool.where + leaf, NO_SETTING)
    return structs.replace(found, raw=graft(found.raw, fields)) if fields else found


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
