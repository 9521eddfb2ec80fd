"""The type variable of an agent's output; type checkers take an agent without `output_type` for one of texts.

`TypeForm` (PEP 747) is what `output_type` takes: a class, and also a union or a `Literal`, which are no `type[…]`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeForm, TypeVar

    OutputT = TypeVar("OutputT", default=str)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")
    TypeForm = type

__all__ = ["OutputT", "TypeForm"]
