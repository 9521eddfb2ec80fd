"""Rules about the parts of messages: which role may show what, and in which form images and files come."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator

from dragoman.simulator.apis.chat import words
from dragoman.simulator.apis.chat.models import family_of, is_audio_model
from dragoman.simulator.apis.chat.shape import (
    AssistantMessage,
    ChatRequest,
    Message,
    SystemMessage,
    UserMessage,
)
from dragoman.simulator.apis.chat.shape_parts import (
    AudioPart,
    FilePart,
    ImagePart,
    Part,
    RefusalPart,
    TextPart,
)
from dragoman.simulator.rule import Rule, Situation, Violation

_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?:;[^;,]+)*?(?P<base64>;base64)?,(?P<data>.*)", re.DOTALL)
_IMAGES = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_EXAMPLE = "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
# Anthropic's mark, and members of a whole message that a client took into its text.
_TOLERATED = ("cache_control", "role", "refusal", "annotations", "audio", "tool_calls")
_UNSUPPORTED_IMAGE = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)


def _parts(body: ChatRequest) -> Iterator[tuple[str, Message, Part]]:
    for place, message in enumerate(body.messages):
        if isinstance(message.content, list):
            for index, part in enumerate(message.content):
                yield f"/messages/{place}/content/{index}", message, part


def _place(where: str) -> str:
    """Return the message of a part, `messages[3]`."""
    return words.named("/".join(where.split("/")[:3]))


def _role(message: Message) -> str:
    return type(message).__struct_config__.tag  # pyright: ignore[reportReturnType]


def _check_part_role(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, message, part in _parts(body):
        match part:
            case TextPart():
                continue
            case ImagePart() if not isinstance(message, UserMessage):
                role = _role(message)
                yield Violation(
                    f"Invalid '{_place(where)}'. Image URLs are only allowed for messages with role 'user', "
                    f"but this message with role '{role}' contains an image URL.",
                    "/".join(where.split("/")[:3]),
                )
            case AudioPart() | FilePart() if not isinstance(message, UserMessage):
                kind = "input_audio" if isinstance(part, AudioPart) else "file"
                supported = ("text", "refusal") if isinstance(message, AssistantMessage) else ("text",)
                yield Violation(words.invalid_value(kind, supported), f"{where}/type")
            case RefusalPart() if not isinstance(message, AssistantMessage):
                yield Violation(words.invalid_value("refusal", ("text",)), f"{where}/type")
            case _:
                continue


def _check_audio_model(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if is_audio_model(body.model):
        return
    for where, _message, part in _parts(body):
        if isinstance(part, AudioPart):
            yield Violation(
                f"Invalid '{_place(where)}'. Content blocks are expected to be either text or image_url type.",
                "/".join(where.split("/")[:3]),
            )


def _decoded(data: str) -> bytes | None:
    try:
        return b64decode(data, validate=True)
    except (Error, ValueError):
        return None


def _image_fault(url: str, where: str) -> Violation | None:
    """Judge the form of an image's address."""
    if url.startswith(("http://", "https://")):
        return None
    name = words.named(where)
    if not url.startswith("data:"):
        return Violation(f"Invalid '{name}'. Expected a valid URL, but got a value with an invalid format.", where)
    expected = f"Invalid '{name}'. Expected a base64-encoded data URL with an image MIME type {_EXAMPLE}, but got "
    found = _DATA_URL.fullmatch(url)
    if found is None or not found["base64"]:
        return Violation(f"{expected}a value without the ';base64' separator.", where)
    if found["type"].lower() not in _IMAGES:
        return Violation(f"{expected}unsupported MIME type '{found['type']}'.", where)
    if not found["data"]:
        return Violation(f"{expected}empty base64-encoded bytes.", where)
    if _decoded(found["data"]) is None:
        return Violation(f"{expected}an invalid base64-encoded value.", where)
    return None


