"""What a translation says must not depend on what is remembered of earlier ones."""

from typing import Any

from dragoman.interpreter.translation import Translation


def assert_alike(known: Translation | tuple[str, ...], new: Translation | tuple[str, ...]) -> None:
    """Hold what was said with memory to what is said without; a refusal is told by its words."""
    if isinstance(new, tuple) or isinstance(known, tuple):
        assert known == new
        return
    assert known.call == new.call
    assert known.losses == new.losses
    assert known.undo == new.undo
    assert known.request == new.request
    assert _places(known) == _places(new)


def _places(told: Translation) -> list[Any]:
    """Equality of messages does not look at where they stand."""
    return [
        (message.where, message.spelling, [(part.where, part.spelling) for part in message.parts])
        for message in told.request.messages
    ]
