"""Parsers for the model lists of each vendor.

Each row is kept as received, for clients of the same vendor. For other clients the names and limits are parsed;
compatible servers use many different names for the limits.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

from msgspec import Struct

from dragoman.dialects.api import ListedModel, ModelRow
from dragoman.http.client import Outgoing
from dragoman.wire.json import Malformed, decode, get_text

_INPUT_LIMIT_NAMES = (
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "loaded_context_length",
    "max_input_tokens",
)
_OUTPUT_LIMIT_NAMES = ("max_output_tokens", "max_completion_tokens", "max_tokens")


class Listing(Struct, frozen=True):
    """The request for an upstream's model list, and the function that parses the response."""

    request: Outgoing
    read: Callable[[bytes], list[ListedModel]]


def openai_rows(body: bytes) -> list[ListedModel]:
    """Parse the model list of OpenAI or of a compatible server."""
    return [_parse_openai_row(row) for row in _decode_rows(body, "data") if isinstance(row.get("id"), str)]


def anthropic_rows(body: bytes) -> list[ListedModel]:
    """Parse Anthropic's model list."""
    return [
        ListedModel(
            name=row["id"],
            display_name=get_text(row, "display_name"),
            input_limit=_positive_int(row, "max_input_tokens"),
            output_limit=_positive_int(row, "max_tokens"),
            row=row,
        )
        for row in _decode_rows(body, "data")
        if isinstance(row.get("id"), str)
    ]


def gemini_rows(body: bytes) -> list[ListedModel]:
    """Parse the model list of the Gemini API."""
    return [
        ListedModel(
            name=row["name"].removeprefix("models/"),
            display_name=get_text(row, "displayName"),
            input_limit=_positive_int(row, "inputTokenLimit"),
            output_limit=_positive_int(row, "outputTokenLimit"),
            row=row,
        )
        for row in _decode_rows(body, "models")
        if isinstance(row.get("name"), str)
    ]


def publisher_rows(body: bytes) -> list[ListedModel]:
    """Parse the model list of a Vertex AI publisher, which has only names."""
    rows = _decode_rows(body, "publisherModels")
    return [
        ListedModel(name=row["name"].rpartition("/")[2], row={}) for row in rows if isinstance(row.get("name"), str)
    ]


def _parse_openai_row(row: ModelRow) -> ListedModel:
    inner = (row.get("top_provider"), row.get("meta"))
    sources = [row, *(cast("ModelRow", value) for value in inner if isinstance(value, dict))]
    return ListedModel(
        name=row["id"],
        display_name=get_text(row, "name"),
        input_limit=_first_number(sources, (*_INPUT_LIMIT_NAMES, "n_ctx_train")),
        output_limit=_first_number(sources, _OUTPUT_LIMIT_NAMES),
        row=row,
    )


def _decode_rows(body: bytes, member: str) -> list[ModelRow]:
    try:
        document = decode(body)
    except Malformed:
        return []
    rows: Any = cast("ModelRow", document).get(member) if isinstance(document, dict) else None
    return [cast("ModelRow", row) for row in cast("list[Any]", rows) if isinstance(row, dict)] if rows else []


def _first_number(sources: Iterable[ModelRow], names: tuple[str, ...]) -> int | None:
    found = (_positive_int(source, name) for source in sources for name in names)
    return next((number for number in found if number is not None), None)


def _positive_int(row: ModelRow, name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) and value > 0 else None
