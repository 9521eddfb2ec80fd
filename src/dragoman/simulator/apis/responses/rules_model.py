"""Rules about what a model takes: sampling, effort, verbosity, and what is included in its replies."""

from collections.abc import Iterator

from dragoman.simulator.apis.responses.rules_tools import clients_tools
from dragoman.simulator.apis.responses.shape import Request
from dragoman.simulator.apis.responses.shape_hosted import ConfigurationUpdate
from dragoman.simulator.apis.responses.shape_tools import CustomTool
from dragoman.simulator.apis.responses.words import unsupported
from dragoman.simulator.rule import Rule, Situation, Violation

_MEASURED = "public measurement of 2026-08-30 (gpt-5.6-terra)"


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


def _odd_summary(request: Request, _: Situation) -> Iterator[Violation]:
    options = request.body.reasoning
    if options is not None and options.tells is not None and not request.model.reasons:
        name = "summary" if options.summary is not None else "generate_summary"
        message = f"Unsupported parameter: 'reasoning.{name}' is not supported with this model."
        yield Violation(message, f"/reasoning/{name}")


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


def _logprobs(request: Request, _: Situation) -> Iterator[Violation]:
    if not thinks(request):
        return
    message = "logprobs are not supported with reasoning models."
    if "message.output_text.logprobs" in (request.body.include or ()):
        yield Violation(message, "/include")
    if request.body.top_logprobs:
        yield Violation(message, "/top_logprobs")


def _nothing_sealed(request: Request, _: Situation) -> Iterator[Violation]:
    if "reasoning.encrypted_content" in (request.body.include or ()) and not request.model.reasons:
        yield Violation("Encrypted content is not supported with this model.", "/include")


def _verbosity(request: Request, _: Situation) -> Iterator[Violation]:
    text = request.body.text
    given = text.verbosity if text is not None else None
    if given is not None and given != "medium" and request.model.generation < (5, 0):
        yield Violation(unsupported(given, request.model.name, ("medium",)), "/text/verbosity")


def _early_custom(request: Request, _: Situation) -> Iterator[Violation]:
    if request.model.generation >= (5, 0):
        return
    for placed in clients_tools(request):
        if isinstance(placed.tool, CustomTool):
            where = f"{placed.where}/type"
            yield Violation("Invalid value: 'custom'. Custom tools are not supported with this model.", where)


def _old_name(request: Request, _: Situation) -> Iterator[Violation]:
    options = request.body.reasoning
    if options is not None and options.generate_summary is not None and request.model.generation >= (5, 6):
        yield Violation("Unknown parameter: 'reasoning.generate_summary'.", "/reasoning/generate_summary")


RULES: tuple[Rule[Request], ...] = (
    Rule(
        "responses.effort",
        "The effort is one the model knows; models that do not think know none.",
        f"{_MEASURED}; wire/openai_chat.md section 0; recorded defaults of each model",
        _odd_effort,
    ),
    Rule(
        "responses.summary",
        "Only models that think tell of their thoughts.",
        "no source: by analogy with the effort",
        _odd_summary,
    ),
    Rule(
        "responses.sampling",
        "A model that thinks takes no other temperature, top_p or penalties than the defaults.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        _sampling,
    ),
    Rule(
        "responses.logprobs",
        "A model that thinks tells no probabilities.",
        f"wire/openai_responses.md section 1; {_MEASURED}",
        _logprobs,
    ),
    Rule(
        "responses.include-encrypted",
        "Only models that think have encrypted content.",
        "public reports of the vendor's words",
        _nothing_sealed,
    ),
    Rule(
        "responses.generate-summary",
        "What tells of thoughts is called summary; models before gpt-5.6 also know it as generate_summary.",
        f"wire/openai_responses.md section 1 (an alias); {_MEASURED} (unknown)",
        _old_name,
    ),
    Rule(
        "responses.verbosity",
        "Models before gpt-5 know one verbosity.",
        "no source: reported, without a recording",
        _verbosity,
    ),
    Rule(
        "responses.custom-tool",
        "Custom tools exist since gpt-5.",
        "wire/openai_chat.md section 3 (the same tools); the words: no source",
        _early_custom,
    ),
)