def _check_image_url(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, _message, part in _parts(body):
        fault = _image_fault(part.image_url.url, f"{where}/image_url/url") if isinstance(part, ImagePart) else None
        if fault is not None:
            yield fault


def _is_image(data: bytes) -> bool:
    return data.startswith(_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def _check_image_bytes(body: ChatRequest, situation: Situation) -> Iterator[Violation]:
    if situation.recorded:
        # Recordings have their images cut out, and something else put in.
        return
    for where, _message, part in _parts(body):
        if isinstance(part, ImagePart) and part.image_url.url.startswith("data:"):
            found = _DATA_URL.fullmatch(part.image_url.url)
            data = _decoded(found["data"]) if found is not None else None
            if data is not None and not _is_image(data):
                yield Violation(_UNSUPPORTED_IMAGE, where)


def _check_file(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, _message, part in _parts(body):
        if not isinstance(part, FilePart) or part.file.file_id is not None:
            continue
        data = part.file.file_data
        if data is None:
            yield Violation(words.missing(f"{where}/file/file_id"), f"{where}/file")
            continue
        found = _DATA_URL.fullmatch(data)
        if found is None or not found["base64"] or _decoded(found["data"]) is None:
            yield Violation(
                f"Invalid file data: '{words.named(where)}.file.file_data'. "
                "Expected a base64-encoded data URL with a valid file MIME type "
                "(e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got something else.",
                f"{where}/file/file_data",
            )
        elif part.file.filename is None:
            yield Violation(words.missing(f"{where}/file/filename"), f"{where}/file")


def _check_tolerated(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, message, part in _parts(body):
        if not isinstance(part, TextPart) or isinstance(message, SystemMessage | AssistantMessage):
            continue
        for name in _TOLERATED:
            if getattr(part, name) is not None:
                yield Violation(words.unknown(f"{where}/{name}"), where)


def _check_breakpoint(body: ChatRequest, _: Situation) -> Iterator[Violation]:
    if family_of(body.model).generation >= (5, 6):
        return
    for where, _message, part in _parts(body):
        if not isinstance(part, RefusalPart) and part.prompt_cache_breakpoint is not None:
            yield Violation(words.unsupported("prompt_cache_breakpoint"), f"{where}/prompt_cache_breakpoint")
    if body.prompt_cache_options is not None:
        yield Violation(words.unsupported("prompt_cache_options"), "/prompt_cache_options")


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.part-role",
        "Only users show images, audio and files; only assistants refuse.",
        "wire/openai_chat.md section 2; the words about images: reported in public issues",
        _check_part_role,
    ),
    Rule(
        "chat.audio-input-model",
        "Only audio models hear.",
        "recorded: openai_chat/pydantic-ai-0052",
        _check_audio_model,
    ),
    Rule(
        "chat.image-url",
        "An image is an http(s) address or a base64 data URL of a PNG, JPEG, GIF or WebP.",
        "wire/openai_chat.md section 2 and wire/mapping.md section 10",
        _check_image_url,
    ),
    Rule(
        "chat.image-bytes",
        "What a data URL of an image holds is an image.",
        "recorded: openai_chat/openllmetry-0042",
        _check_image_bytes,
    ),
    Rule(
        "chat.file-part",
        "A file has a `file_id`, or a base64 data URL and a file name.",
        "wire/openai_chat.md section 2",
        _check_file,
    ),
    Rule(
        "chat.text-part-members",
        "Members that a text part does not have are ignored in system and assistant messages, and unknown elsewhere.",
        "recorded: openai_chat/lingua-0005 and lingua-0009 (`cache_control` ignored); the message's own members in a "
        "part: sent by @openai/agents; developer messages: reported in public repositories; user and tool messages: "
        "no source",
        _check_tolerated,
    ),
    Rule(
        "chat.cache-breakpoint-model",
        "Explicit cache breakpoints and cache options exist since GPT-5.6.",
        "wire/openai_chat.md sections 1 and 2",
        _check_breakpoint,
    ),
)
