"""What the generation config may say: numbers in their ranges, schemas with JSON, thinking as the model can."""

from collections.abc import Iterator

from msgspec import Struct

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule, field, unable
from dragoman.simulator.apis.gemini.proto import camel
from dragoman.simulator.apis.gemini.shape import ThinkingConfig
from dragoman.simulator.rule import Rule, Situation, Violation

_JSON = "application/json"
_MEDIA = frozenset({"", "text/plain", _JSON, "text/x.enum", "application/xml", "application/yaml"})
_MOST_STOPS = 5
_THOUGHTS = "Thinking_config.include_thoughts is only enabled when thinking is enabled."


class _Range(Struct, frozen=True):
    """The numbers a setting takes, and how Vertex writes the end of the range."""

    least: float
    most: float
    end: str


_RANGES = {
    "temperature": _Range(0, 2, "2.0001"),
    "top_p": _Range(0, 1, "1.0001"),
    "top_k": _Range(1, 2**31, "2147483648"),
    "max_output_tokens": _Range(1, 2**31, "2147483648"),
    "candidate_count": _Range(1, 8, "9"),
    "presence_penalty": _Range(-2, 2, "2.0001"),
    "frequency_penalty": _Range(-2, 2, "2.0001"),
    "logprobs": _Range(0, 20, "21"),
}


def _ranges(heard: Heard, _: Situation) -> Iterator[Violation]:
    for name, limits in _RANGES.items():
        value = getattr(heard.config, name)
        if value is None or limits.least <= value <= limits.most:
            continue
        member = camel(name)
        vertex = (
            f"Unable to submit request because it has a {member} value of {value:g} but the supported range is from "
            f"{limits.least:g} (inclusive) to {limits.end} (exclusive). Update the value and try again."
        )
        if limits.most == 2**31:
            words = f"{name} must be positive."
        else:
            words = f"{name} must be in the range [{limits.least:.1f}, {limits.most:.1f}]."
        studio = field(f"generation_config.{name}", words)
        yield Violation(vertex if heard.vertex else studio, f"/generationConfig/{member}")


def _stops(heard: Heard, _: Situation) -> Iterator[Violation]:
    count = len(heard.config.stop_sequences or [])
    if count > _MOST_STOPS:
        studio = field(
            "generation_config.stop_sequences", f"the number of stop_sequences must not exceed {_MOST_STOPS}."
        )
        vertex = unable(f"it has {count} stopSequences but the supported number is {_MOST_STOPS} or fewer.")
        yield Violation(vertex if heard.vertex else studio, "/generationConfig/stopSequences")


