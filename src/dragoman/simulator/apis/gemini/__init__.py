"""Gemini's generateContent, in its AI Studio, Vertex and Code Assist forms.

The body is the bare request. The app removes Code Assist's envelope with `unwrap_request` and adds it with
`wrap_reply`; the request inside is checked by Vertex's rules, because Code Assist forwards it to Vertex.
"""

import msgspec

from dragoman.simulator.apis.api import AcceptedRequest, Api, Envelope
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.gemini import rules_contents, rules_schemas, rules_settings, signatures
from dragoman.simulator.apis.gemini.code_assist import reduce_count, unwrap_request, wrap_reply
from dragoman.simulator.apis.gemini.models import (
    BAD_KEY,
    BAD_TOKEN,
    NO_KEY,
    parse_generation,
    render_error,
    render_stream_error,
)
from dragoman.simulator.apis.gemini.proto import Surface, build_json_violation
from dragoman.simulator.apis.gemini.read import read_model_request
from dragoman.simulator.apis.gemini.request import GeminiRequest, merge_turns, read_request
from dragoman.simulator.apis.gemini.write import drop_candidates, render_array, render_reply, render_stream
from dragoman.simulator.apis.rule import CheckContext, Rule, Violation, find_first_violation, is_absent

__all__ = ["API", "render_array", "unwrap_request", "wrap_reply"]

_PROTO = "wire/gemini.md sections 1 and 2"
_MEMBER_RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule("gemini.json", "The body is JSON.", f"{_PROTO}; the error text is invented"),
    Rule(
        "gemini.unknown-field",
        "A request has only fields of the protos, in camel case or snake case; some exist on one surface only.",
        f"{_PROTO} and 13, wire/gemini_schema.md section 2; wire/samples/gemini/bad_schema.error.json",
    ),
    Rule("gemini.type", "Values have the types of the protos.", "wire/gemini_schema.md section 2"),
    Rule("gemini.enum", "Enum values are those of the protos, case-insensitive.", _PROTO),
    Rule("gemini.bounds", "A number fits its type.", "protobuf's JSON mapping"),
    Rule(
        "gemini.oneof",
        "A part has one of the mutually exclusive data fields.",
        "wire/gemini.md section 2; Google's error text from public threads",
    ),
    Rule(
        "gemini.model",
        "The model exists.",
        "recorded: gemini/newrelic-python-agent-0004, gemini/newrelic-python-agent-0006",
    ),
    Rule("gemini.envelope", "Code Assist's envelope contains a request.", "wire/gemini.md section 11"),
)
"""Rules that the declaration of the body enforces, and errors found before it or in the envelope."""
_RULES: tuple[Rule[GeminiRequest], ...] = (
    *rules_contents.RULES,
    *rules_settings.TOOL_RULES,
    *rules_schemas.RULES,
    *rules_settings.CONFIG_RULES,
    *rules_contents.TURN_RULES,
    *signatures.RULES,
)
"""In the order in which they are checked; Google reports only one error."""


def accept(body: bytes, context: CheckContext, signer: TokenSigner) -> AcceptedRequest | Violation:
    """Validate a request."""
    model = context.model.rpartition("/")[2]
    if is_absent(model):
        return _build_model_not_found(model, context)
    surface = _find_surface(context)
    try:
        document = read_request(body, surface, counting=context.counting)
        if isinstance(document, Violation):
            return document
        request = GeminiRequest(
            document,
            model=model,
            generation=parse_generation(model),
            surface=surface,
            signer=signer,
            size=len(body),
            turns=merge_turns(document),
        )
        violation = find_first_violation(_RULES, request, context)
        return (
            AcceptedRequest(model_request=read_model_request(request), body=request) if violation is None else violation
        )
    except RecursionError as error:
        return build_json_violation(error)


def _find_surface(context: CheckContext) -> Surface:
    if not context.vertex:
        return "studio"
    return "vertex v1" if context.version == "v1" else "vertex"


def _build_model_not_found(model: str, context: CheckContext) -> Violation:
    version = context.version or "v1beta"
    method = "countTokens" if context.counting else "generateContent"
    studio = (
        f"models/{model} is not found for API version {version}, or is not supported for {method}. Call "
        "ModelService.ListModels to see the list of available models and their supported methods."
    )
    vertex = (
        f"Publisher Model `projects/simulated-project/locations/us-central1/publishers/google/models/{model}` was not "
        "found or your project does not have access to it. Please ensure you are using a valid model version. For "
        "more information, see: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
    )
    return Violation(vertex if context.vertex else studio, status=404, rule="gemini.model")


def render_token_count(accepted: AcceptedRequest, tokens: int) -> bytes:
    """Return the reply to a token-count request, in the form of the surface."""
    made = {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}
    if accepted.body.vertex:
        made["totalBillableCharacters"] = sum(len(turn.text) for turn in accepted.model_request.turns)
    return msgspec.json.encode(made)


API = Api(
    name="gemini",
    rules=(*_MEMBER_RULES, *_RULES),
    accept=accept,
    render_reply=render_reply,
    render_stream=render_stream,
    render_error=render_error,
    render_stream_error=render_stream_error,
    render_token_count=render_token_count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    bad_token=BAD_TOKEN,
    drop_answer=drop_candidates,
    envelope=Envelope(unwrap_request, wrap_reply, reduce_count),
    render_array=render_array,
)
