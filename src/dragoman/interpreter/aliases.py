"""Ids and names a target does not accept get a stand-in: deterministic, injective, the same on call and result.

Legal ones pass unchanged. A stand-in keeps a readable head and ends in a hash of the original, so two originals never
meet and the same history is translated to the same bytes on every turn.
"""

import re
from functools import lru_cache
from hashlib import blake2b, sha256

from dragoman.core.traits import Traits

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]+")


def digest(text: str, length: int) -> str:
    """Return `length` hexadecimal digits that stand for `text`."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def name_alias(name: str, traits: Traits) -> str:
    """Return `name` if the target takes it, else its stand-in."""
    return _name_alias(name, traits.name_first_digit, traits.name_symbols, traits.name_max)


@lru_cache(maxsize=8192)
def _name_alias(name: str, first_digit: bool, symbols: str, longest: int) -> str:
    first = "A-Za-z0-9_-" if first_digit else "A-Za-z_"
    if re.fullmatch(rf"[{first}][A-Za-z0-9{re.escape(symbols)}]{{0,{longest - 1}}}", name):
        return name
    head = _ILLEGAL.sub("_", name)
    if not head or not (first_digit or head[0].isalpha() or head[0] == "_"):
        head = "_" + head
    return f"{head[: longest - 9]}_{digest(name, 8)}"


def id_alias(call_id: str, traits: Traits) -> str:
    """Return `call_id` if the target takes it, else its stand-in."""
    if traits.id_exact is not None:
        legal = len(call_id) == traits.id_exact and call_id.isalnum() and call_id.isascii()
        return call_id if legal else digest(call_id, traits.id_exact)
    return plain_id(call_id, traits.id_max)


def plain_id(call_id: str, longest: int = 64) -> str:
    """Return `call_id` if it is of letters, digits, `_` and `-` only, else its stand-in."""
    if len(call_id) <= longest and _LEGAL_ID.fullmatch(call_id):
        return call_id
    return f"{_ILLEGAL.sub('_', call_id)[:15]}_{digest(call_id, 24)}"


def minted_id(prefix: str, *seed: object) -> str:
    """Make an id in a client's own style from what identifies the call."""
    text = "\x00".join(map(str, seed))
    return prefix + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def call_id_stem(reply_id: str, salt: str) -> str:
    """Return what the ids of all calls of one reply begin with that came without one."""
    return blake2b(f"{reply_id}\x00{salt}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()[:20]
