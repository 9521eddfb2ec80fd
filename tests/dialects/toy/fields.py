"""The request fields other than lines and tools. `wire` names the core field of each member, once."""

from dialects.toy.wire import CallLine, RequestShape, ResultLine, ToolShape
from dragoman.core.request import ToolChoice
from dragoman.wire.shape import CoreFields, core_pointers

POINTERS = {
    **core_pointers(RequestShape),
    **core_pointers(ToolShape),
    **core_pointers(CallLine),
    **core_pointers(ResultLine),
}
SAMPLING_FIELDS = CoreFields(RequestShape, "sampling")
"""Read and written by copying."""


def read_choice(shape: RequestShape) -> ToolChoice | None:
    """Read whether a tool must be called."""
    return None if shape.pick is None else ToolChoice(mode=shape.pick)
