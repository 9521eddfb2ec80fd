"""Rules about input items: their ids, their media, and the pairing of calls and results."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.openai import words
from dragoman.simulator.apis.responses.body import ResponsesRequest
from dragoman.simulator.apis.responses.words import describe_one_of
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation

PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fc",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctc",
    "reasoning": "rs",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_call": "mcp",
    "compaction": "cmp",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "apply_patch_call": "apc",
    "program": "cm",
}
RESULT_TYPES = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "tool_search_call": ("tool_search_output", "function_call_output"),
    "computer_call": ("computer_call_output",),
    "shell_call": ("shell_call_output",),
    "local_shell_call": ("local_shell_call_output",),
    "apply_patch_call": ("apply_patch_call_output",),
}
"""Result types of each call type; a tool search also accepts a function's result (recorded: pydantic-ai-0013)."""
_ALL_RESULT_TYPES = frozenset(answer for answers in RESULT_TYPES.values() for answer in answers)
_VALID_ID = re.compile(r"[A-Za-z0-9_-]+")
_URL = re.compile(r"https?://\S+|data:[^,]*,.*", re.DOTALL)
_DATA = re.compile(r"data:([^;,]*)")
_IMAGES = {"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"}
_MEDIA_EXTENSION = re.compile(r"\.(?:mp3|wav|ogg|flac|m4a|aac|mp4|mov|avi|webm|mkv)(?:\?|$)", re.IGNORECASE)
_PART_SOURCES: dict[str, tuple[str, ...]] = {
    "input_text": (),
    "input_image": ("file_id", "image_url"),
    "input_file": ("file_id", "file_data", "file_url"),
}
"""Content parts, and the fields of which exactly one gives the content."""
_Pairs = dict[str, list[tuple[int, str]]]
"""Indexes and types of items by their call ids."""


