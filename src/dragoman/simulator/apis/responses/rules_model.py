"""Rules about what a model takes: sampling, effort, verbosity, and what is included in its replies."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.responses.changes import items_of, on_model, places, tools_of
from dragoman.simulator.apis.responses.rules_tools import clients_tools
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import ConfigurationUpdate
from dragoman.simulator.apis.responses.shape_tools import CustomTool
from dragoman.simulator.apis.responses.words import unsupported
from dragoman.simulator.rule import Json, Rule, Situation, Violation

_MEASURED = "public measurement of 2026-08-30 (gpt-5.6-terra)"
_PLAIN = "gpt-4o"


def thinks(request: Request) -> bool:
    """Whether the model thinks before it answers this request; the last word on its effort holds."""
    options = request.body.reasoning
    asked = options.effort if options is not None else None
    for item in request.items:
        if isinstance(item, ConfigurationUpdate) and item.reasoning is not None:
            asked = item.reasoning.effort or asked
    return request.model.effort(asked) not in {"", "none"}


def _odd_effort(request: Request, _: Situation) -> Iterator[Violation]:
    options = request.body.reasoning
    if options is None or options.effort is None:
        return
    model = request.model
    where = "/reasoning/effort"
    if not model.reasons:
        yield Violation("Unsupported parameter: 'reasoning.effort' is not supported with this model.", where)
    elif options.effort not in model.efforts:
        yield Violation(unsupported(options.effort, model.name, model.efforts), where)


def _odden_effort(body: Json, chance: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, reasoning={"effort": chance.choice(["low", "medium", "none"])})
    yield on_model(body, "gpt-5.6-terra", reasoning={"effort": "minimal"})
    yield on_model(body, "gpt-6.1-sol", reasoning={"effort": "none"})
    yield on_model(body, "gpt-5.4", reasoning={"effort": "max"})


def _odd_summary(request: Request, _: Situation) -> Iterator[Violation]:
    options = request.body.reasoning
    if options is not None and options.tells is not None and not request.model.reasons:
        name = "summary" if options.summary is not None else "generate_summary"
        message = f"Unsupported parameter: 'reasoning.{name}' is not supported with this model."
        yield Violation(message, f"/reasoning/{name}")


def _odden_summary(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, reasoning={"summary": "auto"})
    yield on_model(body, _PLAIN, reasoning={"generate_summary": "auto"})


def _sampling(request: Request, _: Situation) -> Iterator[Violation]:
    if not thinks(request):
        return
    body = request.body
    given = (
        ("temperature", body.temperature, 1.0),
        ("top_p", body.top_p, 1.0),
        ("presence_penalty", body.presence_penalty, 0.0),
        ("frequency_penalty", body.frequency_penalty, 0.0),
    )
    for name, value, default in given:
        if value is not None and value != default:
            yield Violation(f"Unsupported parameter: '{name}' is not supported with this model.", f"/{name}")


def _sample(body: Json, chance: Random) -> Iterator[Json]:
    value = chance.choice([0.1, 0.5, 0.9])
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty"):
        yield on_model(body, "gpt-5.6", reasoning={"effort": "low"}, **{name: value})
    yield on_model(body, "gpt-5", temperature=value)


def _logprobs(request: Request, _: Situation) -> Iterator[Violation]:
    if not thinks(request):
        return
    message = "logprobs are not supported with reasoning models."
    if "message.output_text.logprobs" in (request.body.include or ()):
        yield Violation(message, "/include")
    if request.body.top_logprobs:
        yield Violation(message, "/top_logprobs")


def _ask_logprobs(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.6", top_logprobs=3)
    yield on_model(body, "gpt-5.6", include=["message.output_text.logprobs"])


def _nothing_sealed(request: Request, _: Situation) -> Iterator[Violation]:
    if "reasoning.encrypted_content" in (request.body.include or ()) and not request.model.reasons:
        yield Violation("Encrypted content is not supported with this model.", "/include")


def _ask_sealed(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, include=["reasoning.encrypted_content"])


def _verbosity(request: Request, _: Situation) -> Iterator[Violation]:
    text = request.body.text
    given = text.verbosity if text is not None else None
    if given is not None and given != "medium" and request.model.generation < (5, 0):
        yield Violation(unsupported(given, request.model.name, ("medium",)), "/text/verbosity")


def _ask_tersely(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, _PLAIN, text={"verbosity": "low"})


def _early_custom(request: Request, _: Situation) -> Iterator[Violation]:
    if request.model.generation >= (5, 0):
        return
    for placed in clients_tools(request):
        if isinstance(placed.tool, CustomTool):
            where = f"{placed.where}/type"
            yield Violation("Invalid value: 'custom'. Custom tools are not supported with this model.", where)


def _customise_early(body: Json, _: Random) -> Iterator[Json]:
    tools = [tool for tool in tools_of(body) if tool.get("type") == "function" and not tool.get("async")]
    if not list(places(items_of(body), "additional_tools", "tool_search_output", "configuration_update")):
        chosen = {"tool_choice": "auto", "tools": [*tools, {"type": "custom", "name": "odd_tool"}]}
        yield on_model(body, "gpt-4.1", **chosen)


def _old_name(request: Request, _: Situation) -> Iterator[Violation]:
    options = request.body.reasoning
    if options is not None and options.generate_summary is not None and request.model.generation >= (5, 6):
        yield Violation("Unknown parameter: 'reasoning.generate_summary'.", "/reasoning/generate_summary")


def _name_as_before(body: Json, _: Random) -> Iterator[Json]:
    yield on_model(body, "gpt-5.6-terra", reasoning={"generate_summary": "auto"})


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.effort",
        "The effort is one the model knows; models that do not think know none.",
        f"{_MEASURED}; wire/openai_chat.md section 0; recorded defaults of each model",
        _odd_effort,
        _odden_effort,
    ),
    Rule(
        "responses.summary",
        "Only models that think tell of their thoughts.",
        "no source: by analogy with the effort",
        _odd_summary,
        _odden_summary,
    ),
    Rule(
        "responses.sampling",
        "A model that thinks takes no other temperature, top_p or penalties than the defaults.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        _sampling,
        _sample,
    ),
    Rule(
        "responses.logprobs",
        "A model that thinks tells no probabilities.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        _logprobs,
        _ask_logprobs,
    ),
    Rule(
        "responses.include-encrypted",
        "Only models that think have encrypted content.",
        "public reports of the vendor's words",
        _nothing_sealed,
        _ask_sealed,
    ),
    Rule(
        "responses.generate-summary",
        "What tells of thoughts is called summary; models before gpt-5.6 also know it as generate_summary.",
        f"wire/openai_responses.md section 1 (an alias); {_MEASURED} (unknown)",
        _old_name,
        _name_as_before,
    ),
    Rule(
        "responses.verbosity",
        "Models before gpt-5 know one verbosity.",
        "no source: reported, without a recording",
        _verbosity,
        _ask_tersely,
    ),
    Rule(
        "responses.custom-tool",
        "Custom tools exist since gpt-5.",
        "wire/openai_chat.md section 3 (the same tools); the words: no source",
        _early_custom,
        _customise_early,
    ),
)
