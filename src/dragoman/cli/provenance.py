"""Say what the configuration is and where its values come from: as TOML, at the start, and a first one to edit."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from msgspec import NODEFAULT, Struct, structs

from dragoman import __version__
from dragoman.cli.parser import paint
from dragoman.config import LISTEN, Config, find_file, load
from dragoman.gateway.redact import REDACTED, redact
from dragoman.mcp.settings import SERVERS_VARIABLE, SYSTEM_PROMPT_VARIABLE
from dragoman.sessions.store import default_url
from dragoman.upstreams.environment import read_upstreams
from dragoman.upstreams.kind import UpstreamTable
from dragoman.upstreams.registry import KINDS
from dragoman.upstreams.simulator import KIND as SIMULATOR

_SECRETS = frozenset({"api_key", "access_token", "client_secret", "key", "env", "headers"})
_SWITCH_SOURCE = "the variable GEMINI_USE_NATIVE_FUNCTION_CALLING"
"""The only source of a `[server]` value other than the file and the defaults."""


def format_config(path: Path | None, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the lines of the effective configuration; they are a valid file, except for the hidden secrets."""
    config = load(path, environment)
    file = find_file(path, environment)
    document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8")) if file is not None else {}
    yield f"# {config.source}"
    yield from _format_table("server", config.server, document.get("server", {}), _SWITCH_SOURCE, skipped="keys")
    yield from _format_keys(config, document)
    sessions = structs.replace(config.sessions, url=config.sessions.url or default_url())
    yield from _format_table("sessions", sessions, document.get("sessions", {}))
    yield from _format_table("media", config.media, document.get("media", {}))
    yield from _format_table("web", config.web, document.get("web", {}))
    yield from _format_table("search", config.search, document.get("search", {}))
    yield from _format_table(
        "mcp", config.mcp, document.get("mcp", {}), default_source=f"the variable {SYSTEM_PROMPT_VARIABLE}"
    )
    for name, table in config.upstreams.items():
        configured = document.get("upstreams", {}).get(name)
        yield from _format_table(
            f"upstreams.{name}",
            table,
            configured or {},
            default_source=_describe_origin(name, table, environment) if configured is None else "default",
        )
    for name, table in config.tools.items():
        configured = document.get("tools", {}).get(name)
        yield from _format_table(
            f"tools.{name}", table, configured or {}, default_source=f"the variable {SERVERS_VARIABLE}"
        )
    for name, table in config.intercept.items():
        yield from _format_table(f"intercept.{name}", table, document.get("intercept", {}).get(name, {}))
    if config.models:
        yield from ("", "[models]")
        for name, targets in config.models.items():
            yield f"{_to_toml(name)} = {_to_toml(targets[0] if len(targets) == 1 else targets)}  # {config.source}"


def describe_start(config: Config, base_url: str, *, out: TextIO, environment: Mapping[str, str] = os.environ) -> str:
    """Return what a gateway says when it starts: lines of text, or one JSON line, as the log."""
    has_file = config.source != Config().source
    document: dict[str, Any] = tomllib.loads(Path(config.source).read_text(encoding="utf-8")) if has_file else {}
    configured = document.get("upstreams", {})
    upstreams = {
        name: _describe_upstream(name, table, configured.get(name), environment)
        for name, table in config.upstreams.items()
    }
    stands_in = not configured and any(table.kind == SIMULATOR.name for table in config.upstreams.values())
    models, keys = [*config.models, *config.agents], [key.name for key in config.keys]
    if config.server.log_format == "json" or (config.server.log_format == "auto" and not out.isatty()):
        fields = {"event": "start", "version": __version__, "config": config.source if has_file else None}
        fields |= {"upstreams": upstreams, "models": models, "keys": keys, "address": base_url, "simulated": stands_in}
        return json.dumps(fields, ensure_ascii=False) + "\n"
    no_file = "no file, only the environment; `dragoman config init` writes one"
    lines = [f"dragoman {__version__}", f"configuration: {config.source if has_file else no_file}"]
    lines += [f"upstream {name}: {', '.join(each.values())}" for name, each in upstreams.items()]
    if stands_in:
        note = "the simulator answers, which is not a model: set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY"
        lines.append(paint(note, "yellow", out))
    named = f"{', '.join(models)}, and " if models else ""
    lines.append(f"models: {named}the names that an upstream knows")
    lines.append(
        f"client keys: {', '.join(keys)}" if keys else "client keys: none, every program of this machine may use it"
    )
    return "".join(f"{line}\n" for line in lines)


