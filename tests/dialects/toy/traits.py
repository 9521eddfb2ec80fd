"""What Toy's models accept."""

from dialects.toy.wire import ISSUER, NAME
from dragoman.core.traits import Traits

ROWS = (
    (
        "*",
        Traits(
            dialect=NAME,
            issuer=ISSUER,
            turns="items",
            sampling=frozenset({"temperature", "max_tokens"}),
            failed_results=True,
        ),
    ),
)
