"""Gemini's generateContent, in its AI Studio, Vertex and Code Assist forms.

A body comes bare; the app takes Code Assist's envelope off with `unwrapped` and puts it on with `wrapped`, and holds
what was in it to Vertex's rules, for that is the request Code Assist passes on.
"""

import msgspec

from dragoman.simulator.api import Accepted, Api, Envelope
from dragoman.simulator.apis.gemini import rules_contents, rules_schemas, rules_settings, signatures
from dragoman.simulator.apis.gemini.code_assist import counted, unwrapped, wrapped
from dragoman.simulator.apis.gemini.models import BAD_KEY, BAD_TOKEN, NO_KEY, fail, generation_of, refuse
from dragoman.simulator.apis.gemini.proto import Surface, not_json
from dragoman.simulator.apis.gemini.read import read
from dragoman.simulator.apis.gemini.request import GeminiRequest, read_request, turns_of
from dragoman.simulator.apis.gemini.write import silenced, stream, stream_array, whole
from dragoman.simulator.rule import Rule, Situation, Violation, first_violation, is_absent
from dragoman.simulator.talk import Signer

__all__ = ["API", "stream_array", "unwrapped", "wrapped"]

_PROTO = "wire/gemini.md sections 1 and 2"
_MEMBER_RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule("gemini.json", "A request is JSON.", f"{_PROTO}; the words are ours"),
    Rule(
        "gemini.unknown-field",
        "A request has only names the protos know, in camel case or snake case; some are for one surface alone.",
        f"{_PROTO} and 13, wire/gemini_schema.md section 2; wire/samples/gemini/bad_schema.error.json",
    ),
    Rule("gemini.type", "Values have the types of the protos.", "wire/gemini_schema.md section 2"),
    Rule("gemini.enum", "Words of enums are those of the protos, in any case.", _PROTO),
    Rule("gemini.bounds", "A number fits its type.", "protobuf's JSON mapping"),
    Rule("gemini.oneof", "A part holds one thing.", "wire/gemini.md section 2; Google's words from public threads"),
    Rule(
        "gemini.model",
        "There is such a model.",
        "recorded: gemini/newrelic-python-agent-0004, gemini/newrelic-python-agent-0006",
    ),
    Rule("gemini.envelope", "Code Assist's envelope holds a request.", "wire/gemini.md section 11"),
)
"""What the declaration of the body keeps by itself, and what is found before or around it."""
_RULES: tuple[Rule[GeminiRequest], ...] = (
    *rules_contents.RULES,
    *rules_settings.TOOL_RULES,
    *rules_schemas.RULES,
    *rules_settings.CONFIG_RULES,
    *rules_contents.TURN_RULES,
    *signatures.RULES,
)
"""In the order in which they are looked at; Google tells one fault."""


def accept(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    """Judge a request."""
    model = situation.model.rpartition("/")[2]
    if is_absent(model):
        return _no_model(model, situation)
    surface = _surface(situation)
    try:
        document = read_request(body, surface, counting=situation.counting)
        if isinstance(document, Violation):
            return document
        request = GeminiRequest(
            document,
            model=model,
            generation=generation_of(model),
            surface=surface,
            signer=signer,
            size=len(body),
            turns=turns_of(document),
        )
        violation = first_violation(_RULES, request, situation)
        return Accepted(ask=read(request), body=request) if violation is None else violation
    except RecursionError as error:
        return not_json(error)


def _surface(situation: Situation) -> Surface:
    if not situation.vertex:
        return "studio"
    return "vertex v1" if situation.version == "v1" else "vertex"


def _no_model(model: str, situation: Situation) -> Violation:
    version = situation.version or "v1beta"
    method = "countTokens" if situation.counting else "generateContent"
    studio = (
        f"models/{model} is not found for API version {version}, or is not supported for {method}. Call "
        "ModelService.ListModels to see the list of available models and their supported methods."
    )
    vertex = (
        f"Publisher Model `projects/simulated-project/locations/us-central1/publishers/google/models/{model}` was not "
        "found or your project does not have access to it. Please ensure you are using a valid model version. For "
        "more information, see: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions"
    )
    return Violation(vertex if situation.vertex else studio, status=404, rule="gemini.model")


def count(accepted: Accepted, tokens: int) -> bytes:
    """Tell how many tokens there are, in the form of the surface."""
    made = {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}
    if accepted.body.vertex:
        made["totalBillableCharacters"] = sum(len(turn.text) for turn in accepted.ask.turns)
    return msgspec.json.encode(made)


API = Api(
    name="gemini",
    rules=(*_MEMBER_RULES, *_RULES),
    accept=accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    bad_token=BAD_TOKEN,
    silenced=silenced,
    envelope=Envelope(unwrapped, wrapped, counted),
    array=stream_array,
)