def _logprobs(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.config.logprobs is not None and not heard.config.response_logprobs:
        words = "logprobs is only allowed when response_logprobs is true."
        yield Violation(field("generation_config.logprobs", words), "/generationConfig/logprobs")


def _penalties(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.generation.exact:
        for name in ("presence_penalty", "frequency_penalty"):
            if getattr(heard.config, name) is not None:
                yield Violation("Penalty is not enabled for this model", f"/generationConfig/{camel(name)}")


def _candidates(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.generation.exact and (heard.config.candidate_count or 1) > 1:
        yield Violation("Multiple candidates is not enabled for this model", "/generationConfig/candidateCount")


def _media(heard: Heard, _: Situation) -> Iterator[Violation]:
    kind = heard.config.response_mime_type or ""
    if kind not in _MEDIA:
        words = (
            "allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and "
            "`text/x.enum`."
        )
        yield Violation(field("generation_config.response_mime_type", words), "/generationConfig/responseMimeType")


def _schema_media(heard: Heard, _: Situation) -> Iterator[Violation]:
    config = heard.config
    kind = config.response_mime_type or "text/plain"
    if config.response_schema is not None and kind not in {_JSON, "text/x.enum"}:
        words = f"response_schema can not be used with response mime type {kind}."
        yield Violation(field("generation_config.response_schema", words), "/generationConfig/responseSchema")
    if config.response_json_schema is not None and kind != _JSON:
        words = f"response_json_schema can not be used with response mime type {kind}."
        yield Violation(field("generation_config.response_json_schema", words), "/generationConfig/responseJsonSchema")


def _schema_once(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.config.response_schema is not None and heard.config.response_json_schema is not None:
        words = "response_json_schema is mutually exclusive with response_schema."
        yield Violation(field("generation_config.response_json_schema", words), "/generationConfig/responseJsonSchema")


def _json_with_tools(heard: Heard, _: Situation) -> Iterator[Violation]:
    if heard.request.tools and heard.config.response_mime_type == _JSON and not heard.generation.combines:
        what = "Function calling" if heard.functions else "Tool use"
        words = f"{what} with a response mime type: '{_JSON}' is unsupported"
        yield Violation(words, "/generationConfig/responseMimeType")


def _thinking(heard: Heard) -> ThinkingConfig:
    return heard.config.thinking_config or ThinkingConfig()


def _thinking_both(heard: Heard, _: Situation) -> Iterator[Violation]:
    config = _thinking(heard)
    if config.thinking_level not in {None, "THINKING_LEVEL_UNSPECIFIED"} and config.thinking_budget is not None:
        words = "You can only set only one of thinking budget and thinking level."
        yield Violation(words, "/generationConfig/thinkingConfig")


def _level(heard: Heard, _: Situation) -> Iterator[Violation]:
    level = _thinking(heard).thinking_level
    where = "/generationConfig/thinkingConfig/thinkingLevel"
    if level is None or level == "THINKING_LEVEL_UNSPECIFIED":
        return
    if not heard.generation.levels:
        yield Violation("Thinking level is not supported for this model.", where)
    elif level not in heard.generation.levels:
        words = f"Thinking level {level} is not supported for this model. Please retry with other thinking level."
        yield Violation(words, where)


def _budget(heard: Heard, _: Situation) -> Iterator[Violation]:
    budget = _thinking(heard).thinking_budget
    where = "/generationConfig/thinkingConfig/thinkingBudget"
    if budget is None or budget == -1:
        return
    if budget == 0:
        if heard.generation.always_thinks:
            yield Violation("Budget 0 is invalid. This model only works in thinking mode.", where)
        return
    if not heard.generation.thinks:
        yield Violation("Thinking is not supported by this model.", where)
    least, most = heard.generation.budgets or (1, 2**31)
    if not least <= budget <= most:
        words = f"The thinking budget {budget} is invalid. Please choose a value between {least} and {most}."
        yield Violation(words, where)


def _thoughts(heard: Heard, _: Situation) -> Iterator[Violation]:
    config = _thinking(heard)
    if config.include_thoughts and (config.thinking_budget == 0 or not heard.generation.thinks):
        words = f"Unable to submit request because {_THOUGHTS}" if heard.vertex else _THOUGHTS
        yield Violation(words, "/generationConfig/thinkingConfig/includeThoughts")


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.ranges",
        "Temperature is from 0 to 2, topP from 0 to 1, topK and maxOutputTokens are positive, candidateCount from 1 to "
        "8, penalties from -2 to 2, logprobs from 0 to 20.",
        "wire/gemini.md section 2; recorded: gemini/opentelemetry-python-contrib-0008",
        _ranges,
    ),
    Rule(
        "gemini.stop-sequences",
        "There are at most five stop sequences.",
        "wire/gemini.md section 2; AI Studio's words from public threads, Vertex's are ours",
        _stops,
    ),
    Rule(
        "gemini.logprobs",
        "How many log probabilities are wanted is said only where they are wanted.",
        "no source but the comment in the protos (only valid if response_logprobs is true); the words are ours",
        _logprobs,
    ),
    Rule(
        "gemini.penalties",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, there are no penalties.",
        "wire/gemini.md section 0; Google's words from public threads",
        _penalties,
    ),
    Rule(
        "gemini.candidates",
        "From Gemini 3.6 on, and for 3.5 Flash-Lite, there is one candidate.",
        "wire/gemini.md section 0; Google's words from public threads",
        _candidates,
    ),
    Rule(
        "gemini.response-type",
        "The answer is text, JSON, XML, YAML or a word of an enum.",
        "wire/gemini.md section 2; the words are ours",
        _media,
    ),
    Rule(
        "gemini.response-schema-type",
        "A schema of the answer needs a JSON answer, or a word of an enum.",
        "wire/gemini_schema.md section 5; the words are ours",
        _schema_media,
    ),
    Rule(
        "gemini.response-schema-once",
        "The answer has one schema.",
        "wire/gemini_schema.md section 1; the words are ours",
        _schema_once,
    ),
    Rule(
        "gemini.response-with-tools",
        "Before Gemini 3 a JSON answer does not go together with tools.",
        "wire/gemini_schema.md section 5; Google's words from github.com/googleapis/python-genai/issues/867",
        _json_with_tools,
    ),
    Rule(
        "gemini.thinking-once",
        "Thinking has a budget or a level, not both.",
        "wire/gemini.md section 2; Google's words from public threads",
        _thinking_both,
    ),
    Rule(
        "gemini.thinking-level",
        "Thinking has a level from Gemini 3 on; MINIMAL is for Flash before 3.7 and for Flash-Lite.",
        "wire/gemini.md sections 0 and 2, wire/mapping.md section 3; Google's words from "
        "github.com/dhyansraj/mcp-mesh/issues/1346",
        _level,
    ),
    Rule(
        "gemini.thinking-budget",
        "A thinking budget is in the range of the model; Pro always thinks, models before 2.5 never do.",
        "wire/gemini.md section 2; Google's words from public threads; later ones take any: gemini/lingua-0013",
        _budget,
    ),
    Rule(
        "gemini.thoughts",
        "Thoughts are shown only where the model thinks.",
        "Google's words from public threads (include_thoughts is only enabled when thinking is enabled)",
        _thoughts,
    ),
)
