"""Rules about images and documents."""

from base64 import b64decode
from binascii import Error
from collections.abc import Iterator

from dragoman.simulator.apis.messages.blocks import Base64Document, Base64Image, Document, Image, Link, ToolResult
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.ruling import rule
from dragoman.simulator.rule import Situation, Violation

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def media_of(reading: Reading) -> Iterator[tuple[str, str, Image | Document]]:
    """Every image and document: its pointer, the vendor's path, itself."""
    for _turn, placed in reading.blocks():
        block = placed.block
        if isinstance(block, Image | Document):
            kind = "image" if isinstance(block, Image) else "document"
            yield placed.where, f"{placed.path}.{kind}", block
        elif isinstance(block, ToolResult) and isinstance(block.content, list):
            for number, part in enumerate(block.content):
                if isinstance(part, Image | Document):
                    kind = "image" if isinstance(part, Image) else "document"
                    path = f"{placed.path}.tool_result.content.{number}.{kind}"
                    yield f"{placed.where}/content/{number}", path, part


def _bytes(data: str) -> bytes | None:
    try:
        return b64decode(data, validate=True)
    except (Error, ValueError):
        return None


def _look(raw: bytes) -> str:
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _MAGIC if raw.startswith(start)), "")


@rule("media-base64", "no source: the words are not documented")
def media_base64(reading: Reading, _: Situation) -> Iterator[Violation]:
    """Inline data is base64, without anything before it."""
    for where, path, block in media_of(reading):
        source = block.source
        if isinstance(source, Base64Image | Base64Document) and not _bytes(source.data):
            yield Violation(f"{path}.source.base64.data: invalid base64 data", f"{where}/source/data")


@rule("image-type", "no source: the words are not documented")
def image_type(reading: Reading, _: Situation) -> Iterator[Violation]:
    """An image is of the type it is said to be."""
    for where, path, block in media_of(reading):
        source = block.source
        if not isinstance(source, Base64Image):
            continue
        look = _look(_bytes(source.data) or b"")
        if look and look != source.media_type:
            words = (
                f"The image was specified using the {source.media_type} media type, but the image appears to be a "
                f"{look} image"
            )
            yield Violation(f"{path}.source.base64.data: {words}", f"{where}/source/media_type")


@rule("document-pdf", "no source: the words are not documented")
def document_pdf(reading: Reading, _: Situation) -> Iterator[Violation]:
    """A PDF is one."""
    for where, path, block in media_of(reading):
        if isinstance(block.source, Base64Document) and not (_bytes(block.source.data) or b"").startswith(b"%PDF"):
            yield Violation(f"{path}.source.base64.data: The PDF specified was not valid.", f"{where}/source/data")


@rule("media-url", "no source: the words are not documented")
def media_url(reading: Reading, _: Situation) -> Iterator[Violation]:
    """What stands on the web is fetched over HTTPS."""
    for where, path, block in media_of(reading):
        if isinstance(block.source, Link) and not block.source.url.startswith("https://"):
            yield Violation(f"{path}.source.url.url: Only HTTPS URLs are supported.", f"{where}/source/url")


RULES = (media_base64, image_type, document_pdf, media_url)
