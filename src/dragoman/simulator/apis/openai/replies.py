"""What replies of both OpenAI APIs share: headers, pages of lists, log probabilities and moderation."""

import hashlib
import math
from collections.abc import Mapping, Sequence

from dragoman.simulator.apis.api import ApiRejection, ReplyMeta
from dragoman.simulator.apis.rule import Json

_COMMON_HEADERS = {
    "openai-version": "2020-10-01",
    "openai-organization": "dragoman-simulator",
    "openai-processing-ms": "12",
}
_LIMITS = {"requests": ("10000", "6ms"), "tokens": ("2000000", "0s")}
BAD_KEY = ApiRejection(
    status=401,
    message="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    kind="invalid_api_key",
    rule="key",
)
NO_KEY = ApiRejection(
    status=401,
    message=(
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY). You can obtain an API key from "
        "https://platform.openai.com/account/api-keys."
    ),
    rule="key",
)
"""This error has no code, unlike `BAD_KEY`."""


def build_answer_headers(meta: ReplyMeta) -> dict[str, str]:
    """Return the headers of an answer."""
    return {
        **_COMMON_HEADERS,
        "x-request-id": f"req_{_hash_id(meta.id)}",
        **_build_rate_limit_headers(has_remaining=True),
    }


def build_error_headers(rejection: ApiRejection, body: bytes) -> dict[str, str]:
    """Return the headers of an error; the retry delay is given in seconds and in milliseconds."""
    headers = {"content-type": "application/json", **_COMMON_HEADERS, "x-request-id": f"req_{_hash_id(body.decode())}"}
    if rejection.status == 429:
        headers |= _build_rate_limit_headers(has_remaining=False)
    if rejection.retry_after is not None:
        headers["retry-after"] = str(math.ceil(rejection.retry_after))
        headers["retry-after-ms"] = str(math.ceil(rejection.retry_after * 1000))
    if rejection.status == 426:
        headers["upgrade"] = "HTTP/1.1"
    if rejection.rule:
        headers["x-dragoman-rule"] = rejection.rule
    return headers


def _build_rate_limit_headers(*, has_remaining: bool) -> dict[str, str]:
    headers: dict[str, str] = {}
    for what, (most, until) in _LIMITS.items():
        headers[f"x-ratelimit-limit-{what}"] = most
        headers[f"x-ratelimit-remaining-{what}"] = str(int(most) - 1) if has_remaining else "0"
        headers[f"x-ratelimit-reset-{what}"] = until
    return headers


def _hash_id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_DEFAULT_LIMIT = 20
_MAX_LIMIT = 100


def build_page(rows: Sequence[tuple[str, Json]], query: Mapping[str, str], *, order: str) -> Json | ApiRejection:
    """Return one page of rows, each with its id: `limit` rows after the one with the id `after`, in `order`."""
    order, limit = query.get("order", order), query.get("limit", str(_DEFAULT_LIMIT))
    if order not in {"asc", "desc"}:
        message = f"Invalid value: '{order}'. Supported values are: 'asc' and 'desc'."
        return ApiRejection(status=400, message=message, kind="invalid_value", where="/order")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MAX_LIMIT:
        return _build_limit_error(limit)
    ordered = rows if order == "asc" else rows[::-1]
    after = query.get("after", "")
    at = next((number for number, one in enumerate(ordered, 1) if one[0] == after), 0)
    if after and not at:
        return ApiRejection(status=400, message=f"Item with id '{after}' not found.", where="/after")
    return build_list([one[1] for one in ordered[at : at + int(limit)]], more=at + int(limit) < len(ordered))


def _build_limit_error(limit: str) -> ApiRejection:
    if not limit.lstrip("-").isdecimal():
        message = "Invalid type for 'limit': expected an integer, but got a string instead."
        return ApiRejection(status=400, message=message, kind="invalid_type", where="/limit")
    side, kind, bound = ("above maximum", "integer_above_max_value", f"<= {_MAX_LIMIT}")
    if int(limit) < 1:
        side, kind, bound = ("below minimum", "integer_below_min_value", ">= 1")
    message = f"Invalid 'limit': integer {side} value. Expected a value {bound}, but got {limit} instead."
    return ApiRejection(status=400, message=message, kind=kind, where="/limit")


def build_list(data: list[Json], *, more: bool = False) -> Json:
    """Return a list object in OpenAI's format."""
    ids = [str(item["id"]) for item in data]
    first, last = (ids[0], ids[-1]) if ids else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more}


_TOP_LOGPROB = -0.01
_OTHER_LOGPROB = -4.0
_CATEGORIES = ("harassment", "hate", "illicit", "self-harm", "sexual", "violence")


def build_logprobs(text: str, alternatives: int) -> list[Json]:
    """Return log probabilities: a high one for each token (word) of a text, and lower ones for its alternatives."""
    return [_build_token_logprob(token, alternatives) for token in _split_tokens(text)]


def _split_tokens(text: str) -> list[str]:
    first, *others = text.split(" ")
    return [token for token in (first, *(f" {other}" for other in others)) if token]


def _build_token_logprob(token: str, alternatives: int) -> Json:
    top = [_build_logprob(token, _TOP_LOGPROB)][:alternatives]
    top += [_build_logprob(f"{token}{number}", _OTHER_LOGPROB - number) for number in range(1, alternatives)]
    return {**_build_logprob(token, _TOP_LOGPROB), "top_logprobs": top}


def _build_logprob(token: str, logprob: float) -> Json:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def build_moderation_result(model: str) -> Json:
    """Return a moderation result that flags nothing."""
    return {
        "type": "moderation_result",
        "model": model,
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {category: ["text"] for category in _CATEGORIES},
    }
