"""Count tokens as four characters each, and simulate the vendors' prefix caches."""

import hashlib
from collections import OrderedDict

from msgspec.json import encode

from dragoman.simulator.apis.conversation import Answer, AnswerUsage, Call, ModelRequest

CHARACTERS_PER_TOKEN = 4
_PER_TURN = 4
_PER_TOOL = 8
_PER_CALL = 8
_PER_MEDIUM = 258


def count_text_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def count_call_tokens(call: Call) -> int:
    """Count the tokens of a call."""
    return _PER_CALL + count_text_tokens(call.name) + count_text_tokens(_encode_text(call.arguments))


def count_request_tokens(request: ModelRequest) -> int:
    """Count the tokens of a request."""
    return sum(count for count, _ in _split_parts(request))


def count_usage(request: ModelRequest, answer: Answer, cache: "PromptCache | None" = None) -> AnswerUsage:
    """Count the tokens of a request and its answer."""
    parts = _split_parts(request)
    thought = count_text_tokens(answer.thought)
    return AnswerUsage(
        input=sum(count for count, _ in parts),
        output=thought + count_text_tokens(answer.text + answer.refusal) + sum(map(count_call_tokens, answer.calls)),
        cached=cache.count_cached(request.model, parts) if cache is not None else 0,
        thought=thought,
    )


class PromptCache:
    """A cache of recent conversation prefixes, at most `size` of them.

    A prefix is the tools and the turns up to one of them. As with the vendors, a prefix of fewer than `min_tokens`
    tokens is not cached, and at least one token is always counted as uncached.
    """

    def __init__(self, size: int = 4096, min_tokens: int = 1024) -> None:
        self._size = size
        self._min_tokens = min_tokens
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def count_cached(self, model: str, parts: "list[tuple[int, str]]") -> int:
        """Return how many tokens of a conversation are cached, and cache all of it."""
        running = hashlib.blake2b(model.encode(errors="replace"), digest_size=16)
        tokens = cached = 0
        for count, text in parts:
            running.update(text.encode(errors="replace") + b"\0")
            tokens += count
            if tokens < self._min_tokens:
                continue
            key = running.digest()
            cached = tokens if key in self._seen else cached
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
        return min(cached, max(0, tokens - 1))


def _split_parts(request: ModelRequest) -> list[tuple[int, str]]:
    """Return the parts of a request in the order in which vendors process them: tools, then turns."""
    tools = "".join(f"{tool.name}{tool.description}{_encode_text(tool.schema)}" for tool in request.tools)
    parts = [(count_text_tokens(tools) + _PER_TOOL * len(request.tools), tools)] if tools else []
    for turn in request.turns:
        calls = "".join(call.name + _encode_text(call.arguments) for call in turn.calls)
        results = "".join(result.name + result.text for result in turn.results)
        text = turn.role + turn.text + calls + results
        parts.append((_PER_TURN + count_text_tokens(text) + _PER_MEDIUM * len(turn.media), text))
    return parts


def _encode_text(value: dict[str, object] | str) -> str:
    """Return a value as JSON, a text as it is; empty if the value cannot be encoded."""
    if isinstance(value, str):
        return value
    try:
        return encode(value).decode()
    except (ValueError, TypeError, RecursionError):
        return ""
