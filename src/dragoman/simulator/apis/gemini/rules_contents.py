"""What contents must be: given, of a known role, made of parts with one thing in each, of media Google can see."""

import re
from collections.abc import Iterator

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule, field, unable
from dragoman.simulator.apis.gemini.read import asked
from dragoman.simulator.apis.gemini.shape import Blob, Content, FileData
from dragoman.simulator.apis.gemini.turns import Placed
from dragoman.simulator.model.usage import ask_tokens
from dragoman.simulator.rule import Rule, Situation, Violation

_ROLES = frozenset({"user", "model"})
_RESULT_ROLES = frozenset({"user", "model", "function", "tool"})
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_PDF = "application/pdf"
_APPLICATIONS = frozenset(
    {
        "application/json",
        "application/rtf",
        "application/xml",
        "application/x-javascript",
        "application/x-typescript",
        "application/x-python-code",
        "application/x-ipynb+json",
    }
)
_RESULT_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
_UPLOADED = re.compile(r"https://generativelanguage\.googleapis\.com/|files/")
_SMALL = 100_000
"""So few bytes cannot be too many tokens, whatever they say."""
_KINDS = ("audio/", "video/", "text/")
_FUNCTION_DOCS = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling"


def _parts(heard: Heard) -> Iterator[Placed]:
    for turn in heard.turns:
        yield from turn.parts


def _files(heard: Heard) -> Iterator[tuple[str, str, FileData]]:
    """Yield the files that are shown, also by results: where each stands, the path of its part, itself."""
    for placed in _parts(heard):
        path = f"contents[{placed.content}].parts[{placed.index}]"
        if placed.part.file_data is not None:
            yield f"{placed.where}/fileData", path, placed.part.file_data
        result = placed.part.function_response
        for index, one in enumerate(result.parts or [] if result is not None else []):
            if one.file_data is not None:
                where = f"{placed.where}/functionResponse/parts/{index}/fileData"
                yield where, f"{path}.function_response.parts[{index}]", one.file_data


def _contents(heard: Heard) -> Iterator[tuple[int, Content]]:
    yield from enumerate(heard.request.contents or [])


def _given(heard: Heard, _: Situation) -> Iterator[Violation]:
    if not heard.request.contents:
        studio = field("contents", "contents is not specified")
        yield Violation(unable("at least one contents field is required.") if heard.vertex else studio, "/contents")


def _role(heard: Heard, _: Situation) -> Iterator[Violation]:
    for number, content in _contents(heard):
        results = any(part.function_response is not None for part in content.parts or [])
        known = _RESULT_ROLES if results else _ROLES
        if content.role not in known and (heard.vertex or content.role):
            yield Violation("Please use a valid role: user, model.", f"/contents/{number}/role")


def _has_parts(heard: Heard, _: Situation) -> Iterator[Violation]:
    for number, content in _contents(heard):
        # A reply cut off while the model was thinking has no parts, and is taken back as it is (gemini/lingua-0064).
        if not content.parts and content.role != "model":
            studio = field(f"contents[{number}].parts", "contents.parts must not be empty.")
            vertex = unable("it must include at least one parts field, which describes the prompt input.")
            yield Violation(vertex if heard.vertex else studio, f"/contents/{number}/parts")


