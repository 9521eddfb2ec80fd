"""How the vendor words what is wrong with a body's shape, and how it writes where.

Its paths are dotted and name the type of what they pass: `messages.0.content.1.tool_result.tool_use_id`. Where only one
type is possible (blocks of `system`, the output format) it is not named.
"""

import re
from typing import Any

from dragoman.simulator.apis.messages.server_blocks import Block
from dragoman.simulator.apis.messages.tools import KnownTool
from dragoman.simulator.rule import Violation
from dragoman.simulator.shape import Misshapen
from dragoman.wire.pointer import split

_UNTAGGED = frozenset({"system", "format", "output_format", "mcp_servers", "task_budget", "compaction", "skills", ""})
_EXPECTED = re.compile(r"Expected `(?P<type>[^`]*)`(?P<rest>.*)")
_TYPES = {
    "str": "a valid string",
    "int": "a valid integer",
    "float": "a valid number",
    "bool": "a valid boolean",
    "array": "a valid list",
    "object": "an object",
}
_BOUNDS = {">=": "greater than or equal to", "<=": "less than or equal to", ">": "greater than", "<": "less than"}
_ALLOWED = {
    "media_type": ("image/jpeg", "image/png", "image/gif", "image/webp"),
    "ttl": ("5m", "1h"),
    "effort": ("low", "medium", "high", "xhigh", "max"),
    "service_tier": ("auto", "standard_only"),
    "display": ("summarized", "omitted", "updates"),
    "speed": ("standard", "fast"),
    "anthropic_version": ("vertex-2023-10-16", "2026-10-21"),
    "type": ("json_schema",),
}


def _tags(union: Any) -> tuple[str, ...]:
    return tuple(str(member.__struct_config__.tag) for member in union.__args__)


_TAGS = {
    "content": _tags(Block),
    "tools": ("custom", *_tags(KnownTool)),
    "tool_choice": ("auto", "any", "tool", "none"),
    "thinking": ("enabled", "adaptive", "disabled", "between_tools"),
    "source": ("base64", "content", "file", "text", "url"),
    "cache_control": ("ephemeral",),
    "edits": ("clear_tool_uses_20250919", "clear_thinking_20251015", "compact_20260112"),
}


def listed(words: tuple[str, ...]) -> str:
    """Write words as the vendor does: 'a', 'b' or 'c'."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def say(wrong: Misshapen) -> str:
    """Word a fault of shape, with the member's name before it; the path comes in front."""
    member = wrong.where.rpartition("/")[2]
    match wrong.fault:
        case "json":
            return ": The request body is not valid JSON: " + wrong.words
        case "unknown-field":
            return f".{wrong.name}: Extra inputs are not permitted"
        case "required":
            return f".{wrong.name}: Field required"
        case "enum" if wrong.words.startswith("Invalid value"):
            return f": Input tag {wrong.name} found using 'type' does not match any of the expected tags"
        case "enum":
            return f": Input should be {listed(_ALLOWED[member])}" if member in _ALLOWED else ": Input is not permitted"
        case "type" if member == "input_schema":
            return ": Input does not match the expected shape."
        case _:
            return ": " + _expected(wrong.words)


def _expected(words: str) -> str:
    found = _EXPECTED.match(words)
    if found is None:
        return words
    kinds = [_TYPES[kind] for kind in found["type"].split(" | ") if kind in _TYPES]
    bound, _, limit = found["rest"].strip().partition(" ")
    if bound in _BOUNDS:
        return f"Input should be {_BOUNDS[bound]} {limit}"
    return f"Input should be {kinds[0]}" if kinds else words


def placed(violation: Violation, body: Any, base: str = "") -> Violation:
    """Put the vendor's path before what `say` worded about a body, or about its part at `base`."""
    where = base + violation.where
    if violation.rule.endswith(".json"):
        return Violation(violation.message.removeprefix(": "), where, violation.status, violation.rule)
    tokens = split(where)
    message = violation.message
    if ": Input tag" in message:
        container = next((token for token in reversed(tokens[:-1]) if not token.isdecimal()), "")
        if container == "messages":
            role = message.partition("'")[2].partition("'")[0]
            words = f'messages: Unexpected role "{role}". Allowed roles are "user", "assistant" or "system"'
            return Violation(words, where, violation.status, violation.rule)
        tokens.pop()
        tags = ", ".join(f"'{tag}'" for tag in _TAGS.get(container, ()))
        message += f": {tags}" if tags else ""
    inside = not message.startswith(": ")
    words = (path(tokens, body, inside=inside) + message).removeprefix(".")
    return Violation(words, where, violation.status, violation.rule)


def path(tokens: list[str], body: Any, *, inside: bool = False) -> str:
    """Write where as the vendor does; `inside` says that a member of what stands there comes next."""
    written: list[str] = []
    value, container = body, ""
    for number, token in enumerate(tokens):
        written.append(token)
        container = container if token.isdecimal() else token
        value = _step(value, token)
        if (number + 1 < len(tokens) or inside) and isinstance(value, dict) and container not in _UNTAGGED:
            tag: Any = value.get("type", "custom" if container == "tools" else None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            written += [tag] if isinstance(tag, str) else []
    return ".".join(written) or ("" if inside else "body")


def _step(value: Any, token: str) -> Any:
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):  # pyright: ignore[reportUnknownArgumentType]
        return value[int(token)]  # pyright: ignore[reportUnknownVariableType]
    return value.get(token) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
