"""Dialects of one vendor share fields by name and meaning: those cross over untouched."""

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


def shared_in_parts(source: str, target: str) -> dict[str, str]:
    """Return the fields of a part that mean the same in both dialects, by their pointers in each."""
    return _SHARED_IN_PARTS.get((source, target), {})


def shared_fields(source: str, target: str) -> frozenset[str]:
    """Return the pointers of request fields that mean the same in both dialects."""
    return _SHARED.get(frozenset({source, target}), frozenset())
