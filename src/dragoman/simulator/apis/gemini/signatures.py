"""Tokens the simulator issues and takes back: thought signatures, and tokens with which an answer goes on.

A thought signature is one token over what a part holds, and a second over the model that signed it. The model is the
same on every surface, and whatever a name says of previews and dates. From Gemini 3 on signatures come back as they
were issued, on what they were issued for. The first call of every step of the current turn must carry one; everywhere
else one may be left out.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from dragoman.simulator.apis.gemini.models import known_as
from dragoman.simulator.apis.gemini.request import GeminiRequest, Placed, current_steps
from dragoman.simulator.rule import Json, Rule, Situation, Violation
from dragoman.simulator.talk import Signer, Verdict

SKIPS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_STANDARD = str.maketrans("-_", "+/")
# As bytes are read: in the standard alphabet, without padding. SDKs that take bytes send the word's base64.
_SKIPPED = frozenset(
    form.translate(_STANDARD).rstrip("=") for word in SKIPS for form in (word, b64encode(word.encode()).decode())
)
_TOKEN = 72
"""Characters of one token."""
_EDITION = re.compile(r"(?:-(?:preview|exp|latest|customtools|\d{2,}))+$")
_EXACT = 1 << 53
_CORRUPTED = "Corrupted thought signature."
_INVALID = "Invalid thought signature."
_DOCS = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_VERTEX_DOCS = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"


def sign(part: Json, model: str, signer: Signer, occasion: str) -> str:
    """Sign a part as a model does."""
    return signer.issue(_signed_content(part), occasion) + signer.issue(_line_of(model), f"{occasion} model")


def issue_continuation(place: int, signer: Signer) -> str:
    """Return a token that tells how far an answer has come."""
    return b64encode(f"{place} {signer.issue(str(place), 'continuation')}".encode()).decode()


def continued_from(token: str, signer: Signer) -> int | None:
    """Return how far an answer had come when a token was given; None for a token that was not given here."""
    try:
        written, _, signature = b64decode(token + "=" * (-len(token) % 4), validate=True).decode().partition(" ")
    except (Error, ValueError):
        return None
    return int(written) if written.isdecimal() and signer.judge(signature, written) == "genuine" else None


def _judge(token: str, part: Json, signer: Signer) -> Verdict:
    """Tell whether a signature is for this part, whichever model signed it."""
    verdict = signer.judge(token[:_TOKEN], _signed_content(part))
    whole = verdict in {"altered", "foreign"} or signer.judge(token[_TOKEN:], "") == "moved"
    return verdict if whole else "altered"


def _line_of(model: str) -> str:
    return _EDITION.sub("", known_as(model).partition("@")[0])


def _signed_content(part: Json) -> str:
    """Return what a signature on a part is bound to: a call with its arguments, or that it is no call.

    A text may come back cut into other pieces than it was sent in, so it is not looked at.
    """
    call = part.get("functionCall")
    if call is None:
        return "text"
    return msgspec.json.encode(["call", call["name"], _plain(call.get("args", {}))], order="sorted").decode()


def _plain(value: Any) -> Any:
    """Write numbers as protobuf's Struct keeps them: 5 and 5.0 are one."""
    match value:
        case dict():
            return {name: _plain(item) for name, item in cast("Json", value).items()}
        case list():
            return [_plain(item) for item in cast("list[Any]", value)]
        case float() if value.is_integer() and abs(value) < _EXACT:
            return int(value)
        case _:
            return value


def _judged(request: GeminiRequest) -> list[tuple[Placed, str, Verdict]]:
    """Return every signed part with its signature, and what became of that.

    A result that repeats the signature of a call is left out: goose sends it so to Gemini 3, which answers.
    """
    if not request.generation.signs:
        return []
    if "signatures" not in request.computed:
        found: list[tuple[Placed, str, Verdict]] = []
        on_calls = {placed.part.get("thoughtSignature") for placed in request.parts.get("functionCall", ())}
        for placed in request.parts.get("thoughtSignature", ()):
            token = placed.part["thoughtSignature"]
            is_repeated = "functionResponse" in placed.part and token in on_calls
            if token and token not in _SKIPPED and not is_repeated:
                padded = token + "=" * (-len(token) % 4)
                found.append((placed, padded, _judge(padded, placed.part, request.signer)))
        request.computed["signatures"] = found
    return request.computed["signatures"]


def _violations(request: GeminiRequest, verdict: Verdict, words: str) -> Iterable[Violation]:
    return [
        Violation(words, f"{placed.where}/thoughtSignature")
        for placed, _token, found in _judged(request)
        if found == verdict
    ]


def _missing(request: GeminiRequest, _: Situation) -> Iterator[Violation]:
    for step in current_steps(request.turns) if request.generation.signs else ():
        for placed in step.calls[:1]:
            if not placed.part.get("thoughtSignature"):
                yield Violation(_missing_words(request, placed), placed.where)


def _missing_words(request: GeminiRequest, placed: Placed) -> str:
    name, position = placed.part["functionCall"]["name"], placed.content + 1
    if request.vertex:
        return (
            f"Unable to submit request because function call `default_api:{name}` in the `{position}.` content block "
            f"is missing a `thought_signature`. Learn more: {_VERTEX_DOCS}"
        )
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
        f"call `default_api:{name}` , position {position}. Please refer to {_DOCS} for more details."
    )


def _other_model(request: GeminiRequest, _: Situation) -> Iterator[Violation]:
    for placed, token, verdict in _judged(request):
        if verdict == "genuine" and request.signer.judge(token[_TOKEN:], _line_of(request.model)) != "genuine":
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")


def _twice(request: GeminiRequest, _: Situation) -> Iterator[Violation]:
    known: set[str] = set()
    for placed, token, verdict in _judged(request):
        if verdict == "genuine" and token in known:
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")
        known.add(token)


def _continuation(request: GeminiRequest, situation: Situation) -> Iterator[Violation]:
    token = request.get("continuationToken")
    if token is not None and continued_from(token, request.signer) is None and not situation.recorded:
        yield Violation("Invalid continuation token.", "/continuationToken")


RULES: tuple[Rule[GeminiRequest], ...] = (
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
        lambda request, _: _violations(request, "altered", _CORRUPTED),
    ),
    Rule(
        "gemini.signature-foreign",
        "From Gemini 3 on a thought signature was issued here, unless the request is a recording.",
        "wire/gemini.md section 6 (a corrupted signature)",
        lambda request, situation: () if situation.recorded else _violations(request, "foreign", _CORRUPTED),
    ),
    Rule(
        "gemini.signature-moved",
        "From Gemini 3 on a thought signature comes back on the very call it was issued for; a result may repeat it.",
        "wire/gemini.md section 6; repeated on a result: clients/captures/goose-gemini, "
        "github.com/aaif-goose/goose/pull/6035",
        lambda request, _: _violations(request, "moved", _INVALID),
    ),
    Rule(
        "gemini.signature-model",
        "From Gemini 3 on a thought signature comes back to the model that issued it, on whichever surface.",
        "wire/gemini.md section 6",
        _other_model,
    ),
    Rule(
        "gemini.signature-twice",
        "From Gemini 3 on a thought signature comes back once, not counting a result that repeats it.",
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
