"""Losses: what a translation drops or approximates because the target cannot express it."""

from typing import Literal

from msgspec import Struct

Grade = Literal["material", "informational"]
"""A material loss changes what the model sees or does, or what the client can do with the answer.

An informational loss is a vendor's bookkeeping without a counterpart. The tables of the dialects list those; every
other loss is material.
"""
LossKind = Literal["dropped", "approximated"]
Strict = bool | Literal["all"]
"""Whether material losses are rejected, or all losses."""


class Loss(Struct, frozen=True, order=True, gc=False):
    """One thing that the target cannot express, at `where` (JSON pointer) in the document that was translated."""

    where: str
    what: str
    kind: LossKind
    grade: Grade = "material"
    leaves: int = 1
    """How many leaves of the document are at and below `where`."""

    def _repr_html_(self) -> str:
        """Show the loss in a notebook."""
        from dragoman.core.notebook import render_table  # noqa: PLC0415  only notebooks need it

        return render_table(("where", "loss", "grade", "what"), [(self.where, self.kind, self.grade, self.what)])
