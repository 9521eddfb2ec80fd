"""Replace one leaf of a request by a unique valid value and follow it through a translation."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.core.losses import Loss
from laws.documents import leaves

TOKEN = "Q0FOQVJZ7919"  # noqa: S105  base64 and a plain word at once
NUMBER = 7919
FRACTION = 0.1618

# Words of a closed vocabulary: no unique valid value exists for them.
CLOSED = {
    "type",
    "role",
    "mode",
    "model",
    "object",
    "effort",
    "reasoning_effort",
    "thinkingLevel",
    "thinking_level",
    "display",
    "summary",
    "generate_summary",
    "status",
    "ttl",
    "format",
    "syntax",
    "responseMimeType",
    "response_mime_type",
    "tool_choice",
    "function_call",
    "outcome",
}
IDS = {"id", "call_id", "tool_call_id", "tool_use_id"}
SCHEMAS = (
    "/parameters/",
    "/input_schema/",
    "/parametersJsonSchema/",
    "/parameters_json_schema/",
    "/schema/",
    "/responseSchema/",
    "/response_schema/",
    "/responseJsonSchema/",
    "/response_json_schema/",
    "/output_schema/",
)
FREE_IN_SCHEMA = {"description", "title"}


def canaries(body: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (pointer, value to look for, changed request) for the leaves that can contain a canary."""
    for where, value in leaves(body):
        name = where.rsplit("/", 1)[-1]
        if isinstance(value, bool) or value is None or value in ({}, []) or where == "/model":
            continue
        if name in CLOSED and isinstance(value, str):
            continue
        if any(word in where for word in SCHEMAS) and (name not in FREE_IN_SCHEMA or not isinstance(value, str)):
            continue
        changed = _replacement(name, value)
        if changed is None:
            continue
        if name in IDS and isinstance(value, str):
            yield where, TOKEN, _rename(body, value, changed)
        else:
            yield where, str(changed) if isinstance(changed, int | float) else TOKEN, replace(body, where, changed)


def _replacement(name: str, value: Any) -> Any:
    if isinstance(value, int):
        return NUMBER
    if isinstance(value, float):
        return FRACTION
    if value.startswith("data:"):
        return value.split(",", 1)[0] + "," + TOKEN
    if value.startswith(("http://", "https://", "gs://")):
        return f"https://canary.example/{TOKEN}.png"
    if name == "media_type" and value == "text/plain":
        return None
    if name in {"media_type", "mimeType", "mime_type"}:
        return f"{value.split('/', 1)[0]}/{TOKEN}"
    if name == "arguments":
        return json.dumps({"canary": TOKEN})
    return TOKEN


def replace(value: Any, where: str, changed: Any) -> Any:
    if not where:
        return changed
    token, _, rest = where[1:].partition("/")
    below = f"/{rest}" if rest or where.count("/") > 1 else ""
    if isinstance(value, list):
        return [replace(item, below, changed) if str(i) == token else item for i, item in enumerate(value)]
    key = token.replace("~1", "/").replace("~0", "~")
    return {name: replace(member, below, changed) if name == key else member for name, member in value.items()}


def _rename(value: Any, old: str, new: str) -> Any:
    """Rename an id everywhere: a call and its result stay a pair."""
    if isinstance(value, dict):
        return {
            name: new if name in IDS and member == old else _rename(member, old, new) for name, member in value.items()
        }
    return [_rename(item, old, new) for item in value] if isinstance(value, list) else value


def survives(expected: str, output: bytes) -> bool:
    """Return whether the canary is in the translated request."""
    return expected in output.decode()


def find_covering(where: str, losses: Iterable[Loss]) -> Loss | None:
    """Return the loss that covers a leaf: at its own pointer, or above it if all below it is dropped or counted."""
    own = next((loss for loss in losses if loss.where == where), None)
    if own is not None:
        return own
    above = [loss for loss in losses if where.startswith(f"{loss.where}/")]
    above = [loss for loss in above if loss.kind == "dropped" or loss.leaves > 1]
    return above[0] if above else None


def find_miscounts(body: Any, losses: Iterable[Loss]) -> list[str]:
    """Return the dropped values whose number of leaves in the document is not the one that was reported."""
    values = leaves(body)
    wrong: list[str] = []
    for loss in losses:
        count = sum(where == loss.where or where.startswith(f"{loss.where}/") for where, _ in values)
        if loss.kind == "dropped" and count != loss.leaves and count:
            wrong.append(f"{loss.where}: {loss.leaves} leaves reported, {count} in the document")
    return wrong
