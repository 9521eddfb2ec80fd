"""Mutators for the rules about items: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.responses.changes import USER, alter, change, items_of, places, with_items
from simulator.mutation import Mutate


def _odden_id(body: Json, chance: Random) -> Iterator[Json]:
    for number, item in enumerate(items_of(body)):
        kind = item.get("type") or ("message" if "role" in item else "")
        if kind in {"message", "function_call", "custom_tool_call", "reasoning", "web_search_call"}:
            yield alter(body, number, id=chance.choice(["call_1", "item_2", "", "msg 1", "fc.1/2", "chatcmpl-3"]))


def _repeat(body: Json, chance: Random) -> Iterator[Json]:
    items = items_of(body)
    with_ids = [item for item in items if item.get("id")]
    if with_ids:
        yield with_items(body, [*items, chance.choice(with_ids)])
    output: Json = {"type": "message", "id": "msg_1", **USER}
    yield with_items(body, [*items, output, output])


def _odden_call_name(body: Json, chance: Random) -> Iterator[Json]:
    for number in places(items_of(body), "function_call", "custom_tool_call"):
        yield alter(body, number, name=chance.choice(["dotted.name", "with space", "", "naïve"]))


def _show(body: Json, *parts: Json) -> Iterator[Json]:
    for part in parts:
        yield with_items(body, [*items_of(body), {"role": "user", "content": [part]}])


def _odden_source(body: Json, _: Random) -> Iterator[Json]:
    yield from _show(
        body,
        {"type": "input_image", "detail": "auto"},
        {"type": "input_image", "image_url": "https://example.com/a.png", "file_id": "file-1"},
        {"type": "input_file", "filename": "a.pdf"},
        {"type": "input_file", "file_url": "https://example.com/a.pdf", "file_id": "file-1"},
    )


def _odden_image(body: Json, _: Random) -> Iterator[Json]:
    yield from _show(
        body,
        {"type": "input_image", "image_url": "iVBORw0KGgo=", "detail": "auto"},
        {"type": "input_image", "image_url": "file:///tmp/a.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/tiff;base64,SUkqAA==", "detail": "auto"},
    )


def _odden_file(body: Json, _: Random) -> Iterator[Json]:
    yield from _show(
        body,
        {"type": "input_file", "file_url": "https://example.com/a.mp3"},
        {"type": "input_file", "file_data": "data:audio/mpeg;base64,SUQz", "filename": "a.mp3"},
    )


def _trigger_early(body: Json, _: Random) -> Iterator[Json]:
    yield with_items(body, [{"type": "compaction_trigger"}, USER, *items_of(body)])


def _odden_update(body: Json, _: Random) -> Iterator[Json]:
    update: Json = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    rest = {**body, "reasoning": None, "truncation": None, "context_management": None}
    for members in ({"model": "gpt-5.6"}, {"model": "gpt-6-sol", "truncation": "auto"}):
        yield change(with_items(rest, [update, *items_of(body)]), **members)
    yield change(with_items(rest, [update, update, *items_of(body)]), model="gpt-6-sol")


MUTATORS: dict[str, Mutate] = {
    "responses.item-id": _odden_id,
    "responses.item-once": _repeat,
    "responses.call-name": _odden_call_name,
    "responses.media-source": _odden_source,
    "responses.image": _odden_image,
    "responses.file-type": _odden_file,
    "responses.compaction-last": _trigger_early,
    "responses.configuration-update": _odden_update,
}
