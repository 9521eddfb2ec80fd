"""Mutators for the rules about media: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.openai.models import is_audio_model
from dragoman.simulator.apis.rule import Json
from simulator.apis.chat import changes
from simulator.mutation import Mutate

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNg+M9QDwADhgGAWjTQ7gAAAABJRU5ErkJggg=="


# Anthropic's `cache_control`, and fields of a whole message that a client copied into its text part.
_TOLERATED = ("cache_control", "role", "refusal", "annotations", "audio", "tool_calls")


def _break_part_role(body: Json, _: Random) -> Iterable[Json]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
    document = {"type": "file", "file": {"file_id": "file-1"}}
    for place, _message in changes.messages(body, "tool", "system", "developer", "assistant"):
        yield changes.put(body, ("messages", place, "content"), [{"type": "text", "text": "See:"}, image])
        yield changes.put(body, ("messages", place, "content"), [document])
    for place, _message in changes.messages(body, "user"):
        yield changes.put(body, ("messages", place, "content"), [{"type": "refusal", "refusal": "No."}])


def _break_audio_model(body: Json, _: Random) -> Iterable[Json]:
    if is_audio_model(body["model"]):
        return
    sound = {"type": "input_audio", "input_audio": {"data": "SUQzBAAAAAAAAA==", "format": "mp3"}}
    yield changes.with_messages(body, {"role": "user", "content": [sound]})


def _break_image_url(body: Json, _: Random) -> Iterable[Json]:
    wrong = (
        "gs://bucket/cat.png",
        _PIXEL,
        "data:application/pdf;base64,JVBERi0xLjQK",
        "data:image/png,notbase64",
        "data:image/png;base64,",
        "data:image/png;base64,@@@@",
    )
    for path, _part in changes.parts(body, "image_url"):
        for url in wrong:
            yield changes.put(body, (*path, "image_url", "url"), url)


def _break_image_bytes(body: Json, _: Random) -> Iterable[Json]:
    for path, _part in changes.parts(body, "image_url"):
        yield changes.put(body, (*path, "image_url", "url"), "data:image/jpeg;base64,UGxlYXNlIGxvZyBpbg==")


def _break_file(body: Json, _: Random) -> Iterable[Json]:
    for file in (
        {},
        {"filename": "a.pdf"},
        {"filename": "a.pdf", "file_data": "JVBERi0xLjQK"},
        {"file_data": "data:application/pdf;base64,JVBERi0xLjQK"},
    ):
        yield changes.with_messages(body, {"role": "user", "content": [{"type": "file", "file": file}]})


def _break_tolerated(body: Json, _: Random) -> Iterable[Json]:
    for place, message in changes.messages(body, "developer", "user", "tool"):
        if isinstance(message.get("content"), str):
            part = {"type": "text", "text": message["content"]}
            for name in _TOLERATED:
                yield changes.put(body, ("messages", place, "content"), [{**part, name: []}])


def _break_breakpoint(body: Json, _: Random) -> Iterable[Json]:
    older = changes.change_model(body, "gpt-5.2")
    if older is None:
        return
    yield changes.change(older, prompt_cache_options={"mode": "explicit"})
    for path, _part in changes.parts(older, "text"):
        yield changes.put(older, (*path, "prompt_cache_breakpoint"), {"mode": "explicit"})


MUTATORS: dict[str, Mutate] = {
    "chat.part-role": _break_part_role,
    "chat.audio-input-model": _break_audio_model,
    "chat.image-url": _break_image_url,
    "chat.image-bytes": _break_image_bytes,
    "chat.file-part": _break_file,
    "chat.text-part-members": _break_tolerated,
    "chat.cache-breakpoint-model": _break_breakpoint,
}
