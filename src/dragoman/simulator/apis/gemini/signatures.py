"""Tokens that the simulator issues and verifies: thought signatures, and tokens that continue an answer.

A thought signature is one token over the content of a part, and a second over the model that signed it. The model is
the same on every surface, and regardless of previews and dates in its name. From Gemini 3 on signatures must come back
unchanged, on the part they were issued for. The first call of every step of the current turn must have one; everywhere
else it is optional.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from dragoman.simulator.apis.conversation import TokenSigner, Verdict
from dragoman.simulator.apis.gemini.models import resolve_model_name
from dragoman.simulator.apis.gemini.request import GeminiRequest, PlacedPart, iterate_current_steps
from dragoman.simulator.apis.rule import CheckContext, Json, Rule, Violation

SKIP_TOKENS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_STANDARD = str.maketrans("-_", "+/")
# As `BYTES` normalises them: standard alphabet, no padding. SDKs that take bytes send the token's base64.
_ENCODED_SKIP_TOKENS = frozenset(
    form.translate(_STANDARD).rstrip("=") for word in SKIP_TOKENS for form in (word, b64encode(word.encode()).decode())
)
_TOKEN = 72
"""Length of one token in characters."""
_EDITION_SUFFIX = re.compile(r"(?:-(?:preview|exp|latest|customtools|\d{2,}))+$")
_MAX_EXACT_INTEGER = 1 << 53
_CORRUPTED = "Corrupted thought signature."
_INVALID = "Invalid thought signature."
_DOCS = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_VERTEX_DOCS = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures"


def sign(part: Json, model: str, signer: TokenSigner, nonce: str) -> str:
    """Sign a part as a model does."""
    return signer.issue(_build_signed_content(part), nonce) + signer.issue(_find_model_line(model), f"{nonce} model")


def issue_continuation_token(offset: int, signer: TokenSigner) -> str:
    """Return a token that encodes the position to continue an answer from."""
    return b64encode(f"{offset} {signer.issue(str(offset), 'continuation')}".encode()).decode()


def read_continuation_token(token: str, signer: TokenSigner) -> int | None:
    """Return the position in a continuation token; None for a token that the simulator did not issue."""
    try:
        written, _, signature = b64decode(token + "=" * (-len(token) % 4), validate=True).decode().partition(" ")
    except (Error, ValueError):
        return None
    return int(written) if written.isdecimal() and signer.judge(signature, written) == "genuine" else None


def _verify_signature(token: str, part: Json, signer: TokenSigner) -> Verdict:
    """Verify that a signature is for this part, regardless of the model that signed it."""
    verdict = signer.judge(token[:_TOKEN], _build_signed_content(part))
    whole = verdict in {"altered", "foreign"} or signer.judge(token[_TOKEN:], "") == "moved"
    return verdict if whole else "altered"


def _find_model_line(model: str) -> str:
    return _EDITION_SUFFIX.sub("", resolve_model_name(model).partition("@")[0])


def _build_signed_content(part: Json) -> str:
    """Return the content that a signature on a part is bound to: a call with its arguments, or just "text".

    A text may come back split into other pieces than it was sent in, so its content is not signed.
    """
    call = part.get("functionCall")
    if call is None:
        return "text"
    return msgspec.json.encode(
        ["call", call["name"], _normalise_numbers(call.get("args", {}))], order="sorted"
    ).decode()


def _normalise_numbers(value: Any) -> Any:
    """Normalise numbers as protobuf's Struct stores them: 5 and 5.0 are equal."""
    match value:
        case dict():
            return {name: _normalise_numbers(item) for name, item in cast("Json", value).items()}
        case list():
            return [_normalise_numbers(item) for item in cast("list[Any]", value)]
        case float() if value.is_integer() and abs(value) < _MAX_EXACT_INTEGER:
            return int(value)
        case _:
            return value