def _describe_upstream(
    name: str, table: UpstreamTable, raw: Mapping[str, Any] | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the kind of an upstream, its base URL if it is not the vendor's, and where its credentials come from."""
    place = {"base_url": redact(table.base_url)} if table.base_url else {}
    return {"kind": table.kind, **place, "key": _describe_key(name, table, raw, environment)}


def _describe_key(
    name: str, table: UpstreamTable, raw: Mapping[str, Any] | None, environment: Mapping[str, str]
) -> str:
    if table.kind == SIMULATOR.name:
        return "no key needed"
    for setting, noun in (("api_key", "key"), ("access_token", "access token")):
        if getattr(table, setting):
            written = str((raw or {}).get(setting, ""))
            variable = written.removeprefix("env:") if written.startswith("env:") else ""
            if raw is None:
                variable = _find_variables(name, table, environment)[setting]
            return f"{noun} from {f'the variable {variable}' if variable else 'the file'}"
    describe = KINDS[table.kind].describe_credentials
    return describe(table) if describe is not None else "no key"


def write_first_config(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a small configuration that works with the variables that are set."""
    yield from ("# `dragoman config example` prints every setting.", "", "[server]", f'listen = "{LISTEN}"')
    for name, table in read_upstreams(environment).items():
        yield from ("", f"[upstreams.{name}]", f"kind = {_to_toml(table.kind)}")
        kind = next((kind for kind in KINDS.values() if kind.found_as == name), None)
        if kind is None:
            yield "# Not a model: set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, and write this file again."
            continue
        for setting, variable in kind.variables.items():
            if value := getattr(table, setting):
                yield f"{setting} = {_to_toml(f'env:{variable}' if setting in _SECRETS else value)}"
    yield from ("", "[models]", "# Another name for a model:")
    yield f'# "fast" = "{next(iter(read_upstreams(environment)))}/NAME-OF-THE-MODEL"'


def _find_variables(name: str, table: UpstreamTable, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that created an upstream that is not in the file, by setting."""
    kind = next((kind for kind in KINDS.values() if kind.found_as == name), None)
    variables = kind.variables.items() if kind else ()
    return {setting: each for setting, each in variables if environment.get(each) and getattr(table, setting)}


def _describe_origin(name: str, table: UpstreamTable, environment: Mapping[str, str]) -> str:
    names = [*_find_variables(name, table, environment).values()]
    if not names:
        return "no key is set"
    return f"the variable{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _format_table(
    name: str, table: Struct, document: Mapping[str, Any], default_source: str = "default", skipped: str = ""
) -> Iterator[str]:
    yield from ("", f"[{name}]")
    yield from _format_fields(table, document, default_source, "", skipped)


def _format_fields(
    table: Struct, document: Mapping[str, Any], default_source: str, prefix: str, skipped: str = ""
) -> Iterator[str]:
    for field in structs.fields(table):
        value = getattr(table, field.name)
        if field.name == skipped:
            continue
        if isinstance(value, Struct):
            yield from _format_fields(value, document.get(field.name, {}), default_source, f"{field.name}.")
            continue
        raw = document.get(field.name)
        is_default = value == (field.default if field.default_factory is NODEFAULT else field.default_factory())
        if is_default and value in ("", None) and raw is None:
            continue
        is_overridden = isinstance(raw, bool) and raw is not value
        is_from_file = raw is not None and not is_overridden
        source = "the file" if is_from_file else "default" if is_default else default_source
        if isinstance(raw, str) and raw.startswith("env:"):
            source = f"the variable {raw.removeprefix('env:')}"
        shown = redact(value) if isinstance(value, str) else value
        if field.name in _SECRETS and value:
            shown = dict.fromkeys(cast("dict[str, Any]", value), REDACTED) if isinstance(value, dict) else REDACTED
        yield f"{prefix}{field.name} = {_to_toml(shown)}  # {source}"


def _format_keys(config: Config, document: Mapping[str, Any]) -> Iterator[str]:
    configured: list[Any] = document.get("server", {}).get("keys", [])
    yield "keys = ["
    for key, raw in zip(config.keys, configured, strict=True):
        written: Any = cast("dict[str, Any]", raw)["key"] if isinstance(raw, dict) else raw
        fields = {"key": written if written.startswith(("env:", "sha256:")) else REDACTED, "name": key.name}
        more = {"models": list(key.models), "tools": list(key.tools), "concurrency": key.concurrency}
        pairs = {**fields, **{name: value for name, value in more.items() if value}}
        yield f"  {{ {', '.join(f'{name} = {_to_toml(value)}' for name, value in pairs.items())} }},"
    yield "]"


def _to_toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = [f"{_to_toml(name)} = {_to_toml(each)}" for name, each in cast("dict[str, Any]", value).items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    # TOML and JSON share the syntax of strings, numbers, booleans and lists of strings.
    return json.dumps(value, ensure_ascii=False)
