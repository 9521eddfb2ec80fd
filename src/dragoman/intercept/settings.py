"""What is configured of a client that is stood between: where it asks, how it is started, what is changed on the way.

An entry with a command is code that runs here, so entries come from whoever runs the gateway and never out of a
request.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

DIALECT = "gemini"
"""The dialect of intercepted clients: Gemini CLI and Google's SDKs are the clients that are intercepted."""
MARK = "{id}"
"""What stands for the name of a group of calls in the words that a client is told instead."""
PROMPT, URL = "{prompt}", "{url}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_Seconds = Annotated[float, Meta(gt=0)]


class InterceptSettingsError(ValueError):
    """An entry cannot be used."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class InterceptTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client, and what is done for it."""

    upstream: str
    """Where it asks."""
    hosts: tuple[str, ...] = ()
    """Hosts whose requests `dragoman intercept` brings here, by name or pattern; those of its kind if not said."""
    command: tuple[str, ...] = ()
    """The client, started for each turn; without one it runs already, and asks by itself."""
    env: dict[str, str] = {}
    """What its environment has beside the few variables that every program needs; `{url}` is where it is to ask."""
    cwd: str = ""
    """Where it runs; an empty directory of its own if not said."""
    strip: Literal["all", "none"] | tuple[str, ...] = "all"
    """Which of the client's own tools are taken out while there are others for it: all, none, or those named."""
    placeholder: str = f"(Waiting for tools: {MARK}.)"
    """What the client is told instead of calls; it knows the turn again by the id in it."""
    prompt: str = "(The tools have answered: go on.)"
    """What the client is given as a prompt when there are only results; it is taken out again."""
    model: str = ""
    """The model that is asked instead of the client's own choice."""
    system: str = ""
    """What the model is told beside the client's own instructions, or instead of them."""
    system_mode: Literal["append", "replace"] = "append"
    headers: dict[str, str] = {}
    """Headers to set on the way; an empty one is taken out."""
    timeout: _Seconds = 120.0
    """Seconds until the client must have asked with a prompt."""
    result_timeout: _Seconds = 600.0
    """Seconds until results must have come, and until the client must have asked with them."""
    idle: _Seconds = 3600.0
    """Seconds after which a session that nobody uses is forgotten."""


def read_intercepts(
    tables: Mapping[str, Any],
    dialects: Mapping[str, Collection[str]],
    convert: Callable[[str, Any, type[InterceptTable]], InterceptTable],
    resolve: Callable[[str, str], str],
) -> dict[str, InterceptTable]:
    """Read the entries; an `InterceptSettingsError` says what is wrong. `dialects` are those of each upstream."""
    found: dict[str, InterceptTable] = {}
    for name, said in tables.items():
        key = f"intercept.{name}"
        table = convert(key, said, InterceptTable)
        _check_entry(name, key, table, dialects)
        env = {variable: resolve(f"{key}.env.{variable}", value) for variable, value in table.env.items()}
        headers = {header.lower(): resolve(f"{key}.headers.{header}", value) for header, value in table.headers.items()}
        found[name] = structs.replace(table, env=env, headers=headers)
    return found


def _check_entry(name: str, key: str, table: InterceptTable, dialects: Mapping[str, Collection[str]]) -> None:
    if not _NAME.fullmatch(name):
        raise InterceptSettingsError(key, "a name has letters, digits, `_`, `.` and `-` only")
    if table.upstream not in dialects:
        raise InterceptSettingsError(f"{key}.upstream", f"there is no upstream {table.upstream!r}")
    if DIALECT not in dialects[table.upstream]:
        raise InterceptSettingsError(f"{key}.upstream", f"{table.upstream!r} does not speak as Gemini does")
    if MARK not in table.placeholder:
        raise InterceptSettingsError(f"{key}.placeholder", f"{MARK} must stand in it, or its turn is not known again")
    if not table.prompt.strip():
        raise InterceptSettingsError(f"{key}.prompt", "some words must stand in it")
