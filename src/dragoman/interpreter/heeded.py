"""What a request says that is heeded though the target has no member for it: it is no loss, and is not booked.

Two kinds: what we heed ourselves when we write the reply, and a value that only says what holds at the target anyway.
Each row has its reason. What a caller asks for and will not get has no row here, however usual it is: cache marks, keys
and labels for the vendor's records, a tool's loading when it is searched for. Places are pointers into the caller's
document with `#` for a number, and a row may stand for a whole object or list.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct

from dragoman.core.parts import Part, Signature, ToolCall
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json
from dragoman.wire.pointer import escape

UNKNOWN = "not known to the target"


class Row(Struct, frozen=True):
    """Values at one place that are heeded, and why."""

    values: tuple[Any, ...]
    why: str
    form: str = ""
    """Texts of this form are heeded too."""
    there: dict[str, tuple[Any, ...]] = {}
    """More values, by the target dialect at which they are heeded."""


class _Table(Struct, frozen=True):
    """The rows of a dialect, and the places of what such rows are inside of."""

    rows: dict[str, Row]
    above: frozenset[str]


_UNASKED = "asks for nothing more than comes anyway"
_TELLS_NOTHING = "an empty list or object names nothing"
_NOT_KEPT = "nothing is kept: a translated request is not stored at the target, nor by the gateway then"
_USUAL_TIER = "the tier that holds where none is asked for"
_PLAIN_STREAM = "our streams are not padded"
_TEXT = "text comes anyway"
_LOADED = "declared at once, as every tool is"
_OPENAI_IDS = r"(?:msg|fco?|ctco?|at)_[\w-]+"
"""What OpenAI calls items that others take too; a name of the caller's own is none of these."""
_USUAL_DETAIL = "how closely to look is left to the model, as where nothing is said"

ROWS: dict[str, dict[str, Row]] = {
    "chat": {
        "/stream_options/include_usage": Row((True, False), "our stream ends with the usage if that is asked for"),
        "/stream_options/include_obfuscation": Row((False,), _PLAIN_STREAM),
        "/store": Row((False,), _NOT_KEPT),
        "/service_tier": Row(("auto", "default"), _USUAL_TIER),
        "/modalities/#": Row(("text",), _TEXT),
        "/logprobs": Row((False,), _UNASKED),
        "/top_logprobs": Row((0,), _UNASKED),
        "/logit_bias": Row(({},), _TELLS_NOTHING),
        "/messages/#/annotations": Row(([],), _TELLS_NOTHING),
        "/messages/#/tool_calls/#/index": Row(tuple(range(128)), "calls are told in the order of the list"),
        "/messages/#/prefix": Row((False,), "the model begins its answer itself, as where nothing is said"),
        "/messages/#/content/#/image_url/detail": Row(("auto",), _USUAL_DETAIL),
    },
    "responses": {
        "/include/#": Row(("reasoning.encrypted_content",), "thoughts that the target seals come back in an envelope"),
        "/include": Row(([],), _TELLS_NOTHING),
        "/store": Row((False,), _NOT_KEPT),
        "/background": Row((False,), "the answer is waited for"),
        "/truncation": Row(("disabled",), "no target shortens a prompt that is too long"),
        "/service_tier": Row(("auto", "default"), _USUAL_TIER),
        "/stream_options/include_obfuscation": Row((False,), _PLAIN_STREAM),
        "/top_logprobs": Row((0,), _UNASKED),
        "/tools/#/defer_loading": Row((False,), _LOADED),
        "/input/#/id": Row((), "an id that only OpenAI's store knows: the item itself is sent", _OPENAI_IDS),
        "/input/#/status": Row(("completed",), "an item that is sent is taken for whole"),
        "/input/#/content/#/logprobs": Row(([],), _TELLS_NOTHING),
        "/input/#/content/#/detail": Row(("auto",), _USUAL_DETAIL),
        "/input/#/output/#/detail": Row(("auto",), _USUAL_DETAIL),
    },
    "messages": {
        "/service_tier": Row(("auto",), _USUAL_TIER),
        "/mcp_servers": Row(([],), _TELLS_NOTHING),
        "/context_management/edits": Row(([],), _TELLS_NOTHING),
        "/context_management/edits/#": Row(
            ({"type": "clear_thinking_20251015", "keep": "all"},), "nothing is cleared at any target"
        ),
        "/tools/#/defer_loading": Row((False,), _LOADED),
        "/tools/#/eager_input_streaming": Row(
            (False,), "arguments are told as they come", there={"chat": (True,), "responses": (True,)}
        ),
        "/tools/#/allowed_callers": Row((["direct"],), "only the model itself calls a tool"),
        "/tools/#/input_examples": Row(([],), _TELLS_NOTHING),
        "/messages/#/content/#/caller": Row(({"type": "direct"},), "only the model itself calls a tool"),
        "/messages/#/content/#/citations": Row(({"enabled": False},), _UNASKED),
    },
    "gemini": {
        "/generationConfig/responseModalities/#": Row(("TEXT",), _TEXT),
        "/generationConfig/responseLogprobs": Row((False,), _UNASKED),
        "/generationConfig/logprobs": Row((0,), _UNASKED),
        "/generationConfig/audioTimestamp": Row((False,), _UNASKED),
        "/generationConfig/mediaResolution": Row(("MEDIA_RESOLUTION_UNSPECIFIED",), _USUAL_DETAIL),
        "/safetySettings": Row(([],), _TELLS_NOTHING),
        "/store": Row((False,), _NOT_KEPT),
        "/serviceTier": Row(("standard",), _USUAL_TIER),
    },
}

