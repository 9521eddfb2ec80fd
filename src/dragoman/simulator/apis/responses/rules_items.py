"""Rules about input items: their ids, what they show, and where some of them may stand."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import (
    CompactionTrigger,
    ConfigurationUpdate,
    Item,
    ItemReference,
    LocalShellCallOutput,
)
from dragoman.simulator.apis.responses.shape_items import (
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    InputFile,
    InputImage,
    InputMessage,
    InputPart,
    ResultPart,
)
from dragoman.simulator.apis.responses.words import not_a_name, path_of
from dragoman.simulator.rule import Rule, Situation, Violation

PREFIXES = {
    "message:input": "msg",
    "message:output": "msg",
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
_LETTERS = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_URL = re.compile(r"https?://\S+|data:[^,]*,.*", re.DOTALL)
_DATA = re.compile(r"data:([^;,]*)")
_PICTURES = {"image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"}
_SOUNDS = re.compile(r"\.(?:mp3|wav|ogg|flac|m4a|aac|mp4|mov|avi|webm|mkv)(?:\?|$)", re.IGNORECASE)


def kind_of(item: Item) -> str:
    """Return the item's type; messages are told apart by who wrote them."""
    return str(item.__struct_config__.tag)


def id_of(item: Item) -> str | None:
    """Return the item's id, if it has one."""
    return item.id


def _odd_id(request: Request, _: Situation) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        given = id_of(item)
        if given is None:
            continue
        where = f"/input/{number}/id"
        begun = f"Invalid 'input[{number}].id': '{given}'. Expected an ID that"
        prefix = PREFIXES.get(kind_of(item), "")
        if _LETTERS.fullmatch(given) is None:
            message = (
                "contains letters, numbers, underscores, or dashes, but this value contained additional characters."
            )
            yield Violation(f"{begun} {message}", where)
        elif not given.startswith(prefix):
            yield Violation(f"{begun} begins with '{prefix}'.", where)


def _twice(request: Request, _: Situation) -> Iterator[Violation]:
    seen: set[str] = set()
    for item in request.items:
        given = id_of(item)
        # The answer to a call of the local shell bears the id of its call.
        if given is None or isinstance(item, LocalShellCallOutput):
            continue
        if given in seen:
            message = f"Duplicate item found with id {given}. Remove duplicate items from your input and try again."
            yield Violation(message, "/input")
        seen.add(given)


def _odd_call_name(request: Request, _: Situation) -> Iterator[Violation]:
    for number, item in enumerate(request.items):
        if isinstance(item, FunctionCall | CustomToolCall) and _NAME.fullmatch(item.name) is None:
            yield Violation(not_a_name(f"input[{number}].name"), f"/input/{number}/name")


def shown(request: Request) -> Iterator[tuple[str, InputPart | ResultPart]]:
    """Yield every part of messages and results with its place."""
    for number, item in enumerate(request.items):
        match item:
            case InputMessage(content=list() as parts):
                for at, part in enumerate(parts):
                    yield f"/input/{number}/content/{at}", part
            case FunctionCallOutput(output=list() as found) | CustomToolCallOutput(output=list() as found):
                for at, part in enumerate(found):
                    yield f"/input/{number}/output/{at}", part
            case _:
                pass


def _odd_source(request: Request, _: Situation) -> Iterator[Violation]:
    for where, part in shown(request):
        match part:
            case InputImage():
                given, names = [part.file_id, part.image_url], "'file_id' or 'image_url'"
            case InputFile():
                given, names = [part.file_id, part.file_data, part.file_url], "'file_id', 'file_data', or 'file_url'"
            case _:
                continue
        count = len([value for value in given if value])
        if count == 0:
            message = (
                f"Missing mutually exclusive parameters: '{path_of(where)}'. Ensure you are providing exactly one of:"
            )
            yield Violation(f"{message} {names}.", where)
        elif count > 1:
            message = f"Mutually exclusive parameters: '{path_of(where)}'. Ensure you are only providing one of:"
            yield Violation(f"{message} {names}.", where)


