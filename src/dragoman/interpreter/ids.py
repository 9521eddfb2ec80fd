"""Ids of calls and replies: aliases for those that a target does not accept, and generated ones.

An alias is deterministic and injective, and the same on call and result; valid ids are not changed. It starts with a
readable part of the original and ends in a hash of it, so that the same history is translated to the same bytes on
every turn.
"""

import re
from hashlib import blake2b, sha256

from dragoman.core.parts import ToolCall
from dragoman.core.traits import Traits

ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_GENERATED_ID = re.compile(r"|.*[0-9a-f]{24}", re.DOTALL)
"""No id, a generated one or an alias."""
_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]+")


def hash_text(text: str, length: int) -> str:
    """Return the first `length` hexadecimal digits of a hash of `text`."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def alias_id(call_id: str, traits: Traits) -> str:
    """Return `call_id` if the target takes it, else its alias."""
    if traits.id_exact is not None:
        legal = len(call_id) == traits.id_exact and call_id.isalnum() and call_id.isascii()
        return call_id if legal else hash_text(call_id, traits.id_exact)
    return to_plain_id(call_id, traits.id_max)


def to_plain_id(call_id: str, max_length: int = 64) -> str:
    """Return `call_id` if it is of letters, digits, `_` and `-` only, else its alias."""
    if len(call_id) <= max_length and _LEGAL_ID.fullmatch(call_id):
        return call_id
    return f"{ILLEGAL.sub('_', call_id)[:15]}_{hash_text(call_id, 24)}"


def is_given_id(call: ToolCall, traits: Traits) -> bool:
    """Return whether the target's vendor gave a call its id: by the form of the id, or because it signed the call.

    A signed call of a vendor that gave no id has one that the gateway generated.
    """
    if re.fullmatch(traits.given_ids, call.id):
        return bool(call.id)
    is_signed = call.signature is not None and call.signature.issuer == traits.issuer
    return is_signed and _GENERATED_ID.fullmatch(call.id) is None


def generate_id(prefix: str, *seed: object) -> str:
    """Return an id with a prefix in the client's style, hashed from the values in `seed`."""
    text = "\x00".join(map(str, seed))
    return prefix + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def build_call_id_stem(reply_id: str, salt: str) -> str:
    """Return the common start of the generated ids of one reply's calls."""
    return blake2b(f"{reply_id}\x00{salt}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()[:20]
