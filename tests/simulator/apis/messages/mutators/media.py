"""Mutators for the rules about media: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import PIXEL, user_blocks_added
from simulator.mutation import Mutate


def _image(data: str = PIXEL, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _broken(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, _image(f"data:image/png;base64,{PIXEL}"))
    yield from user_blocks_added(body, _image(""))
    source = {"type": "base64", "media_type": "application/pdf", "data": "not base64!"}
    yield from user_blocks_added(body, {"type": "document", "source": source})


def _change_type(body: Json, _: Random) -> Iterator[Json]:
    yield from user_blocks_added(body, _image(media_type="image/jpeg"))


def _no_pdf(body: Json, _: Random) -> Iterator[Json]:
    source = {"type": "base64", "media_type": "application/pdf", "data": PIXEL}
    yield from user_blocks_added(body, {"type": "document", "source": source})


def _insecure(body: Json, chance: Random) -> Iterator[Json]:
    url = chance.choice(["http://example.com/a.png", "gs://bucket/a.png", f"data:image/png;base64,{PIXEL}"])
    if "anthropic_version" not in body:
        yield from user_blocks_added(body, {"type": "image", "source": {"type": "url", "url": url}})


MUTATORS: dict[str, Mutate] = {
    "messages.media-base64": _broken,
    "messages.image-type": _change_type,
    "messages.document-pdf": _no_pdf,
    "messages.media-url": _insecure,
}