def _odd_image(request: Request, _: Situation) -> Iterator[Violation]:
    for where, part in shown(request):
        if not isinstance(part, InputImage) or part.image_url is None:
            continue
        place = f"{where}/image_url"
        if _URL.fullmatch(part.image_url) is None:
            message = "Expected a valid URL, but got a value with an invalid format."
            yield Violation(f"Invalid '{path_of(place)}'. {message}", place)
            continue
        data = _DATA.match(part.image_url)
        if data is not None and data[1].lower() not in _PICTURES:
            message = "You uploaded an unsupported image. Please make sure your image has of one the following formats:"
            yield Violation(f"{message} ['png', 'jpeg', 'gif', 'webp'].", place)


def _odd_file(request: Request, _: Situation) -> Iterator[Violation]:
    for where, part in shown(request):
        if not isinstance(part, InputFile):
            continue
        data = _DATA.match(part.file_data or "")
        is_sound = data is not None and data[1].startswith(("audio/", "video/"))
        if is_sound or _SOUNDS.search(part.file_url or "") is not None:
            yield Violation("The file type you uploaded is not supported. Please try again with a pdf", where)


def _early_trigger(request: Request, _: Situation) -> Iterator[Violation]:
    for number, item in enumerate(request.items[:-1]):
        if isinstance(item, CompactionTrigger):
            message = f"Invalid 'input[{number}]': 'compaction_trigger' must be the final input item."
            yield Violation(message, f"/input/{number}")


def _odd_update(request: Request, _: Situation) -> Iterator[Violation]:
    updates = [number for number, item in enumerate(request.items) if isinstance(item, ConfigurationUpdate)]
    if not updates:
        return
    body = request.body
    where = f"/input/{updates[0]}"
    if request.model.generation < (6, 0) or (body.reasoning is not None and body.reasoning.mode == "pro"):
        yield Violation(
            f"Invalid value: 'configuration_update' is not supported with this model: '{path_of(where)}'.", where
        )
    if body.truncation == "auto" or body.context_management:
        yield Violation("'configuration_update' cannot be used with automatic compaction or truncation.", where)
    if any(number + 1 in updates for number in updates):
        yield Violation("Two 'configuration_update' items cannot be adjacent.", where)


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.item-id",
        "Ids of items are letters, digits, underscores and dashes, and begin as their type demands.",
        "wire/openai_responses.md section 9; public reports of the vendor's words",
        _odd_id,
    ),
    Rule(
        "responses.item-once",
        "No two items bear the same id.",
        "public reports of the vendor's words",
        _twice,
    ),
    Rule(
        "responses.call-name",
        "A call names a tool as tools are named.",
        "wire/openai_responses.md section 3 (names of tools)",
        _odd_call_name,
    ),
    Rule(
        "responses.media-source",
        "A picture or a file comes from exactly one place.",
        "wire/openai_responses.md section 2; public reports of the vendor's words",
        _odd_source,
    ),
    Rule(
        "responses.image",
        "A picture is at a web address or in a data URL, as png, jpeg, webp or gif.",
        "wire/mapping.md section 10",
        _odd_image,
    ),
    Rule(
        "responses.file-type",
        "A file is no sound and no film.",
        "recorded: openai_responses/pydantic-ai-0078",
        _odd_file,
    ),
    Rule(
        "responses.compaction-last",
        "A wish to compact is the last item.",
        "wire/openai_responses.md section 2",
        _early_trigger,
    ),
    Rule(
        "responses.configuration-update",
        "Settings change on the way only on gpt-6 in standard mode, without automatic compaction, not twice in a row.",
        "wire/openai_responses.md section 2",
        _odd_update,
    ),
)


def references(request: Request) -> bool:
    """Whether some items are only referred to."""
    return any(isinstance(item, ItemReference) for item in request.items)
