"""Take secrets out of text that somebody will read: known ones by their value, others by how they look.

Only known ones are taken out of what a client is told, for an id of the client's own may look like a key.
"""

import re
from collections.abc import Iterable

from dragoman.http.client import Outgoing

REDACTED = "[redacted]"
_MIN_SECRET = 6
"""A known secret that is shorter would be found in ordinary words."""
_CREDENTIAL_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"}
)
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
"""How secrets look, most telling first: named as one, with a vendor's mark, or merely long and without sense.

None may look far ahead from where the next try begins: clients choose what is read here.
"""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without what looks like a secret, and without the `known` ones."""
    text = redact_known(text, known)
    for look, instead in _SECRET_PATTERNS:
        text = look.sub(instead, text)
    return text


def redact_known(text: str, secrets: Iterable[str]) -> str:
    """Return a text without secrets that are known."""
    # The longest first: one secret may be the beginning of another.
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, REDACTED)
    return text


def credentials_of(outgoing: Outgoing) -> frozenset[str]:
    """Return the secrets that a request shows to an upstream, in case that repeats them."""
    shown = [value for name, value in outgoing.headers if name in _CREDENTIAL_HEADERS]
    return frozenset(word for value in shown for word in (value, value.rpartition(" ")[2]))
