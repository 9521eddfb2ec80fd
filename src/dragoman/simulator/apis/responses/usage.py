"""Tokens as the vendor counts them."""

from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Usage


def usage_of(usage: Usage) -> Json:
    """Count as the vendor does: input with what was cached, output with what was thought."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.input + usage.output,
    }