def _has_data(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed in _parts(heard):
        if not placed.part.has_data and placed.part.thought_signature is None:
            path = f"contents[{placed.content}].parts[{placed.index}].data"
            yield Violation(field(path, "required oneof field 'data' must have one initialized field"), placed.where)


def _text(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed in _parts(heard):
        if heard.vertex and placed.part.text == "" and placed.part.thought_signature is None:
            words = "it has an empty text parameter. Add a value to the parameter and try again."
            yield Violation(unable(words), f"{placed.where}/text")


def _seen(heard: Heard, media_type: str) -> bool:
    bare = media_type.partition(";")[0].strip().lower()
    other = bare in _APPLICATIONS and not heard.vertex
    return bare in _IMAGES or bare == _PDF or other or bare.startswith(_KINDS)


def _media_words(heard: Heard, media_type: str) -> str:
    vertex = (
        f"it has a mimeType parameter with value {media_type}, which is not supported. "
        "Update the mimeType and try again."
    )
    return unable(vertex) if heard.vertex else f"Unsupported MIME type: {media_type}"


def _media(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed in _parts(heard):
        blob: Blob | None = placed.part.inline_data
        if blob is not None and not _seen(heard, blob.mime_type):
            yield Violation(_media_words(heard, blob.mime_type), f"{placed.where}/inlineData/mimeType")


def _file(heard: Heard, _: Situation) -> Iterator[Violation]:
    for where, path, file in _files(heard):
        if not file.file_uri:
            yield Violation(field(f"{path}.file_data.file_uri", "file_uri must not be empty."), f"{where}/fileUri")
        elif file.file_uri.startswith("gs://") and not heard.vertex:
            yield Violation(f"Unsupported file uri: {file.file_uri}", f"{where}/fileUri")
        elif file.mime_type is not None and not _seen(heard, file.mime_type):
            yield Violation(_media_words(heard, file.mime_type), f"{where}/mimeType")


def _system(heard: Heard, _: Situation) -> Iterator[Violation]:
    instruction = heard.request.system_instruction
    for index, part in enumerate(instruction.parts or [] if instruction is not None else []):
        if part.has_data and part.text is None:
            yield Violation("System instruction only supports text parts.", f"/systemInstruction/parts/{index}")


def _names(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed in _parts(heard):
        for member in ("function_call", "function_response"):
            named = getattr(placed.part, member)
            if named is not None and not named.name:
                path = f"contents[{placed.content}].parts[{placed.index}].{member}.name"
                yield Violation(field(path, "Name cannot be empty."), placed.where)


def _result_parts(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed in _parts(heard):
        result = placed.part.function_response
        shown = result.parts or [] if result is not None else []
        where = f"{placed.where}/functionResponse/parts"
        if shown and not heard.generation.combines:
            words = "Unable to submit request because `function_response.parts` is not supported for this model."
            yield Violation(f"{words} {_FUNCTION_DOCS}", where)
        for index, one in enumerate(shown):
            media = one.inline_data or one.file_data
            kind = media.mime_type if media is not None else ""
            if kind is not None and kind not in _RESULT_TYPES:
                yield Violation(_media_words(heard, kind), f"{where}/{index}")


def _cached(heard: Heard, _: Situation) -> Iterator[Violation]:
    request = heard.request
    if request.cached_content and (request.system_instruction or request.tools or request.tool_config):
        studio = (
            "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
            "tool_config.\n\nProposed fix: move those values to CachedContent from GenerateContent request."
        )
        vertex = "Tool config, tools and system instruction should not be set in the request when using cached content."
        yield Violation(vertex if heard.vertex else studio, "/cachedContent")


def _uploaded(heard: Heard, _: Situation) -> Iterator[Violation]:
    for where, _path, file in _files(heard) if heard.vertex else ():
        if _UPLOADED.match(file.file_uri):
            yield Violation(unable(f"it has an unsupported file uri: {file.file_uri}."), where)


def _length(heard: Heard, situation: Situation) -> Iterator[Violation]:
    if heard.size < _SMALL or situation.counting:
        return
    tokens, most = ask_tokens(asked(heard)), heard.generation.most_input
    if tokens > most:
        words = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({most})."
        yield Violation(words, "/contents")


def _safety(heard: Heard, _: Situation) -> Iterator[Violation]:
    known: set[str] = set()
    for index, setting in enumerate(heard.request.safety_settings or []):
        if setting.category is not None and setting.category in known:
            words = field(f"safety_settings[{index}].category", f"duplicate setting for {setting.category}")
            yield Violation(words, f"/safetySettings/{index}/category")
        known.add(setting.category or "")


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.contents-given",
        "A request has contents.",
        "wire/gemini.md section 2; Google's words from public threads",
        _given,
    ),
    Rule(
        "gemini.role",
        "A content is the user's or the model's (results also `function`'s or `tool`'s); only Vertex wants it said.",
        "wire/gemini.md section 2; Google's words from public threads; recorded: gemini/louter-0004 and 0005",
        _role,
    ),
    Rule(
        "gemini.parts-given",
        "A content of the user has parts.",
        "wire/mapping.md section 1; Google's words from public threads; the model's may be empty: gemini/lingua-0064",
        _has_parts,
    ),
    Rule(
        "gemini.part-data",
        "A part holds something, at least a signature.",
        "wire/gemini.md section 2; Google's words from public threads; recorded: gemini/adk-go-0050",
        _has_data,
    ),
    Rule(
        "gemini.empty-text",
        "On Vertex a text is not empty, unless it is signed.",
        "wire/mapping.md section 1; Google's words from public threads; AI Studio takes it: gemini/pydantic-ai-0036",
        _text,
    ),
    Rule(
        "gemini.inline-data",
        "Inline data is of a type Google can see: no GIF, no image/jpg, no archives; on Vertex no JSON.",
        "wire/mapping.md section 10; Google's words from github.com/ogkalu2/comic-translate/pull/399",
        _media,
    ),
    Rule(
        "gemini.file-data",
        "A file has a URI, in a result too; Cloud Storage is for Vertex alone.",
        "wire/gemini.md sections 2 and 13; the words are ours; a file in a result: gemini/pydantic-ai-0141",
        _file,
    ),
    Rule(
        "gemini.file-uploaded",
        "Files that were uploaded to AI Studio are not for Vertex.",
        "wire/gemini.md section 13; the words are ours",
        _uploaded,
    ),
    Rule(
        "gemini.input-tokens",
        "A request has no more tokens than the model can read.",
        "wire/mapping.md section 7, wire/gemini.md section 10; Google's words from public threads",
        _length,
    ),
    Rule(
        "gemini.system-text",
        "A system instruction is made of text.",
        "wire/gemini.md section 2; the words are ours",
        _system,
    ),
    Rule(
        "gemini.call-name",
        "Calls and results of functions name the function.",
        "wire/gemini.md section 5; Google's words from public threads",
        _names,
    ),
    Rule(
        "gemini.result-parts",
        "Results show media from Gemini 3 on, and only PNG, JPEG, WebP, PDF and plain text.",
        "wire/gemini.md section 5; Google's words from github.com/google-gemini/gemini-cli/issues/19436",
        _result_parts,
    ),
    Rule(
        "gemini.cached-content",
        "With cached content the request brings no system instruction, tools or tool config of its own.",
        "wire/gemini.md section 2; Google's words from github.com/BerriAI/litellm/issues/17304",
        _cached,
    ),
    Rule(
        "gemini.safety-once",
        "There is one safety setting for a category.",
        "no source but the comment in the protos (at most one setting for each category); the words are ours",
        _safety,
    ),
)
