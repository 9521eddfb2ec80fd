"""A translation must not depend on the caches of earlier ones."""

from typing import Any

from dragoman.interpreter.translation import Translation


def assert_alike(known: Translation | tuple[str, ...], new: Translation | tuple[str, ...]) -> None:
    """Compare a translation with caches to one without; errors are compared by their messages."""
    if isinstance(new, tuple) or isinstance(known, tuple):
        assert known == new
        return
    assert known.call == new.call
    assert known.losses == new.losses
    assert known.undo == new.undo
    assert known.request == new.request
    assert _places(known) == _places(new)


def _places(result: Translation) -> list[Any]:
    """Return the pointers and spellings of messages and parts, which equality of messages ignores."""
    return [
        (message.where, message.spelling, [(part.where, part.spelling) for part in message.parts])
        for message in result.request.messages
    ]
