"""Implied values are a loss for no target; any other value of the same field is. So the table cannot hide a loss."""

import copy
import itertools
import json
from typing import Any

import pytest

from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.foreign_fields import find_shared_fields
from dragoman.interpreter.translate import translate_request
from laws.documents import DIALECTS, MODELS

PNG = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
BASES: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
            },
            {"role": "assistant", "content": "Sunny."},
            {"role": "user", "content": "And now?"},
        ],
    },
    "responses": {
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
            {"role": "user", "content": "And now?"},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}],
    },
    "messages": {
        "max_tokens": 1000,
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}}
                ],
            },
        ],
        "tools": [{"name": "look", "input_schema": SCHEMA}],
    },
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "And now?"}]}]},
}
CALLED: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "user", "content": "Look."},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        ]
    },
    "responses": {
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [{"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}],
            },
        ]
    },
    "messages": {
        "max_tokens": 1000,
        "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}]},
        ],
    },
}
FOUND: dict[str, dict[str, Any]] = {
    "responses": {
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "look"}},
            {
                "type": "tool_search_output",
                "call_id": "c1",
                "tools": [
                    {"type": "function", "name": "look", "parameters": SCHEMA, "strict": False},
                    {
                        "type": "namespace",
                        "name": "eyes",
                        "description": "Eyes.",
                        "tools": [{"type": "function", "name": "see", "parameters": SCHEMA, "strict": False}],
                    },
                ],
            },
        ],
    },
}
GROUPED: dict[str, dict[str, Any]] = {
    "responses": {
        "input": "Look.",
        "tools": [{"type": "namespace", "name": "eyes", "tools": [{"type": "function", "name": "see"}]}],
    },
}
PLACES = {
    ("responses", "/tools/#/tools/#/defer_loading"): (GROUPED, "/tools/0/tools/0/defer_loading"),
    ("chat", "/messages/#/annotations"): (BASES, "/messages/1/annotations"),
    ("chat", "/messages/#/prefix"): (BASES, "/messages/1/prefix"),
    ("chat", "/messages/#/tool_calls/#/index"): (CALLED, "/messages/1/tool_calls/0/index"),
    ("responses", "/input/#/id"): (BASES, "/input/1/id"),
    ("responses", "/input/#/status"): (BASES, "/input/1/status"),
    ("responses", "/input/#/content/#/logprobs"): (BASES, "/input/1/content/0/logprobs"),
    ("responses", "/input/#/output/#/detail"): (CALLED, "/input/2/output/0/detail"),
    ("responses", "/input/#/tools/#/defer_loading"): (FOUND, "/input/2/tools/0/defer_loading"),
    ("responses", "/input/#/tools/#/tools/#/defer_loading"): (FOUND, "/input/2/tools/1/tools/0/defer_loading"),
    ("messages", "/messages/#/content/#/caller"): (CALLED, "/messages/1/content/0/caller"),
}
"""Request and pointer for fields that the first item of a list cannot have."""
FORMS = {"/input/#/id": ["msg_68af1b0c", "fc_6-8_a", "fco_1", "ctc_1", "ctco_1", "at_payload_123"]}
ALL = [(dialect, where) for dialect in DIALECTS for where in dialect_named(dialect).implied]


def place_value(dialect: str, where: str, value: Any) -> tuple[str, bytes]:
    bases, place = PLACES.get((dialect, where), (BASES, where.replace("#", "0")))
    body = copy.deepcopy(bases[dialect])
    inner: Any = body
    names = [int(name) if name.isdecimal() else name for name in place.split("/")[1:]]
    for name, following in itertools.pairwise(names):
        empty: Any = [None] if following == 0 else {}
        inner = inner[name] if isinstance(inner, list) else inner.setdefault(name, empty)
    inner[names[-1]] = value
    return place, json.dumps(body).encode()


def loss_pointers(dialect: str, target: str, body: bytes, place: str = "") -> list[str]:
    losses = translate_request(Call(body, "m"), dialect, target, model=MODELS[target]).losses
    return [loss.where for loss in losses if loss.where.startswith(place)]


def is_lost(dialect: str, target: str, body: bytes, place: str) -> bool:
    """Return whether a loss at this pointer or above it is reported."""
    losses = translate_request(Call(body, "m"), dialect, target, model=MODELS[target]).losses
    return any(loss.where == place or place.startswith(f"{loss.where}/") for loss in losses)


@pytest.mark.parametrize(("dialect", "where"), ALL)
def test_an_implied_value_is_a_loss_for_no_target(dialect, where):
    row = dialect_named(dialect).implied[where]
    assert bool(row.form) == (where in FORMS)
    for value in (*row.values[:3], *FORMS.get(where, ())):
        place, body = place_value(dialect, where, value)
        for target in DIALECTS:
            if target != dialect:
                assert loss_pointers(dialect, target, body, place) == [], (value, target)


@pytest.mark.parametrize(("dialect", "where"), ALL)
def test_another_value_of_the_same_field_is_a_loss(dialect, where):
    place, body = place_value(dialect, where, "WITNESS")
    for target in DIALECTS:
        if (
            target != dialect
            and where not in find_shared_fields(dialect, target)
            and not _is_image_detail(where, target)
        ):
            assert is_lost(dialect, target, body, place), target


def _is_image_detail(where: str, target: str) -> bool:
    return where.endswith("/detail") and target in {"chat", "responses"}


def test_a_value_implied_at_some_targets_is_a_loss_at_others():
    rows = [
        (dialect, where, row.streaming_values)
        for dialect, where in ALL
        if (row := dialect_named(dialect).implied[where]).streaming_values
    ]
    assert rows
    for dialect, where, streamed in rows:
        for value in streamed:
            place, body = place_value(dialect, where, value)
            for target in DIALECTS:
                if target != dialect:
                    implied = dialect_named(target).capabilities.partial_calls
                    assert is_lost(dialect, target, body, place) is not implied


def test_fields_next_to_an_implied_value_are_reported():
    output = {
        "include": ["reasoning.encrypted_content", "file_search_call.results"],
        "stream_options": {"include_obfuscation": False, "other": {"a": 1}},
    }
    body = json.dumps({"model": "m", "input": "hi", **output}).encode()
    assert loss_pointers("responses", "gemini", body) == ["/include/1", "/stream_options/other"]
    edits = [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_thinking_20251015", "keep": 1}]
    output = {**BASES["messages"], "context_management": {"edits": edits}}
    body = json.dumps({"model": "m", **output}).encode()
    assert loss_pointers("messages", "chat", body) == ["/context_management/edits/1"]


def test_googles_other_spelling_is_implied_alike():
    settings = {"generation_config": {"response_modalities": ["TEXT", "AUDIO"], "response_logprobs": False}}
    body = json.dumps({**BASES["gemini"], **settings}).encode()
    assert loss_pointers("gemini", "chat", body) == ["/generation_config/response_modalities/1"]
    wrapped = {"model": "m", "request": {**BASES["gemini"], "generationConfig": {"responseModalities": ["TEXT"]}}}
    assert loss_pointers("gemini", "chat", json.dumps(wrapped).encode()) == []


def test_a_false_that_is_meant_is_no_zero():
    body = json.dumps({"model": "m", "input": "hi", "top_logprobs": False}).encode()
    assert loss_pointers("responses", "gemini", body) == ["/top_logprobs"]
