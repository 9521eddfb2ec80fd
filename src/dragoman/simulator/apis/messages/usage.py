"""What a reply says of its usage.

The vendor caches only what the caller marks: everything up to the last breakpoint is written to the cache, or comes
out of it when it was there before. What is too short is not cached.
"""

import msgspec

from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.model.usage import text_tokens
from dragoman.simulator.rule import Json
from dragoman.simulator.talk import Answer

_LEAST_CACHED = 1024


def silent(reading: Reading) -> bool:
    """Whether the request only fills the cache."""
    return reading.generating is not None and reading.generating.max_tokens == 0


def usage(answer: Answer, reading: Reading) -> Json:
    """Return the usage of a whole reply."""
    return {
        **input_usage(answer, reading),
        "output_tokens": 0 if silent(reading) else answer.usage.output,
        **about(),
        **output_details(answer),
    }


def about() -> Json:
    """Return how a reply was made."""
    return {"service_tier": "standard", "inference_geo": "global"}


def input_usage(answer: Answer, reading: Reading) -> Json:
    """Return what was read, and what of it the cache has to do with."""
    lifetime, behind = _last_breakpoint(reading) or ("5m", answer.usage.input)
    marked = answer.usage.input - behind
    marked = marked if marked >= _LEAST_CACHED else 0
    cached = min(answer.usage.cached, marked)
    written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
    written[f"ephemeral_{lifetime}_input_tokens"] = marked - cached
    return {
        "input_tokens": answer.usage.input - marked,
        "cache_creation_input_tokens": marked - cached,
        "cache_read_input_tokens": cached,
        "cache_creation": written,
    }


def _last_breakpoint(reading: Reading) -> tuple[str, int] | None:
    """Return how long the last breakpoint lives, and about how many tokens stand behind it; None without one."""
    automatic = reading.request.cache_control
    if automatic is not None:
        return automatic.lifetime, 0
    marks = list(reading.cache_marks())
    if not marks:
        return None
    where, mark = marks[-1]
    behind = 0
    for _turn, placed in reversed(list(reading.blocks())):
        if where.startswith(placed.where):
            break
        behind += text_tokens(msgspec.json.encode(placed.block).decode())
    return mark.lifetime, behind


def output_details(answer: Answer) -> Json:
    """Return how many tokens went into thoughts, and how often the web was searched."""
    details: Json = {"output_tokens_details": {"thinking_tokens": answer.usage.thought}}
    if searched(answer):
        details["server_tool_use"] = {"web_search_requests": 1, "web_fetch_requests": 0}
    return details


def searched(answer: Answer) -> bool:
    """Whether the web was searched for an answer."""
    return bool(answer.sources or answer.query)
