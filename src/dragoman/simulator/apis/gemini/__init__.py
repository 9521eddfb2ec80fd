"""Gemini's generateContent, in its AI Studio, Vertex and Code Assist forms.

A body comes bare; the app takes Code Assist's envelope off with `unwrapped` and puts it on with `wrapped`, and holds
what was in it to Vertex's rules, for that is the request Code Assist passes on.
"""

import msgspec

from dragoman.simulator.absent import is_absent
from dragoman.simulator.api import Accepted, Api, Envelope
from dragoman.simulator.apis.gemini.code_assist import counted, unwrapped, wrapped
from dragoman.simulator.apis.gemini.errors import BAD_KEY, BAD_TOKEN, NO_KEY, fail, refuse
from dragoman.simulator.apis.gemini.generation import generation_of
from dragoman.simulator.apis.gemini.heard import Heard, heard_in
from dragoman.simulator.apis.gemini.proto import Surface
from dragoman.simulator.apis.gemini.read import asked
from dragoman.simulator.apis.gemini.rules import NOTES, RULES
from dragoman.simulator.apis.gemini.shape import not_json, read_request
from dragoman.simulator.apis.gemini.stream import stream, stream_array
from dragoman.simulator.apis.gemini.turns import turns_of
from dragoman.simulator.apis.gemini.write import silenced, whole
from dragoman.simulator.rule import Situation, Violation, first_violation
from dragoman.simulator.signatures import Signer

__all__ = [
    "API",
    "stream_array",
    "unwrapped",
    "wrapped",
]


def _accept(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    try:
        return _judged(body, situation, signer)
    except RecursionError as error:
        return not_json(error)


def _judged(body: bytes, situation: Situation, signer: Signer) -> Accepted | Violation:
    model = situation.model.rpartition("/")[2]
    if is_absent(model):
        return _no_model(model, situation)
    surface = _surface(situation)
    request = read_request(body, surface, counting=situation.counting)
    if isinstance(request, Violation):
        return request
    heard = Heard(
        request=request,
        turns=turns_of(request),
        generation=generation_of(model),
        model=model,
        surface=surface,
        signer=signer,
        size=len(body),
    )
    return first_violation(RULES, heard, situation) or Accepted(ask=asked(heard), body=heard)


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


def _count(accepted: Accepted, tokens: int) -> bytes:
    made = {"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]}
    if heard_in(accepted).vertex:
        made["totalBillableCharacters"] = sum(len(turn.text) for turn in accepted.ask.turns)
    return msgspec.json.encode(made)


API = Api(
    name="gemini",
    rules=NOTES,
    accept=_accept,
    whole=whole,
    stream=stream,
    refuse=refuse,
    fail=fail,
    count=_count,
    bad_key=BAD_KEY,
    no_key=NO_KEY,
    bad_token=BAD_TOKEN,
    silenced=silenced,
    envelope=Envelope(unwrapped, wrapped, counted),
    array=stream_array,
)