NEUTRAL = {"temperature": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Values at which a knob of the sampler changes nothing: a model that does not take the knob works like that."""
USUAL_VERBOSITY = "medium"
"""OpenAI's word for answers as long as they usually are."""
_PARSED = "/function/parsed_arguments"
_SKIPS = frozenset(
    {
        "skip_thought_signature_validator",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "context_engineering_is_the_way_to_go",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    }
)


def book_unsaid(where: str, raw: bytes, source: str, target: str, ledger: Ledger) -> None:
    """Book what stands at `where` in a document of `source` as unknown to `target`, but for what is heeded."""
    if raw == b"null":
        return  # nothing was said
    table, shape = _TABLES[source], _shape(where)
    if shape not in table.rows and shape not in table.above:
        ledger.dropped(where, UNKNOWN)
        return
    for place in _unheeded(json.peek(raw), where, shape, table, target):
        ledger.dropped(place, UNKNOWN)


def is_echo(part: Part, pointer: str, raw: bytes) -> bool:
    """Tell whether a member only repeats the arguments of a call: OpenAI's SDK sends back what it parsed of them."""
    return isinstance(part, ToolCall) and pointer == _PARSED and json.peek(raw) == json.peek(part.arguments.encode())


def says_nothing(signature: Signature) -> bool:
    """Tell whether a signature only stands for one that is missing, in the words that Google has for that."""
    return signature.value in _SKIPS


def _unheeded(value: Any, where: str, shape: str, table: _Table, target: str) -> Iterator[str]:
    """Iterate the places of what is not heeded: whole where nothing below has a row."""
    row = table.rows.get(shape)
    if row is not None and _is_heeded(value, row, target):
        return
    inside: list[tuple[str, str, Any]] = []
    if shape in table.above and isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        inside = [(f"/{escape(name)}", _plain(f"/{name}"), member) for name, member in members.items()]
    elif shape in table.above and isinstance(value, list):
        inside = [(f"/{index}", "/#", item) for index, item in enumerate(cast("list[Any]", value))]
    if not inside:
        yield where
    for pointer, name, member in inside:
        yield from _unheeded(member, where + pointer, shape + name, table, target)


def _is_heeded(value: Any, row: Row, target: str) -> bool:
    if row.form and isinstance(value, str) and re.fullmatch(row.form, value) is not None:
        return True
    # 0 and false are one to Python.
    return any(type(value) is type(heeded) and value == heeded for heeded in (*row.values, *row.there.get(target, ())))


def _shape(where: str) -> str:
    tokens = ["#" if token.isdecimal() else token for token in where.removeprefix("/request").split("/")]
    return _plain("/".join(tokens))


def _plain(pointer: str) -> str:
    """Write a place alike in both of Google's spellings."""
    return pointer.replace("_", "").lower()


def _table(rows: dict[str, Row]) -> _Table:
    plain = {_plain(place): row for place, row in rows.items()}
    tokens = [place.split("/") for place in plain]
    return _Table(plain, frozenset("/".join(names[:end]) for names in tokens for end in range(2, len(names))))


_TABLES = {dialect: _table(rows) for dialect, rows in ROWS.items()}
