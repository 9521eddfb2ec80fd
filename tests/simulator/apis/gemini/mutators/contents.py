"""Mutators for the rules about contents: each yields bodies that break its rule."""

from collections.abc import Iterable
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.gemini import changes
from simulator.mutation import Mutate


def _without_contents(body: Json, _: Random) -> Iterable[Json]:
    for missing in (False, True):
        changed = changes.copy_body(body)
        changes.put(changes.request_in(changed), "contents", None if missing else [])
        yield changed


def _other_roles(body: Json, chance: Random) -> Iterable[Json]:
    for role in ("assistant", "system", "human"):
        changed = changes.copy_body(body)
        chance.choice(changes.contents(changed))["role"] = role
        yield changed


def _without_parts(body: Json, _: Random) -> Iterable[Json]:
    for missing in (False, True):
        changed = changes.copy_body(body)
        content = next(one for one in changes.contents(changed) if one.get("role") != "model")
        content["parts"] = []
        if missing:
            del content["parts"]
        yield changed


def _with_part(body: Json, part: Json) -> Json:
    changed = changes.copy_body(body)
    content = next(one for one in changes.contents(changed) if one.get("role") != "model")
    changes.parts(content).insert(0, part)
    return changed


def _without_data(body: Json, _: Random) -> Iterable[Json]:
    yield _with_part(body, {})
    yield _with_part(body, {"thought": True})


def _empty_text(body: Json, _: Random) -> Iterable[Json]:
    yield _with_part(body, {"text": ""})


def _unseen_media(body: Json, chance: Random) -> Iterable[Json]:
    kinds = ("image/gif", "image/jpg", "image/svg+xml", "png", "application/zip", "application/octet-stream", "")
    yield _with_part(body, {"inlineData": {"mimeType": chance.choice(kinds), "data": "R0lGODlhAQABAAAAACw="}})


def _bad_files(body: Json, _: Random) -> Iterable[Json]:
    yield _with_part(body, {"fileData": {"mimeType": "application/pdf"}})
    yield _with_part(body, {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://bucket/a.pdf"}})
    yield _with_part(body, {"file_data": {"mime_type": "image/tiff", "file_uri": "https://example.com/a.tiff"}})


def _add_uploaded_file(body: Json, _: Random) -> Iterable[Json]:
    uri = "https://generativelanguage.googleapis.com/v1beta/files/3qswqtk02p7x"
    yield _with_part(body, {"fileData": {"mimeType": "application/pdf", "fileUri": uri}})


def _too_long(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    content = next(one for one in changes.contents(changed) if one.get("role") != "model")
    image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    changes.parts(content)[:0] = [image] * 4100
    yield changed


def _system_media(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    request = changes.request_in(changed)
    if changes.get(request, "cached_content") is None:
        image = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
        changes.put(request, "system_instruction", {"parts": [{"text": "Look."}, image]})
        yield changed


def _nameless(body: Json, _: Random) -> Iterable[Json]:
    for member in ("function_call", "function_response"):
        changed = changes.copy_body(body)
        for _content, _index, part in changes.place_parts(changed):
            if changes.get(part, member) is not None:
                changes.get(part, member).pop("name")
                yield changed
                break


def _show(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    for response in changes.responses(changed):
        response["parts"] = [{"inlineData": {"mimeType": "image/gif", "data": "R0lGODlhAQABAAAAACw="}}]
        yield changed
        return


def _cache_with_tools(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.with_function(body)
    changes.put(changes.request_in(changed), "cached_content", "cachedContents/one")
    yield changed


def _twice_safe(body: Json, _: Random) -> Iterable[Json]:
    changed = changes.copy_body(body)
    one = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}
    changes.put(changes.request_in(changed), "safety_settings", [one, {**one, "threshold": "OFF"}])
    yield changed


MUTATORS: dict[str, Mutate] = {
    "gemini.contents-given": _without_contents,
    "gemini.role": _other_roles,
    "gemini.parts-given": _without_parts,
    "gemini.part-data": _without_data,
    "gemini.empty-text": _empty_text,
    "gemini.inline-data": _unseen_media,
    "gemini.file-data": _bad_files,
    "gemini.file-uploaded": _add_uploaded_file,
    "gemini.input-tokens": _too_long,
    "gemini.system-text": _system_media,
    "gemini.call-name": _nameless,
    "gemini.result-parts": _show,
    "gemini.cached-content": _cache_with_tools,
    "gemini.safety-once": _twice_safe,
}
