"""Fields that two dialects share: those of one vendor by name and meaning, and words that callers of one borrow."""

from dragoman.core.value import Extras
from dragoman.wire import json

_OPENAI = frozenset(
    {
        "/service_tier",
        "/store",
        "/prompt_cache_key",
        "/prompt_cache_options",
        "/prompt_cache_retention",
        "/moderation",
        "/user",
        "/safety_identifier",
    }
)
_SHARED: dict[frozenset[str], frozenset[str]] = {frozenset({"chat", "responses"}): _OPENAI}


_SHARED_IN_PARTS: dict[tuple[str, str], dict[str, str]] = {
    ("chat", "responses"): {"/image_url/detail": "/detail"},
    ("responses", "chat"): {"/detail": "/image_url/detail"},
}


_BORROWED_MARK = "/cache_control"
"""A cache mark in Anthropic's words, which many callers of Chat write too."""


def borrowed_mark(extras: Extras) -> tuple[str | None, str]:
    """Return place and lifetime of a cache mark in another vendor's words; no place if there is none."""
    raw = extras.fields.get(_BORROWED_MARK)
    match json.peek(raw) if raw is not None else None:
        case {"type": "ephemeral", "ttl": str(lifetime), **rest} if not rest:
            return _BORROWED_MARK, lifetime
        case {"type": "ephemeral", **rest} if not rest:
            return _BORROWED_MARK, ""
        case _:
            return None, ""


def shared_in_parts(source: str, target: str) -> dict[str, str]:
    """Return the fields of a part that mean the same in both dialects, by their pointers in each."""
    return _SHARED_IN_PARTS.get((source, target), {})


def shared_fields(source: str, target: str) -> frozenset[str]:
    """Return the pointers of request fields that mean the same in both dialects."""
    return _SHARED.get(frozenset({source, target}), frozenset())
