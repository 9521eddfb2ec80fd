"""Rules about messages: which call a result belongs to, which role may have which parts, and in which form."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from dragoman.simulator.apis.chat.body import IGNORED_TEXT_MEMBERS, ChatCompletionsRequest
from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.openai.checks import (
    describe_name_problem,
    reject_empty_array,
    reject_invalid_name,
    reject_over_limit,
)
from dragoman.simulator.apis.openai.models import is_audio_model, when_generation_before, when_generation_from
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation, find, truncate_pointer

PROBED = "reported: probe of gpt-5.6-terra on /v1/chat/completions, 2026-08-30"
_SPEAKER_NAME = r"[^\s<|\\/>]+"
_CONTENT_SUBSTITUTES = ("tool_calls", "function_call", "refusal", "audio")
_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?:;[^;,]+)*?(?P<base64>;base64)?,(?P<data>.*)", re.DOTALL)
_IMAGES = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")
_EXAMPLE = "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
_UNSUPPORTED_IMAGE = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)


def _check_content(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for where, message in request.find("/messages/*"):
        replaced = message["role"] == "assistant" and any(
            message.get(member) is not None for member in _CONTENT_SUBSTITUTES
        )
        if message.get("content") is None and message["role"] != "developer" and not replaced:
            yield Violation("Invalid value for 'content': expected a string, got null.", f"{where}/content")


class _PairingError(Struct, frozen=True):
    kind: Literal["unasked", "stranger", "twice", "unanswered"]
    index: int
    ids: tuple[str, ...]


def _load_pairing_errors(request: ChatCompletionsRequest) -> list[_PairingError]:
    if "pairing" not in request.computed:
        request.computed["pairing"] = list(_find_pairing_errors(request))
    return request.computed["pairing"]


def _find_pairing_errors(request: ChatCompletionsRequest) -> Iterator[_PairingError]:
    """Yield pairing errors: each call needs exactly one result, right after the assistant message with the call."""
    call_ids: list[str] = []
    answered: set[str] = set()
    messages = request.list("messages")
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if not call_ids:
                yield _PairingError("unasked", place, (call_id,))
            elif call_id not in call_ids:
                yield _PairingError("stranger", place, (call_id,))
            elif call_id in answered:
                yield _PairingError("twice", place, (call_id,))
            answered.add(call_id)
            continue
        if missing := tuple(call_id for call_id in call_ids if call_id not in answered):
            yield _PairingError("unanswered", place, missing)
        call_ids = _read_call_ids(message)
        answered = set()
    if missing := tuple(call_id for call_id in call_ids if call_id not in answered):
        yield _PairingError("unanswered", len(messages) - 1, missing)


def _read_call_ids(message: Json) -> list[str]:
    return [call["id"] for call in message.get("tool_calls") or ()]


def _check_result_without_call(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for fault in _load_pairing_errors(request):
        if fault.kind == "unasked":
            message = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            yield Violation(f"Invalid parameter: {message}", f"/messages/{fault.index}/role")


def _check_unknown_call_id(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for fault in _load_pairing_errors(request):
        if fault.kind == "stranger":
            message = f"'tool_call_id' of '{fault.ids[0]}' not found in 'tool_calls' of previous message."
            yield Violation(f"Invalid parameter: {message}", f"/messages/{fault.index}/tool_call_id")


def _check_duplicate_call_id(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for place, message in enumerate(request.list("messages")):
        ids = _read_call_ids(message)
        yield from (_build_duplicate_violation(call_id, place) for call_id in ids if ids.count(call_id) > 1)
    for fault in _load_pairing_errors(request):
        if fault.kind == "twice":
            yield _build_duplicate_violation(fault.ids[0], fault.index)


def _build_duplicate_violation(call_id: str, index: int) -> Violation:
    return Violation(f"Duplicate value for 'tool_call_id' of '{call_id}' in message[{index}]", f"/messages/{index}")


def _check_call_without_result(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for fault in _load_pairing_errors(request):
        if fault.kind == "unanswered":
            yield Violation(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(fault.ids),
                f"/messages/{fault.index}/role",
            )


def _check_speaker_names(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, message in request.find("/messages/*"):
        where, speaker = f"{pointer}/name", message.get("name")
        if speaker is None or message["role"] == "function":
            continue
        if fault := describe_name_problem(where, speaker, _SPEAKER_NAME):
            yield Violation(fault, where)


def _check_part_roles(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, message in request.find("/messages/*"):
        role = message["role"]
        supported = ("text", "refusal") if role == "assistant" else ("text",)
        for where, part in find(message, "/content/*"):
            kind = part["type"]
            if kind == "image_url" and role != "user":
                yield Violation(
                    f"Invalid '{words.format_pointer(pointer)}'. Image URLs are only allowed for messages "
                    f"with role 'user', but this message with role '{role}' contains an image URL.",
                    pointer,
                )
            elif (kind in {"input_audio", "file"} and role != "user") or (kind == "refusal" and role != "assistant"):
                yield Violation(words.describe_invalid_value(kind, supported), f"{pointer}{where}/type")


def _decode_base64(data: str) -> bytes | None:
    try:
        return b64decode(data, validate=True)
    except (Error, ValueError):
        return None


def _describe_image_error(where: str, url: str) -> str:
    """Return the error text for an image URL of a wrong form, or ""."""
    if url.startswith(("http://", "https://")):
        return ""
    start = f"Invalid '{words.format_pointer(where)}'. Expected a"
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
    return f"{start} an invalid base64-encoded value." if _decode_base64(found["data"]) is None else ""


def _check_image_bytes(request: ChatCompletionsRequest, context: CheckContext) -> Iterator[Violation]:
    if context.recorded:
        # The images of recordings are replaced by placeholders.
        return
    for where, url in request.find("/messages/*/content/*/image_url/url"):
        found = _DATA_URL.fullmatch(url)
        data = _decode_base64(found["data"]) if found is not None else None
        if data is not None and not data.startswith(_MAGIC) and not (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
            yield Violation(_UNSUPPORTED_IMAGE, truncate_pointer(where, 4))


def _check_files(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for where, file in request.find("/messages/*/content/*/file"):
        data = file.get("file_data")
        if file.get("file_id") is not None:
            continue
        if data is None:
            yield Violation(words.describe_missing(f"{where}/file_id"), where)
            continue
        found = _DATA_URL.fullmatch(data)
        if found is None or not found["base64"] or _decode_base64(found["data"]) is None:
            yield Violation(
                f"Invalid file data: '{words.format_pointer(where)}.file_data'. Expected a base64-encoded data URL "
                "with a valid file MIME type (e.g. 'data:application/pdf;base64,aW1nIGJ5dGVzIGhlcmU='), but got "
                "something else.",
                f"{where}/file_data",
            )
        elif file.get("filename") is None:
            yield Violation(words.describe_missing(f"{where}/filename"), where)


def _check_ignored_members(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, message in request.find("/messages/*"):
        if message["role"] in {"system", "assistant"}:
            continue
        for where, part in find(message, "/content/*"):
            names = [
                member for member in IGNORED_TEXT_MEMBERS if part["type"] == "text" and part.get(member) is not None
            ]
            for member in names:
                yield Violation(words.describe_unknown(f"{pointer}{where}/{member}"), f"{pointer}{where}")


def _read_texts(message: Json) -> Iterator[str]:
    content: Any = message.get("content")
    if isinstance(content, str):
        yield content
    yield from (text for _, text in find(message, "/content/*/text"))


def _check_json_word(request: ChatCompletionsRequest, _: CheckContext) -> Iterator[Violation]:
    wants = request.at("/response_format/type") == "json_object"
    if wants and not any(
        "json" in text.lower() for message in request.list("messages") for text in _read_texts(message)
    ):
        yield Violation(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
            "/messages",
        )


RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule(
        "chat.messages-empty",
        "There is at least one message.",
        "recorded: openai_chat/ai-gateway-0008",
        reject_empty_array("/messages"),
    ),
    Rule(
        "chat.tool-calls-empty",
        "An assistant message without calls has no `tool_calls`, not an empty list.",
        "wire/openai_chat.md section 2",
        reject_empty_array("/messages/*/tool_calls"),
    ),
    Rule(
        "chat.tool-call-id-length",
        "The id of a call has at most 64 characters.",
        "wire/openai_chat.md section 5: a limit of 40 was enforced for years, 64 since January 2026",
        reject_over_limit("/messages/*/tool_calls/*/id", characters=64),
    ),
    Rule(
        "chat.call-name",
        "A tool name in a call has 1 to 64 letters, digits, underscores and dashes.",
        "wire/openai_chat.md section 3; for calls in the history: reported in public issues",
        reject_invalid_name("/messages/*/tool_calls/*/*/name"),
    ),
    Rule(
        "chat.speaker-name",
        "The `name` of a message has 1 to 64 characters without spaces, angle brackets, bars and slashes.",
        "reported in public issues: the error text contains the pattern",
        _check_speaker_names,
    ),
    Rule(
        "chat.tool-result-unasked",
        "A `tool` message follows an assistant message with `tool_calls`.",
        "wire/openai_chat.md section 2",
        _check_result_without_call,
    ),
    Rule(
        "chat.tool-result-unknown-id",
        "The `tool_call_id` of a `tool` message is the id of a call in the assistant message before it.",
        "wire/openai_chat.md section 2",
        _check_unknown_call_id,
    ),
    Rule(
        "chat.tool-call-id-duplicate",
        "No two calls of a message have the same id, and no call has two results.",
        "reported in public issues; wire/mapping.md section 2 (duplicated result: reject)",
        _check_duplicate_call_id,
    ),
    Rule(
        "chat.tool-calls-unanswered",
        "Every call has a result in a `tool` message before any other message.",
        "wire/openai_chat.md section 2",
        _check_call_without_result,
    ),
    Rule(
        "chat.function-role",
        "GPT-5.6 and later do not support messages with the role `function`.",
        PROBED,
        PathCheck(
            "/messages/*/role",
            lambda where, _: (
                f"Unsupported value: '{words.format_pointer(where)}' does not support 'function' with this model."
            ),
            lambda role: role == "function",
            when_generation_from(5, 6),
        ),
    ),
    Rule(
        "chat.part-role",
        "Only user messages have images, audio and files; only assistant messages have refusals.",
        "wire/openai_chat.md section 2; the error text about images: reported in public issues",
        _check_part_roles,
    ),
    Rule(
        "chat.audio-input-model",
        "Only audio models accept audio input.",
        "recorded: openai_chat/pydantic-ai-0052",
        PathCheck(
            "/messages/*/content/*/input_audio",
            lambda where, _: (
                f"Invalid '{words.format_pointer(where)}'. Content blocks are expected to be either text or "
                "image_url type."
            ),
            when=lambda request: not is_audio_model(request.model),
            steps=2,
        ),
    ),
    Rule(
        "chat.image-url",
        "An image is an http(s) URL or a base64 data URL of a PNG, JPEG, GIF or WebP.",
        "wire/openai_chat.md section 2 and wire/mapping.md section 10",
        PathCheck("/messages/*/content/*/image_url/url", _describe_image_error),
    ),
    Rule(
        "chat.image-bytes",
        "The bytes in an image's data URL are those of an image.",
        "recorded: openai_chat/openllmetry-0042",
        _check_image_bytes,
    ),
    Rule(
        "chat.file-part",
        "A file has a `file_id`, or a base64 data URL and a file name.",
        "wire/openai_chat.md section 2",
        _check_files,
    ),
    Rule(
        "chat.text-part-members",
        "Undocumented fields of a text part are ignored in system and assistant messages, and rejected elsewhere.",
        "recorded: openai_chat/lingua-0005 and lingua-0009 (`cache_control` ignored); fields of the message in a "
        "part: sent by @openai/agents; developer messages: reported in public repositories; user and tool messages: "
        "no source",
        _check_ignored_members,
    ),
    Rule(
        "chat.cache-breakpoint-model",
        "Explicit cache breakpoints and cache options are supported since GPT-5.6.",
        "wire/openai_chat.md sections 1 and 2",
        PathCheck(
            "/messages/*/content/*/prompt_cache_breakpoint",
            words.describe_unsupported,
            when=when_generation_before(5, 6),
        ),
        PathCheck("/prompt_cache_options", words.describe_unsupported, when=when_generation_before(5, 6)),
    ),
)
LAST_RULES: tuple[Rule[ChatCompletionsRequest], ...] = (
    Rule(
        "chat.content-required",
        "Content is null or absent only in an assistant message that has calls, a refusal or audio instead.",
        f"wire/openai_chat.md section 2; {PROBED}",
        _check_content,
    ),
    Rule(
        "chat.json-word",
        "With `json_object` the messages contain the word JSON.",
        "reported in public issues for years",
        _check_json_word,
    ),
)
"""OpenAI checks these after everything else."""