def _load_verdicts(request: GeminiRequest) -> list[tuple[PlacedPart, str, Verdict]]:
    """Return every signed part with its signature and the verdict.

    A result that repeats the signature of a call is skipped: goose sends that to Gemini 3, which accepts it.
    """
    if not request.generation.signs_calls:
        return []
    if "signatures" not in request.computed:
        found: list[tuple[PlacedPart, str, Verdict]] = []
        on_calls = {placed.part.get("thoughtSignature") for placed in request.parts.get("functionCall", ())}
        for placed in request.parts.get("thoughtSignature", ()):
            token = placed.part["thoughtSignature"]
            is_repeated = "functionResponse" in placed.part and token in on_calls
            if token and token not in _ENCODED_SKIP_TOKENS and not is_repeated:
                padded = token + "=" * (-len(token) % 4)
                found.append((placed, padded, _verify_signature(padded, placed.part, request.signer)))
        request.computed["signatures"] = found
    return request.computed["signatures"]


def _find_violations(request: GeminiRequest, verdict: Verdict, message: str) -> Iterable[Violation]:
    return [
        Violation(message, f"{placed.where}/thoughtSignature")
        for placed, _token, found in _load_verdicts(request)
        if found == verdict
    ]


def _check_missing_signature(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for step in iterate_current_steps(request.turns) if request.generation.signs_calls else ():
        for placed in step.calls[:1]:
            if not placed.part.get("thoughtSignature"):
                yield Violation(_describe_missing_signature(request, placed), placed.where)


def _describe_missing_signature(request: GeminiRequest, placed: PlacedPart) -> str:
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


def _check_other_model(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    for placed, token, verdict in _load_verdicts(request):
        if verdict == "genuine" and request.signer.judge(token[_TOKEN:], _find_model_line(request.model)) != "genuine":
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")


def _check_reused_signature(request: GeminiRequest, _: CheckContext) -> Iterator[Violation]:
    known: set[str] = set()
    for placed, token, verdict in _load_verdicts(request):
        if verdict == "genuine" and token in known:
            yield Violation(_INVALID, f"{placed.where}/thoughtSignature")
        known.add(token)


def _check_continuation_token(request: GeminiRequest, context: CheckContext) -> Iterator[Violation]:
    token = request.get("continuationToken")
    if token is not None and read_continuation_token(token, request.signer) is None and not context.recorded:
        yield Violation("Invalid continuation token.", "/continuationToken")


RULES: tuple[Rule[GeminiRequest], ...] = (
    Rule(
        "gemini.signature-missing",
        "From Gemini 3 on the first call of every step of the current turn has its thought signature.",
        "wire/gemini.md section 6",
        _check_missing_signature,
    ),
    Rule(
        "gemini.signature-altered",
        "From Gemini 3 on a thought signature comes back unaltered.",
        "wire/gemini.md section 6",
        lambda request, _: _find_violations(request, "altered", _CORRUPTED),
    ),
    Rule(
        "gemini.signature-foreign",
        "From Gemini 3 on a thought signature was issued by the simulator, unless the request is a recording.",
        "wire/gemini.md section 6 (a corrupted signature)",
        lambda request, context: () if context.recorded else _find_violations(request, "foreign", _CORRUPTED),
    ),
    Rule(
        "gemini.signature-moved",
        "From Gemini 3 on a thought signature comes back on the call it was issued for; a result may repeat it.",
        "wire/gemini.md section 6; repeated on a result: clients/captures/goose-gemini, "
        "github.com/aaif-goose/goose/pull/6035",
        lambda request, _: _find_violations(request, "moved", _INVALID),
    ),
    Rule(
        "gemini.signature-model",
        "From Gemini 3 on a thought signature comes back to the model that issued it, on any surface.",
        "wire/gemini.md section 6",
        _check_other_model,
    ),
    Rule(
        "gemini.signature-twice",
        "From Gemini 3 on a thought signature comes back once, not counting a result that repeats it.",
        "wire/gemini.md section 6 (a signature stays with its part); no recording",
        _check_reused_signature,
    ),
    Rule(
        "gemini.continuation-token",
        "A continuation token was issued by the simulator, unless the request is a recording.",
        "wire/gemini.md section 8.4; the error text is invented",
        _check_continuation_token,
    ),
)
