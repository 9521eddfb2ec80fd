"""The model behind the four APIs: a small, honest one that needs no weights."""

from dragoman.simulator.model.answering import answer
from dragoman.simulator.model.usage import PrefixMemory, ask_tokens, usage_of

__all__ = ["PrefixMemory", "answer", "ask_tokens", "usage_of"]
