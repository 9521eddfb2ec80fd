"""Thought signatures: from Gemini 3 on they come back as they were issued, on what they were issued for.

The first call of every step of the current turn must carry one; everywhere else one may be left out. A token with which
an answer goes on was issued here too.
"""

from base64 import b64encode
from collections.abc import Iterator

from dragoman.simulator.apis.gemini.continuation import place_of
from dragoman.simulator.apis.gemini.heard import Heard, HeardRule
from dragoman.simulator.apis.gemini.signing import is_of, judge
from dragoman.simulator.apis.gemini.turns import Placed, current_turn
from dragoman.simulator.rule import Rule, Situation, Violation
from dragoman.simulator.signatures import Verdict

SKIPS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_STANDARD = str.maketrans("-_", "+/")
# As bytes are read: in the standard alphabet, without padding. SDKs that take bytes send the word's base64.
_SKIPPED = frozenset(
    form.translate(_STANDARD).rstrip("=") for word in SKIPS for form in (word, b64encode(word.encode()).decode())
)
_CORRUPTED = "Corrupted thought signature."
_INVALID = "Invalid thought signature."
_DOCS = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_VERTEX_DOCS = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"


def _signed(heard: Heard) -> Iterator[tuple[Placed, str]]:
    if not heard.generation.signs:
        return
    for turn in heard.turns:
        for placed in turn.parts:
            token = placed.part.thought_signature
            if token and token not in _SKIPPED:
                yield placed, token


def _judged(heard: Heard) -> Iterator[tuple[Placed, str, Verdict]]:
    for placed, token in _signed(heard):
        padded = token + "=" * (-len(token) % 4)
        yield placed, padded, judge(padded, placed.part, heard.signer)


def _missing_words(heard: Heard, placed: Placed, name: str) -> str:
    position = placed.content + 1
    if heard.vertex:
        return (
            f"Unable to submit request because function call `default_api:{name}` in the `{position}.` content block "
            f"is missing a `thought_signature`. Learn more: {_VERTEX_DOCS}"
        )
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{name}` , position {position}. Please refer to {_DOCS} for more details."
    )


def _missing(heard: Heard, _: Situation) -> Iterator[Violation]:
    if not heard.generation.signs:
        return
    for step in current_turn(heard.turns):
        for placed, call in step.calls[:1]:
            if not placed.part.thought_signature:
                yield Violation(_missing_words(heard, placed, call.name), placed.where)


def _altered(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed, _token, verdict in _judged(heard):
        if verdict == "altered":
            yield Violation(_CORRUPTED, f"{placed.where}/thoughtSignature")


def _foreign(heard: Heard, situation: Situation) -> Iterator[Violation]:
    for placed, _token, verdict in _judged(heard):
        if verdict == "foreign" and not situation.recorded:
            yield Violation(_CORRUPTED, f"{placed.where}/thoughtSignature")


def _moved(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed, _token, verdict in _judged(heard):
        if verdict == "moved":
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")


def _other_model(heard: Heard, _: Situation) -> Iterator[Violation]:
    for placed, token, verdict in _judged(heard):
        if verdict == "genuine" and not is_of(token, heard.model, heard.signer):
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")


def _twice(heard: Heard, _: Situation) -> Iterator[Violation]:
    known: set[str] = set()
    for placed, token, verdict in _judged(heard):
        if verdict == "genuine" and token in known:
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")
        known.add(token)


def _continuation(heard: Heard, situation: Situation) -> Iterator[Violation]:
    token = heard.request.continuation_token
    if token is not None and place_of(token, heard.signer) is None and not situation.recorded:
        yield Violation("Invalid continuation token.", "/continuationToken")


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.signature-missing",
        "From Gemini 3 on the first call of every step of the current turn carries its thought signature.",
        "wire/gemini.md section 6",
        _missing,
    ),
    Rule(
        "gemini.signature-altered",
        "From Gemini 3 on a thought signature comes back as it was issued.",
        "wire/gemini.md section 6",
        _altered,
    ),
    Rule(
        "gemini.signature-foreign",
        "From Gemini 3 on a thought signature was issued here, unless the request is a recording.",
        "wire/gemini.md section 6 (a corrupted signature)",
        _foreign,
    ),
    Rule(
        "gemini.signature-moved",
        "From Gemini 3 on a thought signature comes back on the very call it was issued for.",
        "wire/gemini.md section 6",
        _moved,
    ),
    Rule(
        "gemini.signature-model",
        "From Gemini 3 on a thought signature comes back to the model that issued it, on whichever surface.",
        "wire/gemini.md section 6",
        _other_model,
    ),
    Rule(
        "gemini.signature-twice",
        "From Gemini 3 on a thought signature comes back once.",
        "wire/gemini.md section 6 (a signature stays with its part); no recording",
        _twice,
    ),
    Rule(
        "gemini.continuation-token",
        "A continuation token was given here, unless the request is a recording.",
        "wire/gemini.md section 8.4; the words are ours",
        _continuation,
    ),
)
