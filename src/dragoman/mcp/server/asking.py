"""What a call of `query` asks: the prompt and its parts, in the words of the core."""

from typing import Annotated, Any, Literal, cast

import msgspec
from pydantic import BaseModel, Field

from dragoman.core.parts import AnyPart, Inline, Link, Media, MediaKind, Text
from dragoman.core.problems import Problem

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}
_SCHEMES = ("https://", "http://", "gs://", "data:")


class InlineData(BaseModel):
    """Media in the call itself."""

    mimeType: Annotated[str, Field(description="the media type, like image/png")]  # noqa: N815  Gemini's word
    data: Annotated[str, Field(description="the bytes in base64")]


class FileData(BaseModel):
    """Media behind an address."""

    fileUri: Annotated[str, Field(description="https, http, gs or data")]  # noqa: N815  Gemini's word
    mimeType: Annotated[str, Field(description="the media type, if it is known")] = ""  # noqa: N815  Gemini's word


class Part(BaseModel):
    """One part of the question, in Gemini's form: exactly one of the three."""

    text: str | None = None
    inlineData: InlineData | None = None  # noqa: N815  Gemini's word
    fileData: FileData | None = None  # noqa: N815  Gemini's word


def question(prompt: str, given: list[Part] | None) -> tuple[AnyPart, ...]:
    """Return what the user says: the parts, and the prompt after them."""
    parts = [_part(part, f"/parts/{at}") for at, part in enumerate(given or [])]
    return (*parts, Text(text=prompt))


def _part(part: Part, where: str) -> AnyPart:
    match part:
        case Part(text=str(text), inlineData=None, fileData=None):
            return Text(text=text)
        case Part(text=None, inlineData=InlineData() as inline, fileData=None):
            return _media(inline.mimeType, Inline(inline.data))
        case Part(text=None, inlineData=None, fileData=FileData() as file):
            return _linked(file, where)
        case _:
            raise Problem("invalid_request", f"{where}: give one of text, inlineData and fileData", where=where)


def _linked(file: FileData, where: str) -> Media:
    uri = file.fileUri
    if not uri.lower().startswith(_SCHEMES):
        raise Problem("invalid_request", f"{where}/fileData/fileUri: an address begins with {', '.join(_SCHEMES)}")
    if not uri.startswith("data:"):
        return _media(file.mimeType, Link(uri))
    head, comma, data = uri.removeprefix("data:").partition(",")
    media_type, _, coding = head.partition(";")
    if not comma or coding != "base64":
        raise Problem("invalid_request", f"{where}/fileData/fileUri: data: needs a media type and base64")
    return _media(media_type, Inline(data))


def _media(media_type: str, source: Inline | Link) -> Media:
    return Media(kind=_KINDS.get(media_type.partition("/")[0], "document"), media_type=media_type, source=source)


def compact(arguments: str, most: int = 80) -> str:
    """Return the arguments of a call in a few words."""
    try:
        told: Any = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        told = arguments
    members = cast("dict[str, Any]", told) if isinstance(told, dict) else {"": told}
    text = ", ".join(f"{key}={value}" if key else str(value) for key, value in members.items())
    return text if len(text) <= most else f"{text[: most - 1]}…"
