"""What the content of a message of Chat Completions is made of."""

from typing import Any, Literal

from dragoman.simulator.shape import Strict


class Breakpoint(Strict):
    """Where the cached prefix may end."""

    mode: Literal["explicit"]
    ttl: Literal["30m", "12h"] | None = None


class TextPart(Strict, tag_field="type", tag="text"):
    """Text in a list of parts; what comes after the breakpoint is tolerated in some roles, which a rule judges."""

    text: str
    prompt_cache_breakpoint: Breakpoint | None = None
    cache_control: Any = None
    role: Any = None
    refusal: Any = None
    annotations: Any = None
    audio: Any = None
    tool_calls: Any = None


class RefusalPart(Strict, tag_field="type", tag="refusal"):
    """An assistant's refusal."""

    refusal: str


class ImageUrl(Strict):
    """An address, or the image itself as a data URL."""

    url: str
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImagePart(Strict, tag_field="type", tag="image_url"):
    """An image."""

    image_url: ImageUrl
    prompt_cache_breakpoint: Breakpoint | None = None


class InputAudio(Strict):
    """Sound, in base64."""

    data: str
    format: Literal["wav", "mp3"]


class AudioPart(Strict, tag_field="type", tag="input_audio"):
    """A recording."""

    input_audio: InputAudio
    prompt_cache_breakpoint: Breakpoint | None = None


class FileContent(Strict):
    """A file that was uploaded, or one that is sent along."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class FilePart(Strict, tag_field="type", tag="file"):
    """A document."""

    file: FileContent
    prompt_cache_breakpoint: Breakpoint | None = None


Part = TextPart | RefusalPart | ImagePart | AudioPart | FilePart
Content = str | list[Part]
