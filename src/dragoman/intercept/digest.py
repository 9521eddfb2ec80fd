"""Know something again without keeping it."""

from hashlib import blake2b


def digest_of(raw: bytes) -> bytes:
    """Return what is the same for the same bytes."""
    return blake2b(raw, digest_size=16).digest()
