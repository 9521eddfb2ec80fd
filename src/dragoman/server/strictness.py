"""Whether a client wants what cannot be said without loss refused: its own word for that, in a header.

A word that nobody knows is refused: who asks for strictness must not go without it for a letter. A server that is
strict for everybody stays so.
"""

from dragoman.core.problems import Problem

_WORDS = (
    {"": False} | dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
)


def wants_strict(said: str, *, usual: bool) -> bool:
    """Read the header; "" for none."""
    wanted = _WORDS.get(said.strip().lower())
    if wanted is None:
        words = f"x-dragoman-strict is true or false (1, yes, on; 0, no, off), not {said!r}"
        raise Problem("invalid_request", words)
    return usual or wanted
