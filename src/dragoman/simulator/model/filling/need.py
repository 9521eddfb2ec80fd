"""How much a value is needed, and the mark of one that is not there."""

from typing import Any, Final, Literal

Need = Literal[1, 2, 3]
NAMED: Final = 1
FITTING: Final = 2
NEEDED: Final = 3


class Absent:
    """The mark of a value that is left out: null is a value."""


ABSENT: Any = Absent()
