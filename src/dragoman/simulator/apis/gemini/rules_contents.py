"""Rules about contents: roles, parts with one kind of data each, supported media, and the order of turns."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.gemini.body import PART_DATA
from dragoman.simulator.apis.gemini.read import read_model_request
from dragoman.simulator.apis.gemini.request import (
    GeminiRequest,
    GeminiTurn,
    PlacedPart,
    build_check,
    describe_field,
    describe_vertex_error,
)
from dragoman.simulator.apis.rule import CheckContext, Json, PathCheck, Rule, Violation
from dragoman.simulator.apis.usage import count_request_tokens

_ROLES = frozenset({"user", "model"})
_RESULT_ROLES = frozenset({"user", "model", "function", "tool"})
_MEDIA_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf"})
_STUDIO_MEDIA_TYPES = _MEDIA_TYPES | {
    "application/json",
    "application/rtf",
    "application/xml",
    "application/x-javascript",
    "application/x-typescript",
    "application/x-python-code",
    "application/x-ipynb+json",
}
_MEDIA_TYPE_PREFIXES = ("audio/", "video/", "text/")
_RESULT_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_UPLOADED = re.compile(r"https://generativelanguage\.googleapis\.com/|files/")
_SMALL = 100_000
"""A body of fewer bytes cannot exceed the token limit, whatever its content."""
_PART_MEMBERS = frozenset({*PART_DATA, "thoughtSignature"})
_RESULT_PARTS = (
    "Unable to submit request because `function_response.parts` is not supported for this model. "
    "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling"
)
_CACHED = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
    "tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request."
)
_CACHED_ON_VERTEX = (
    "Tool config, tools and system instruction should not be set in the request when using cached content."
)
_ENDS = "Requests ending with a model turn are not supported unless the last part is a function response."
_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
_CALL = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
_RESULT = "Please ensure that function response turn comes immediately after a function call turn."
_MATCH = "Please ensure that every function response has the id and the name of its function call, in the same order."
_FIRST = "Please ensure that multiturn requests begin with a user turn."


def _check_contents_present(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    if not request.get("contents"):
        studio = describe_field("/contents", "contents is not specified")
        yield Violation(
            describe_vertex_error("at least one contents field is required.") if request.vertex else studio, "/contents"
        )


def _check_roles(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for number, content in enumerate(request.list("contents")):
        role = content.get("role")
        has_results = any("functionResponse" in part for part in content.get("parts", ()))
        if role not in (_RESULT_ROLES if has_results else _ROLES) and (request.vertex or role):
            yield Violation("Please use a valid role: user, model.", f"/contents/{number}/role")


def _check_parts_present(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for number, content in enumerate(request.list("contents")):
        # A reply cut off while the model was thinking has no parts, and may be sent back so (gemini/lingua-0064).
        if not content.get("parts") and content.get("role") != "model":
            where = f"/contents/{number}/parts"
            vertex = describe_vertex_error(
                "it must include at least one parts field, which describes the prompt input."
            )
            yield Violation(
                vertex if request.vertex else describe_field(where, "contents.parts must not be empty."), where
            )


def _check_part_data(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for placed in (placed for turn in request.turns for placed in turn.parts):
        if _PART_MEMBERS.isdisjoint(placed.part):
            message = "required oneof field 'data' must have one initialized field"
            yield Violation(describe_field(f"{placed.where}/data", message), placed.where)


def _check_empty_text(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for placed in request.parts.get("text", ()) if request.vertex else ():
        if placed.part["text"] == "" and "thoughtSignature" not in placed.part:
            message = "it has an empty text parameter. Add a value to the parameter and try again."
            yield Violation(describe_vertex_error(message), f"{placed.where}/text")


def _check_media_type(request: GeminiRequest, media_type: str, where: str) -> Iterator[Violation]:
    """Yield a violation for a media type that Google does not support."""
    bare = media_type.partition(";")[0].strip().lower()
    if bare not in (_MEDIA_TYPES if request.vertex else _STUDIO_MEDIA_TYPES) and not bare.startswith(
        _MEDIA_TYPE_PREFIXES
    ):
        yield Violation(_describe_media_type(request, media_type), where)


def _describe_media_type(request: GeminiRequest, media_type: str) -> str:
    vertex = (
        f"it has a mimeType parameter with value {media_type}, which is not supported. "
        "Update the mimeType and try again."
    )
    return describe_vertex_error(vertex) if request.vertex else f"Unsupported MIME type: {media_type}"


def _check_inline_media(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for placed in request.parts.get("inlineData", ()):
        yield from _check_media_type(
            request, placed.part["inlineData"]["mimeType"], f"{placed.where}/inlineData/mimeType"
        )


def _iterate_result_parts(request: GeminiRequest) -> Iterator[tuple[str, Json]]:
    """Yield the media parts of results, with their pointers."""
    for placed in request.parts.get("functionResponse", ()):
        for index, part in enumerate(placed.part["functionResponse"].get("parts", ())):
            yield f"{placed.where}/functionResponse/parts/{index}", part


def _iterate_files(request: GeminiRequest) -> Iterator[tuple[str, Json]]:
    """Yield all files, also those in results, with their pointers."""
    parts = ((placed.where, placed.part) for placed in request.parts.get("fileData", ()))
    for where, part in (*parts, *_iterate_result_parts(request)):
        if "fileData" in part:
            yield f"{where}/fileData", part["fileData"]


def _check_files(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for where, file in _iterate_files(request):
        uri: str = file["fileUri"]
        if not uri:
            yield Violation(describe_field(f"{where}/fileUri", "file_uri must not be empty."), f"{where}/fileUri")
        elif uri.startswith("gs://") and not request.vertex:
            yield Violation(f"Unsupported file uri: {uri}", f"{where}/fileUri")
        elif "mimeType" in file:
            yield from _check_media_type(request, file["mimeType"], f"{where}/mimeType")


def _check_uploaded_files(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for where, file in _iterate_files(request) if request.vertex else ():
        if _UPLOADED.match(file["fileUri"]):
            yield Violation(describe_vertex_error(f"it has an unsupported file uri: {file['fileUri']}."), where)


def _check_result_parts(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for where, part in _iterate_result_parts(request):
        if not request.generation.combines_tools:
            yield Violation(_RESULT_PARTS, where.rpartition("/")[0])
        media_type = part.get("inlineData", part.get("fileData", {"mimeType": ""})).get("mimeType")
        if media_type is not None and media_type not in _RESULT_TYPES:
            yield Violation(_describe_media_type(request, media_type), where)


def _check_names(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for member in ("functionCall", "functionResponse"):
        for placed in request.parts.get(member, ()):
            if not placed.part[member]["name"]:
                yield Violation(describe_field(f"{placed.where}/{member}/name", "Name cannot be empty."), placed.where)


def _overrides_cached_content(request: GeminiRequest) -> bool:
    document = request.document
    return bool(document.get("tools")) or "systemInstruction" in document or "toolConfig" in document


def _check_length(request: GeminiRequest, context: CheckContext) -> Iterator[Violation]:
    if request.size < _SMALL or context.counting:
        return
    tokens, most = count_request_tokens(read_model_request(request)), request.generation.max_input_tokens
    if tokens > most:
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most})."
        yield Violation(message, "/contents")


def _check_safety_settings(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    known: set[str] = set()
    for index, setting in enumerate(request.list("safetySettings")):
        category = setting.get("category")
        where = f"/safetySettings/{index}/category"
        if category in known:
            yield Violation(describe_field(where, f"duplicate setting for {category}"), where)
        if category is not None:
            known.add(category)


def _check_call_turns(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for number, turn in enumerate(request.turns):
        if turn.calls and (number == 0 or turn.side == "user"):
            yield Violation(_CALL, turn.calls[0].where)


def _check_first_turn(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    if request.generation.signs_calls and request.turns and request.turns[0].side == "model":
        yield Violation(_FIRST, "/contents/0")


def _check_result_turns(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for number, turn in enumerate(request.turns):
        if turn.results and (number == 0 or not request.turns[number - 1].calls):
            yield Violation(_RESULT, turn.results[0].where)


def _check_last_turn(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    if request.generation.is_strict and request.turns and request.turns[-1].side == "model":
        yield Violation(_ENDS, f"/contents/{len(request.list('contents')) - 1}")


def _check_results_last(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    contents = request.list("contents")
    parts: list[Json] = contents[-1].get("parts", []) if contents else []
    results = ["functionResponse" in part for part in parts]
    if request.generation.is_strict and any(results) and not results[-1]:
        yield Violation(_ENDS, f"/contents/{len(contents) - 1}/parts/{len(parts) - 1}")


def _iterate_pairs(request: GeminiRequest) -> Iterator[tuple[GeminiTurn, list[PlacedPart]]]:
    """Yield every turn with calls, and the results of the turn after it."""
    for number, turn in enumerate(request.turns):
        if turn.calls:
            yield turn, request.turns[number + 1].results if number + 1 < len(request.turns) else []


def _check_result_count(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for turn, results in _iterate_pairs(request):
        if len(results) != len(turn.calls):
            yield Violation(_COUNT, turn.calls[0].where)


def _check_results_in_one_content(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for _turn, results in _iterate_pairs(request) if request.generation.signs_calls else ():
        apart = next((placed for placed in results if placed.content != results[0].content), None)
        if apart is not None:
            yield Violation(_COUNT, apart.where)


def _check_result_matches_call(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for turn, results in _iterate_pairs(request) if request.generation.is_strict else ():
        for called, placed in zip(turn.calls, results, strict=False):
            call, result = called.part["functionCall"], placed.part["functionResponse"]
            # google-genai's automatic function calling omits the id, so a missing id is accepted.
            if call["name"] != result["name"] or (result.get("id") and result["id"] != call.get("id")):
                yield Violation(_MATCH, placed.where)


RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.contents-given",
        "A request has contents.",
        "wire/gemini.md section 2; Google's error text from public threads",
        _check_contents_present,
    ),
    Rule(
        "gemini.role",
        "The role of a content is user or model (for results also function or tool); only Vertex requires it.",
        "wire/gemini.md section 2; Google's error text from public threads; recorded: gemini/louter-0004 and 0005",
        _check_roles,
    ),
    Rule(
        "gemini.parts-given",
        "A user content has parts.",
        "wire/mapping.md section 1; Google's error text from public threads; "
        "a model content may be empty: gemini/lingua-0064",
        _check_parts_present,
    ),
    Rule(
        "gemini.part-data",
        "A part has data, or at least a signature.",
        "wire/gemini.md section 2; Google's error text from public threads; recorded: gemini/adk-go-0050",
        _check_part_data,
    ),
    Rule(
        "gemini.empty-text",
        "On Vertex a text is not empty, unless it is signed.",
        "wire/mapping.md section 1; Google's error text from public threads; not on AI Studio: gemini/pydantic-ai-0036",
        _check_empty_text,
    ),
    Rule(
        "gemini.inline-data",
        "Inline data is of a supported media type: no GIF, no image/jpg, no archives; on Vertex no JSON.",
        "wire/mapping.md section 10; Google's error text from github.com/ogkalu2/comic-translate/pull/399",
        _check_inline_media,
    ),
    Rule(
        "gemini.file-data",
        "A file has a URI, in a result too; Cloud Storage URIs work on Vertex only.",
        "wire/gemini.md sections 2 and 13; the error text is invented; a file in a result: gemini/pydantic-ai-0141",
        _check_files,
    ),
    Rule(
        "gemini.file-uploaded",
        "Files uploaded to AI Studio cannot be used on Vertex.",
        "wire/gemini.md section 13; the error text is invented",
        _check_uploaded_files,
    ),
    Rule(
        "gemini.input-tokens",
        "The request does not exceed the model's context window.",
        "wire/mapping.md section 7, wire/gemini.md section 10; Google's error text from public threads",
        _check_length,
    ),
    Rule(
        "gemini.system-text",
        "A system instruction consists of text parts.",
        "wire/gemini.md section 2; the error text is invented",
        PathCheck(
            "/systemInstruction/parts/*",
            "System instruction only supports text parts.",
            lambda part: "text" not in part and not part.keys().isdisjoint(PART_DATA),
        ),
    ),
    Rule(
        "gemini.call-name",
        "Function calls and results have a function name.",
        "wire/gemini.md section 5; Google's error text from public threads",
        _check_names,
    ),
    Rule(
        "gemini.result-parts",
        "Results may have media from Gemini 3 on, and only PNG, JPEG, WebP, PDF and plain text.",
        "wire/gemini.md section 5; Google's error text from github.com/google-gemini/gemini-cli/issues/19436",
        _check_result_parts,
    ),
    Rule(
        "gemini.cached-content",
        "With cached content the request has no system instruction, tools or tool config of its own.",
        "wire/gemini.md section 2; Google's error text from github.com/BerriAI/litellm/issues/17304",
        build_check("/cachedContent", _CACHED, _CACHED_ON_VERTEX, bool, _overrides_cached_content),
    ),
    Rule(
        "gemini.safety-once",
        "There is at most one safety setting for each category.",
        "no source but the comment in the protos (at most one setting for each category); the error text is invented",
        _check_safety_settings,
    ),
)
TURN_RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.call-turn",
        "Calls are in a model turn after a user turn.",
        "wire/gemini.md section 5",
        _check_call_turns,
    ),
    Rule(
        "gemini.first-turn",
        "From Gemini 3 on the first turn is a user turn.",
        "wire/mapping.md section 1; the error text is invented",
        _check_first_turn,
    ),
    Rule(
        "gemini.result-turn",
        "Results come immediately after their calls.",
        "wire/gemini.md section 5; Google's error text from public threads",
        _check_result_turns,
    ),
    Rule(
        "gemini.last-turn",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, the last turn is not a model turn.",
        "wire/gemini.md section 0; Google's error text from github.com/LibreChat-AI/agents/pull/323; "
        "older models accept it: gemini/mastra-0027",
        _check_last_turn,
    ),
    Rule(
        "gemini.result-last",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, nothing follows a result in the last content.",
        "github.com/agentgateway/agentgateway/issues/2811; wire/gemini.md section 5; "
        "older models accept it: gemini/ruby-llm-0068",
        _check_results_last,
    ),
    Rule(
        "gemini.result-count",
        "There are as many results as calls.",
        "wire/gemini.md section 5",
        _check_result_count,
    ),
    Rule(
        "gemini.results-together",
        "From Gemini 3 on the results for the calls of one turn are in one content.",
        "wire/gemini.md section 5; older models accept several contents: gemini/crewai-0007",
        _check_results_in_one_content,
    ),
    Rule(
        "gemini.result-match",
        "From Gemini 3.6 on a result has the name and the position of its call, and its id if it has one.",
        "wire/gemini.md sections 0 and 5; the error text is invented; without an id: clients/captures/sdk-google",
        _check_result_matches_call,
    ),
)
