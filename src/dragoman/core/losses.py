"""What a translation could not say."""

from typing import Literal

from msgspec import Struct


class Loss(Struct, frozen=True, order=True, gc=False):
    """One thing the target cannot say, at `where` (JSON pointer) in the document that was translated."""

    where: str
    what: str
    kind: Literal["dropped", "approximated"]
