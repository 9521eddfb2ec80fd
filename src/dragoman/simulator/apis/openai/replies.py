"""What replies of both OpenAI APIs share: headers, pages of lists, log probabilities and moderation."""

import hashlib
import math
from collections.abc import Mapping, Sequence

from dragoman.simulator.api import Occasion, Refusal
from dragoman.simulator.rule import Json

_ALWAYS = {
    "openai-version": "2020-10-01",
    "openai-organization": "dragoman-simulator",
    "openai-processing-ms": "12",
}
_LIMITS = {"requests": ("10000", "6ms"), "tokens": ("2000000", "0s")}
BAD_KEY = Refusal(
    status=401,
    message="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    kind="invalid_api_key",
    rule="key",
)
NO_KEY = Refusal(
    status=401,
    message=(
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY). You can obtain an API key from "
        "https://platform.openai.com/account/api-keys."
    ),
    rule="key",
)
"""It has no code, unlike the other."""


def of_answer(occasion: Occasion) -> dict[str, str]:
    """Return what stands in the headers of an answer."""
    return {**_ALWAYS, "x-request-id": f"req_{_digits(occasion.id)}", **_limits(left=True)}


def of_refusal(refusal: Refusal, body: bytes) -> dict[str, str]:
    """Return what stands in the headers of a refusal; when to come back is told in seconds and in milliseconds."""
    headers = {"content-type": "application/json", **_ALWAYS, "x-request-id": f"req_{_digits(body.decode())}"}
    if refusal.status == 429:
        headers |= _limits(left=False)
    if refusal.retry_after is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after))
        headers["retry-after-ms"] = str(math.ceil(refusal.retry_after * 1000))
    if refusal.status == 426:
        headers["upgrade"] = "HTTP/1.1"
    if refusal.rule:
        headers["x-dragoman-rule"] = refusal.rule
    return headers


def _limits(*, left: bool) -> dict[str, str]:
    told: dict[str, str] = {}
    for what, (most, until) in _LIMITS.items():
        told[f"x-ratelimit-limit-{what}"] = most
        told[f"x-ratelimit-remaining-{what}"] = str(int(most) - 1) if left else "0"
        told[f"x-ratelimit-reset-{what}"] = until
    return told


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_USUAL = 20
_MOST = 100


def page(rows: Sequence[tuple[str, Json]], query: Mapping[str, str], *, order: str) -> Json | Refusal:
    """Return one page of rows, which come with their ids: `limit` of them behind the one called `after`, in `order`."""
    order, limit = query.get("order", order), query.get("limit", str(_USUAL))
    if order not in {"asc", "desc"}:
        message = f"Invalid value: '{order}'. Supported values are: 'asc' and 'desc'."
        return Refusal(status=400, message=message, kind="invalid_value", where="/order")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MOST:
        return _odd_limit(limit)
    ordered = rows if order == "asc" else rows[::-1]
    after = query.get("after", "")
    at = next((number for number, one in enumerate(ordered, 1) if one[0] == after), 0)
    if after and not at:
        return Refusal(status=400, message=f"Item with id '{after}' not found.", where="/after")
    return whole([one[1] for one in ordered[at : at + int(limit)]], more=at + int(limit) < len(ordered))


def _odd_limit(limit: str) -> Refusal:
    if not limit.lstrip("-").isdecimal():
        message = "Invalid type for 'limit': expected an integer, but got a string instead."
        return Refusal(status=400, message=message, kind="invalid_type", where="/limit")
    side, kind, bound = ("above maximum", "integer_above_max_value", f"<= {_MOST}")
    if int(limit) < 1:
        side, kind, bound = ("below minimum", "integer_below_min_value", ">= 1")
    message = f"Invalid 'limit': integer {side} value. Expected a value {bound}, but got {limit} instead."
    return Refusal(status=400, message=message, kind=kind, where="/limit")


def whole(data: list[Json], *, more: bool = False) -> Json:
    """Return a list as the vendor tells it."""
    ids = [str(item["id"]) for item in data]
    first, last = (ids[0], ids[-1]) if ids else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more}


_LIKELY = -0.01
_WORSE = -4.0
_CATEGORIES = ("harassment", "hate", "illicit", "self-harm", "sexual", "violence")


def probabilities(text: str, alternatives: int) -> list[Json]:
    """Tell of each token of a text how likely it was (very), and how likely so many others; a token is a word."""
    return [_token(token, alternatives) for token in _tokens(text)]


def _tokens(text: str) -> list[str]:
    first, *others = text.split(" ")
    return [token for token in (first, *(f" {other}" for other in others)) if token]


def _token(token: str, alternatives: int) -> Json:
    top = [_likely(token, _LIKELY)][:alternatives]
    top += [_likely(f"{token}{number}", _WORSE - number) for number in range(1, alternatives)]
    return {**_likely(token, _LIKELY), "top_logprobs": top}


def _likely(token: str, logprob: float) -> Json:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def moderation_result(model: str) -> Json:
    """Return what a moderator says of one side of an exchange: nothing is wrong with it."""
    return {
        "type": "moderation_result",
        "model": model,
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
    }
