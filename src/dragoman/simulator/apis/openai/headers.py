"""The headers OpenAI sends with answers and with refusals, and what it tells a caller without a key."""

import hashlib
import math

from dragoman.simulator.api import Occasion, Refusal

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
