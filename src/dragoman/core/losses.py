"""Losses: what a translation drops or approximates because the target cannot express it."""

from typing import Literal

from msgspec import Struct


class Loss(Struct, frozen=True, order=True, gc=False):
    """One thing that the target cannot express, at `where` (JSON pointer) in the document that was translated."""

    where: str
    what: str
    kind: Literal["dropped", "approximated"]
