"""The program that answers behind the four APIs; it is not a language model. Imported with the first request."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.simulator.model.responder import answer

__all__ = ["answer"]


def __getattr__(name: str) -> Any:
    if name != "answer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.responder").answer
