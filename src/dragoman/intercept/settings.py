"""The configuration of an intercepted client: its upstream, how it is started, and what is rewritten.

An entry with a command is code that runs on this machine, so entries come only from the operator and never from a
request.
"""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, structs

DIALECT = "gemini"
"""The dialect of intercepted clients, which are Gemini CLI and programs with Google's SDKs."""
MARK = "{id}"
"""Replaced by the mark of a call group in the placeholder text."""
PROMPT, URL = "{prompt}", "{url}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_Seconds = Annotated[float, Meta(gt=0)]


class InterceptSettingsError(ValueError):
    """A configuration entry is invalid."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


class InterceptTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A client, and how its requests are rewritten."""

    upstream: str
    """The upstream of its requests."""
    hosts: tuple[str, ...] = ()
    """Hosts (names or patterns) that `dragoman intercept` redirects here; by default those of the upstream's kind."""
    command: tuple[str, ...] = ()
    """The command that starts the client for each turn; empty if the client runs by itself."""
    env: dict[str, str] = {}
    """Environment variables, in addition to a few inherited ones; `{url}` is replaced by the URL of the gateway."""
    cwd: str = ""
    """The working directory; a new empty directory if not set."""
    strip: Literal["all", "none"] | tuple[str, ...] = "all"
    """Which of the client's own tools to remove while the caller has tools: all, none, or those named."""
    placeholder: str = f"(Waiting for tools: {MARK}.)"
    """The text that the client gets instead of calls; the id in it identifies the turn."""
    prompt: str = "(The tools have answered: go on.)"
    """The continuation prompt for the client when there are only results; it is removed from the request again."""
    model: str = ""
    """The model to use instead of the client's own choice."""
    system: str = ""
    """Instructions for the model, in addition to the client's or instead of them."""
    system_mode: Literal["append", "replace"] = "append"
    headers: dict[str, str] = {}
    """Headers to set; one with an empty value is removed."""
    timeout: _Seconds = 120.0
    """The timeout in seconds for the client's request after a prompt."""
    result_timeout: _Seconds = 600.0
    """The timeout in seconds for the caller's results, and for the client's request with them."""
    idle: _Seconds = 3600.0
    """Seconds after which an unused session expires."""


def read_intercepts(
    tables: Mapping[str, Any],
    dialects: Mapping[str, Collection[str]],
    convert: Callable[[str, Any, type[InterceptTable]], InterceptTable],
    resolve: Callable[[str, str], str],
) -> dict[str, InterceptTable]:
    """Read the config entries; raise `InterceptSettingsError` if one is invalid.

    `dialects` are the dialects of each upstream.
    """
    found: dict[str, InterceptTable] = {}
    for name, entry in tables.items():
        key = f"intercept.{name}"
        table = convert(key, entry, InterceptTable)
        _check_entry(name, key, table, dialects)
        env = {variable: resolve(f"{key}.env.{variable}", value) for variable, value in table.env.items()}
        headers = {header.lower(): resolve(f"{key}.headers.{header}", value) for header, value in table.headers.items()}
        found[name] = structs.replace(table, env=env, headers=headers)
    return found


def _check_entry(name: str, key: str, table: InterceptTable, dialects: Mapping[str, Collection[str]]) -> None:
    if not _NAME.fullmatch(name):
        raise InterceptSettingsError(key, "a name may contain only letters, digits, `_`, `.` and `-`")
    if table.upstream not in dialects:
        raise InterceptSettingsError(
            f"{key}.upstream", f"there is no upstream {table.upstream!r}; add it to [upstreams]"
        )
    if DIALECT not in dialects[table.upstream]:
        raise InterceptSettingsError(f"{key}.upstream", f"{table.upstream!r} does not support the gemini dialect")
    if MARK not in table.placeholder:
        raise InterceptSettingsError(f"{key}.placeholder", f"must contain {MARK}, which identifies the turn")
    if not table.prompt.strip():
        raise InterceptSettingsError(f"{key}.prompt", "must not be empty")
