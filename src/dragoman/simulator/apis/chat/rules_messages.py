"""Rules about messages: which call a result belongs to, which role may show what, and in which form."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from dragoman.simulator.apis.chat.body import TOLERATED, ChatRequest
from dragoman.simulator.apis.chat.models import before, is_audio_model, since
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import limit, name, name_fault, not_empty
from dragoman.simulator.rule import Json, Refuse, Rule, Situation, Violation, cut, find

PROBED = "reported: probe of gpt-5.6-terra on /v1/chat/completions, 2026-08-30"
_SPEAKER = r"[^\s<|\\/>]+"
_SUBSTITUTES = ("tool_calls", "function_call", "refusal", "audio")
_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?:;[^;,]+)*?(?P<base64>;base64)?,(?P<data>.*)", re.DOTALL)
_IMAGES = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_EXAMPLE = "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
_UNSUPPORTED_IMAGE = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)


def _content(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, message in find(request.document, "/messages/*"):
        replaced = message["role"] == "assistant" and any(message.get(member) is not None for member in _SUBSTITUTES)
        if message.get("content") is None and message["role"] != "developer" and not replaced:
            yield Violation("Invalid value for 'content': expected a string, got null.", f"{where}/content")


class _Fault(Struct, frozen=True):
    kind: Literal["unasked", "stranger", "twice", "unanswered"]
    place: int
    ids: tuple[str, ...]


def _pairing(request: ChatRequest) -> list[_Fault]:
    if "pairing" not in request.computed:
        request.computed["pairing"] = list(_pairing_faults(request))
    return request.computed["pairing"]


def _pairing_faults(request: ChatRequest) -> Iterator[_Fault]:
    """Walk the turns: results answer the calls of the assistant right before them, each once, and all of them."""
    asked: list[str] = []
    answered: set[str] = set()
    messages = request.list("messages")
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if not asked:
                yield _Fault("unasked", place, (call_id,))
            elif call_id not in asked:
                yield _Fault("stranger", place, (call_id,))
            elif call_id in answered:
                yield _Fault("twice", place, (call_id,))
            answered.add(call_id)
            continue
        if missing := tuple(call_id for call_id in asked if call_id not in answered):
            yield _Fault("unanswered", place, missing)
        asked = _call_ids(message)
        answered = set()
    if missing := tuple(call_id for call_id in asked if call_id not in answered):
        yield _Fault("unanswered", len(messages) - 1, missing)


def _call_ids(message: Json) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _unasked(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(request):
        if fault.kind == "unasked":
            message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            yield Violation(f"Invalid parameter: {message}", f"/messages/{fault.place}/role")


def _stranger(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(request):
        if fault.kind == "stranger":
            message = f"'tool_call_id' of '{fault.ids[0]}' not found in 'tool_calls' of previous message."
            yield Violation(f"Invalid parameter: {message}", f"/messages/{fault.place}/tool_call_id")


def _twice(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for place, message in enumerate(request.list("messages")):
        ids = _call_ids(message)
        yield from (_duplicate(call_id, place) for call_id in ids if ids.count(call_id) > 1)
    for fault in _pairing(request):
        if fault.kind == "twice":
            yield _duplicate(fault.ids[0], fault.place)


def _duplicate(call_id: str, place: int) -> Violation:
    return Violation(f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{place}]", f"/messages/{place}")


def _unanswered(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for fault in _pairing(request):
        if fault.kind == "unanswered":
            yield Violation(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(fault.ids),
                f"/messages/{fault.place}/role",
            )


def _speakers(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for pointer, message in find(request.document, "/messages/*"):
        where, speaker = f"{pointer}/name", message.get("name")
        if speaker is None or message["role"] == "function":
            continue
        if fault := name_fault(where, speaker, _SPEAKER):
            yield Violation(fault, where)


def _part_roles(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for pointer, message in find(request.document, "/messages/*"):
        role = message["role"]
        supported = ("text", "refusal") if role == "assistant" else ("text",)
        for where, part in find(message, "/content/*"):
            kind = part["type"]
            if kind == "image_url" and role != "user":
                yield Violation(
                    f"Invalid '{words.named(pointer)}'. Image URLs are only allowed for messages with role 'user', "
                    f"but this message with role '{role}' contains an image URL.",
                    pointer,
                )
            elif (kind in {"input_audio", "file"} and role != "user") or (kind == "refusal" and role != "assistant"):
                yield Violation(words.invalid_value(kind, supported), f"{pointer}{where}/type")


def _decoded(data: str) -> bytes | None:
    try:
        return b64decode(data, validate=True)
    except (Error, ValueError):
        return None


def _image_fault(where: str, url: str) -> str:
    """Judge the form of an image's address."""
    if url.startswith(("http://", "https://")):
        return ""
    start = f"Invalid '{words.named(where)}'. Expected a"
    if not url.startswith("data:"):
        return f"{start} valid URL, but got a value with an invalid format."
    start = f"{start} base64-encoded data URL with an image MIME type {_EXAMPLE}, but got"
    found = _DATA_URL.fullmatch(url)
    if found is None or not found["base64"]:
        return f"{start} a value without the ';base64' separator."
    if found["type"].lower() not in _IMAGES:
        return f"{start} unsupported MIME type '{found['type']}'."
    if not found["data"]:
        return f"{start} empty base64-encoded bytes."
    return f"{start} an invalid base64-encoded value." if _decoded(found["data"]) is None else ""


