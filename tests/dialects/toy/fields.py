"""The request fields other than lines and tools. `wire` names the core field of each member, once."""

from dialects.toy.wire import ToyCall, ToyRequest, ToyResult, ToyTool
from dragoman.core.request import ToolChoice
from dragoman.wire.shape import CoreFields, core_pointers

POINTERS = {
    **core_pointers(ToyRequest),
    **core_pointers(ToyTool),
    **core_pointers(ToyCall),
    **core_pointers(ToyResult),
}
SAMPLING_FIELDS = CoreFields(ToyRequest, "sampling")
"""Read and written by copying."""


def read_choice(shape: ToyRequest) -> ToolChoice | None:
    """Read whether a tool must be called."""
    return None if shape.pick is None else ToolChoice(mode=shape.pick)