def _check_ids(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        given, prefix = item.get("id"), PREFIXES.get(item["type"], "")
        if given is None:
            continue
        start = f"Invalid 'input[{number}].id': '{given}'. Expected an ID that"
        if _VALID_ID.fullmatch(given) is None:
            rest = "contains letters, numbers, underscores, or dashes, but this value contained additional characters."
            yield Violation(f"{start} {rest}", f"/input/{number}/id")
        elif not given.startswith(prefix):
            yield Violation(f"{start} begins with '{prefix}'.", f"/input/{number}/id")


def _check_duplicate_ids(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in request.items:
        given = item.get("id")
        # The result of a local shell call has the id of its call.
        if given is None or item["type"] == "local_shell_call_output":
            continue
        if given in seen:
            message = f"Duplicate item found with id {given}. Remove duplicate items from your input and try again."
            yield Violation(message, "/input")
        seen.add(given)


def _check_call_names(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        where = f"/input/{number}/name"
        if item["type"] in {"function_call", "custom_tool_call"} and not _VALID_ID.fullmatch(item["name"]):
            yield Violation(words.describe_pattern_mismatch(where, "^[a-zA-Z0-9_-]+$"), where)


def find_parts(request: ResponsesRequest) -> list[tuple[str, Json]]:
    """Return the text, image and file parts of messages and results, with their pointers."""
    if "parts" not in request.computed:
        places = [(number, item, name) for number, item in enumerate(request.items) for name in ("content", "output")]
        request.computed["parts"] = [
            (f"/input/{number}/{name}/{index}", part)
            for number, item, name in places
            if isinstance(item.get(name), list)
            for index, part in enumerate(item[name])
            if part.get("type") in _PART_SOURCES
        ]
    return request.computed["parts"]


def _check_sources(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for where, part in find_parts(request):
        sources = _PART_SOURCES[part["type"]]
        if sources and (fault := describe_one_of(where, part, sources)):
            yield Violation(fault, where)


def _check_images(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for pointer, part in find_parts(request):
        url, where = part.get("image_url"), f"{pointer}/image_url"
        if url is None:
            continue
        data = _DATA.match(url)
        if _URL.fullmatch(url) is None:
            message = "Expected a valid URL, but got a value with an invalid format."
            yield Violation(f"Invalid '{words.format_pointer(where)}'. {message}", where)
        elif data is not None and data[1].lower() not in _IMAGES:
            message = "You uploaded an unsupported image. Please make sure your image has of one the following formats:"
            yield Violation(f"{message} ['png', 'jpeg', 'gif', 'webp'].", where)


def _check_files(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for _where, part in find_parts(request):
        data = _DATA.match(part.get("file_data") or "")
        is_sound = data is not None and data[1].startswith(("audio/", "video/"))
        if is_sound or _MEDIA_EXTENSION.search(part.get("file_url") or "") is not None:
            yield Violation("The file type you uploaded is not supported. Please try again with a pdf", "/input")


def _check_compaction_trigger_last(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for number, item in enumerate(request.items[:-1]):
        if item["type"] == "compaction_trigger":
            message = f"Invalid 'input[{number}]': 'compaction_trigger' must be the final input item."
            yield Violation(message, f"/input/{number}")


def _check_configuration_updates(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    updates = [number for number, item in enumerate(request.items) if item["type"] == "configuration_update"]
    if not updates:
        return
    where = f"/input/{updates[0]}"
    if request.family.generation < (6, 0) or request.at("/reasoning/mode") == "pro":
        message = (
            f"Invalid value: 'configuration_update' is not supported with this model: '{words.format_pointer(where)}'."
        )
        yield Violation(message, where)
    if request.get("truncation") == "auto" or request.get("context_management"):
        yield Violation("'configuration_update' cannot be used with automatic compaction or truncation.", where)
    if any(number + 1 in updates for number in updates):
        yield Violation("Two 'configuration_update' items cannot be adjacent.", where)


def read_call_id(item: Json, items: list[Json]) -> str:
    """Return the call id of a call or a result.

    The SDK's type of a local shell's result has only the `id` of the call, the vendor's guide its `call_id`.
    """
    call_id: str = item.get("call_id") or item.get("id") or ""
    if item["type"] != "local_shell_call_output":
        return call_id
    calls = (one for one in items if one["type"] == "local_shell_call" and one["id"] == call_id)
    return next((one["call_id"] for one in calls), call_id)


def _load_pairs(request: ResponsesRequest) -> tuple[_Pairs, _Pairs]:
    """Return calls and results by call id; the vendor's own tool search needs no pairing."""
    if "pairs" not in request.computed:
        calls, answers = _Pairs(), _Pairs()
        for number, item in enumerate(request.items):
            kind = item["type"]
            if kind.startswith("tool_search") and (item.get("execution") != "client" or item.get("call_id") is None):
                continue
            if kind in RESULT_TYPES or kind in _ALL_RESULT_TYPES:
                found = calls if kind in RESULT_TYPES else answers
                found.setdefault(read_call_id(item, request.items), []).append((number, kind))
        request.computed["pairs"] = calls, answers
    return request.computed["pairs"]


def _is_self_contained(request: ResponsesRequest) -> bool:
    """Return whether the request refers to nothing that the vendor stores."""
    return not request.continues and not any(item["type"] == "item_reference" for item in request.items)


def _check_duplicate_call_ids(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    for what, pairs in zip(("call", "output"), _load_pairs(request), strict=True):
        for call_id, places in pairs.items():
            if len(places) > 1:
                where = f"/input/{places[1][0]}/call_id"
                yield Violation(f"Duplicate tool {what} found with call_id {call_id}.", where)


def _check_call_without_result(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    calls, answers = _load_pairs(request)
    for call_id, places in calls.items():
        for number, kind in places:
            is_answered = any(at > number and answer in RESULT_TYPES[kind] for at, answer in answers.get(call_id, ()))
            if not is_answered and not request.items[number].get("async"):
                yield Violation(f"No tool output found for {kind.replace('_', ' ')} {call_id}.", "/input")


def _check_result_without_call(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    calls, answers = _load_pairs(request)
    if not answers or not _is_self_contained(request):
        return
    for call_id, places in answers.items():
        for number, kind in places:
            if not any(at < number and kind in RESULT_TYPES[call] for at, call in calls.get(call_id, ())):
                name = kind.removesuffix("_output").replace("_", " ")
                yield Violation(f"No tool call found for {name} output with call_id {call_id}.", "/input")


def _check_approvals(request: ResponsesRequest, _: CheckContext) -> Iterator[Violation]:
    requested = {item["id"] for item in request.items if item["type"] == "mcp_approval_request"}
    for number, item in enumerate(request.items):
        if item["type"] != "mcp_approval_response" or item["approval_request_id"] in requested:
            continue
        if _is_self_contained(request):
            message = f"No approval request found for approval response with id {item['approval_request_id']}."
            yield Violation(message, f"/input/{number}")


RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.item-id",
        "Ids of items are letters, digits, underscores and dashes, and begin with the prefix of their type.",
        "wire/openai_responses.md section 9; public reports of the vendor's error text",
        _check_ids,
    ),
    Rule(
        "responses.item-once",
        "No two items have the same id.",
        "public reports of the vendor's error text",
        _check_duplicate_ids,
    ),
    Rule(
        "responses.call-name",
        "The name in a call is a valid tool name.",
        "wire/openai_responses.md section 3 (names of tools)",
        _check_call_names,
    ),
    Rule(
        "responses.media-source",
        "An image or a file has exactly one source.",
        "wire/openai_responses.md section 2; public reports of the vendor's error text",
        _check_sources,
    ),
    Rule(
        "responses.image",
        "An image is at an http(s) URL or in a data URL, as png, jpeg, webp or gif.",
        "wire/mapping.md section 10",
        _check_images,
    ),
    Rule(
        "responses.file-type",
        "A file is neither audio nor video.",
        "recorded: openai_responses/pydantic-ai-0078",
        _check_files,
    ),
    Rule(
        "responses.compaction-last",
        "A `compaction_trigger` is the last item.",
        "wire/openai_responses.md section 2",
        _check_compaction_trigger_last,
    ),
    Rule(
        "responses.configuration-update",
        "`configuration_update` needs gpt-6 in standard mode, no automatic compaction, and no other one next to it.",
        "wire/openai_responses.md section 2",
        _check_configuration_updates,
    ),
)
PAIR_RULES: tuple[Rule[ResponsesRequest], ...] = (
    Rule(
        "responses.call-once",
        "A call id has one call and one result.",
        "wire/mapping.md section 2 (duplicated results); error text not recorded",
        _check_duplicate_call_ids,
    ),
    Rule(
        "responses.call-answered",
        "Each call of a client tool has its result later in the input, unless the tool is asynchronous.",
        "wire/openai_responses.md section 2 (pairing)",
        _check_call_without_result,
    ),
    Rule(
        "responses.answer-called",
        "Each result has its call earlier in the input, or in what the vendor stores.",
        "wire/openai_responses.md section 2 (pairing)",
        _check_result_without_call,
    ),
    Rule(
        "responses.approval-asked",
        "An MCP approval response answers an approval request.",
        "no source: the vendor's error text is not known",
        _check_approvals,
    ),
)