def _image_bytes(request: ChatRequest, situation: Situation) -> Iterator[Violation]:
    if situation.recorded:
        # Recordings have their images cut out, and something else put in.
        return
    for where, url in find(request.document, "/messages/*/content/*/image_url/url"):
        found = _DATA_URL.fullmatch(url)
        data = _decoded(found["data"]) if found is not None else None
        if data is not None and not data.startswith(_MAGIC) and not (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
            yield Violation(_UNSUPPORTED_IMAGE, cut(where, 4))


def _files(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for where, file in find(request.document, "/messages/*/content/*/file"):
        data = file.get("file_data")
        if file.get("file_id") is not None:
            continue
        if data is None:
            yield Violation(words.missing(f"{where}/file_id"), where)
            continue
        found = _DATA_URL.fullmatch(data)
        if found is None or not found["base64"] or _decoded(found["data"]) is None:
            yield Violation(
                f"Invalid file data: '{words.named(where)}.file_data'. Expected a base64-encoded data URL with a valid "
                "file MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got something else.",
                f"{where}/file_data",
            )
        elif file.get("filename") is None:
            yield Violation(words.missing(f"{where}/filename"), where)


def _tolerated(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    for pointer, message in find(request.document, "/messages/*"):
        if message["role"] in {"system", "assistant"}:
            continue
        for where, part in find(message, "/content/*"):
            names = [member for member in TOLERATED if part["type"] == "text" and part.get(member) is not None]
            for member in names:
                yield Violation(words.unknown(f"{pointer}{where}/{member}"), f"{pointer}{where}")


def _texts(message: Json) -> Iterator[str]:
    content: Any = message.get("content")
    if isinstance(content, str):
        yield content
    yield from (text for _, text in find(message, "/content/*/text"))


def _json_word(request: ChatRequest, _: Situation) -> Iterator[Violation]:
    wants = request.at("/response_format/type") == "json_object"
    if wants and not any("json" in text.lower() for message in request.list("messages") for text in _texts(message)):
        yield Violation(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            "/messages",
        )


RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.messages-empty",
        "There is at least one message.",
        "recorded: openai_chat/ai-gateway-0008",
        not_empty("/messages"),
    ),
    Rule(
        "chat.tool-calls-empty",
        "An assistant message without calls has no `tool_calls`, not an empty list.",
        "wire/openai_chat.md section 2",
        not_empty("/messages/*/tool_calls"),
    ),
    Rule(
        "chat.tool-call-id-length",
        "The id of a call has at most 64 characters.",
        "wire/openai_chat.md section 5: a limit of 40 was enforced for years, 64 since January 2026",
        limit("/messages/*/tool_calls/*/id", characters=64),
    ),
    Rule(
        "chat.call-name",
        "A called tool's name has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3; for calls of the history: reported in public issues",
        name("/messages/*/tool_calls/*/*/name"),
    ),
    Rule(
        "chat.speaker-name",
        "The name of a speaker has 1 to 64 characters without spaces, angle brackets, bars and slashes.",
        "reported in public issues: the pattern is told in the error",
        _speakers,
    ),
    Rule(
        "chat.tool-result-unasked",
        "A `tool` message follows an assistant message with `tool_calls`.",
        "wire/openai_chat.md section 2",
        _unasked,
    ),
    Rule(
        "chat.tool-result-unknown-id",
        "The id of a `tool` message is one of the calls it follows.",
        "wire/openai_chat.md section 2",
        _stranger,
    ),
    Rule(
        "chat.tool-call-id-duplicate",
        "No two calls of a message have the same id, and none is answered twice.",
        "reported in public issues; wire/mapping.md section 2 (duplicated result: reject)",
        _twice,
    ),
    Rule(
        "chat.tool-calls-unanswered",
        "Every call is answered by a `tool` message before any other message.",
        "wire/openai_chat.md section 2",
        _unanswered,
    ),
    Rule(
        "chat.function-role",
        "GPT-5.6 and later know no messages with the role `function`.",
        PROBED,
        Refuse(
            "/messages/*/role",
            lambda where, _: f"Unsupported value: '{words.named(where)}' does not support 'function' with this model.",
            lambda role: role == "function",
            since(5, 6),
        ),
    ),
    Rule(
        "chat.part-role",
        "Only users show images, audio and files; only assistants refuse.",
        "wire/openai_chat.md section 2; the words about images: reported in public issues",
        _part_roles,
    ),
    Rule(
        "chat.audio-input-model",
        "Only audio models hear.",
        "recorded: openai_chat/pydantic-ai-0052",
        Refuse(
            "/messages/*/content/*/input_audio",
            lambda where, _: (
                f"Invalid '{words.named(where)}'. Content blocks are expected to be either text or image_url type."
            ),
            when=lambda request: not is_audio_model(request.model),
            steps=2,
        ),
    ),
    Rule(
        "chat.image-url",
        "An image is an http(s) address or a base64 data URL of a PNG, JPEG, GIF or WebP.",
        "wire/openai_chat.md section 2 and wire/mapping.md section 10",
        Refuse("/messages/*/content/*/image_url/url", _image_fault),
    ),
    Rule(
        "chat.image-bytes",
        "What a data URL of an image holds is an image.",
        "recorded: openai_chat/openllmetry-0042",
        _image_bytes,
    ),
    Rule(
        "chat.file-part",
        "A file has a `file_id`, or a base64 data URL and a file name.",
        "wire/openai_chat.md section 2",
        _files,
    ),
    Rule(
        "chat.text-part-members",
        "Members that a text part does not have are ignored in system and assistant messages, and unknown elsewhere.",
        "recorded: openai_chat/lingua-0005 and lingua-0009 (`cache_control` ignored); the message's own members in a "
        "part: sent by @openai/agents; developer messages: reported in public repositories; user and tool messages: "
        "no source",
        _tolerated,
    ),
    Rule(
        "chat.cache-breakpoint-model",
        "Explicit cache breakpoints and cache options exist since GPT-5.6.",
        "wire/openai_chat.md sections 1 and 2",
        Refuse("/messages/*/content/*/prompt_cache_breakpoint", words.unsupported, when=before(5, 6)),
        Refuse("/prompt_cache_options", words.unsupported, when=before(5, 6)),
    ),
)
LAST_RULES: tuple[Rule[ChatRequest], ...] = (
    Rule(
        "chat.content-required",
        "Content is null or absent only in an assistant message that has calls, a refusal or audio instead.",
        f"wire/openai_chat.md section 2; {PROBED}",
        _content,
    ),
    Rule(
        "chat.json-word",
        "With `json_object` the messages say the word JSON.",
        "reported in public issues for years",
        _json_word,
    ),
)
"""OpenAI looks at these after everything else about the request."""
