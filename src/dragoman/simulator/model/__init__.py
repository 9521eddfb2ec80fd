"""The program that answers behind the four APIs; it is no model. Loaded with the first request."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.simulator.model.responder import answer
    from dragoman.simulator.model.usage import PrefixMemory, ask_tokens, usage_of

_HOMES = {"PrefixMemory": "usage", "answer": "responder", "ask_tokens": "usage", "usage_of": "usage"}

__all__ = ["PrefixMemory", "answer", "ask_tokens", "usage_of"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
