"""Redacts secrets from text for logs and clients: known secrets by value, others by pattern.

Text for a client is only redacted by value, because an id that the client chose may look like a key.
"""

import re
from collections.abc import Iterable

from dragoman.http.client import Outgoing

REDACTED = "[redacted]"
_MIN_SECRET = 6
"""Shorter secrets are not redacted by value, because they would match ordinary words."""
_SECRET_HEADER = re.compile(r"auth|cookie|credential|key|secret|session|token", re.IGNORECASE)
_ALLOWED_KEY_HEADERS = frozenset({"idempotency-key"})
_CREDENTIAL_NAMES = (
    r"(?:(?:api|x-api|x-goog-api)[_-]?key|(?:access|refresh|id)?[_-]?token|(?:client[_-]?)?secret|passw(?:or)?d|key)"
)
_SECRET_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"\b(bearer|basic|token)(\s+)(?=\S*[\d._+/=-])[^\s\"',;\\]{6,}", re.IGNORECASE), rf"\1\2{REDACTED}"),
    (re.compile(r"(://[^/\s:@]*:)[^/\s@\"\\]+@"), rf"\1{REDACTED}@"),
    (re.compile(rf"([?&;]{_CREDENTIAL_NAMES}=)[^&\s\"'#;\\]+", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(
            rf"((?<![A-Za-z]){_CREDENTIAL_NAMES}\\?[\"']?\s{{0,9}}[:=]\s{{0,9}}\\?[\"']?)"
            r"(?!\[)(?=[^\s\"',]{0,99}\d)[^\s\"',;&\\]{8,}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(r"\b(?:sk|pk|rk|xai|gsk|hf|dm|pplx|r8|fw|nvapi|xoxb|xoxp|ghp|gho|ghs|github_pat)[-_][\w-]{12,}"),
        REDACTED,
    ),
    (
        re.compile(r"\bAIza[\w-]{20,}|\bAQ\.[\w-]{20,}|\bya29\.[\w.-]{10,}|\bGOCSPX-[\w-]{10,}|\b1//[\w-]{20,}"),
        REDACTED,
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), REDACTED),
    (re.compile(r"\beyJ[\w-]{8,999}+\.[\w-]{8,}(?:\.[\w-]*)?"), REDACTED),
    (re.compile(r"(?<![\w-])(?=[\w-]*[a-z])(?=[\w-]*[A-Z])(?=[\w-]*\d)[\w-]{40,}"), REDACTED),
)
"""Patterns of secrets, the most specific first: labelled as one, with a vendor's prefix, or just long and random.

None may scan far ahead from each position, because clients control the text: the time must stay linear.
"""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without the `known` secrets and without anything that looks like a secret."""
    text = redact_known(text, known)
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact_known(text: str, secrets: Iterable[str]) -> str:
    """Return a text without the given secrets."""
    # The longest first, because one secret may be a prefix of another.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, REDACTED)
    return text


def is_secret_header(name: str) -> bool:
    """Return whether a header of this name contains a credential, also one of an API that is not known."""
    return _SECRET_HEADER.search(name) is not None and name not in _ALLOWED_KEY_HEADERS


def credentials_of(outgoing: Outgoing) -> frozenset[str]:
    """Return the credentials in a request, with and without their scheme, in case the upstream quotes them."""
    values = [value for name, value in outgoing.headers if is_secret_header(name)]
    return frozenset(secret for value in values for secret in (value, value.rpartition(" ")[2]))
