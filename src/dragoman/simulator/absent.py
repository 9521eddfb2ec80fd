"""Models that do not exist, at any vendor: any other name is answered, since a client may know more than we do."""

import re

_ABSENT = re.compile(r"no-such|non-?existent|does-not-exist")
SAYS = "The model exists; one with `no-such`, `non-existent`, `nonexistent` or `does-not-exist` in its name does not."
"""The rule as every API lists it. The words are those of recorded refusals."""


def is_absent(model: str) -> bool:
    """Tell whether a model shall not exist."""
    return _ABSENT.search(model) is not None
