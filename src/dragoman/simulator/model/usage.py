"""Count tokens as if four characters were one, and remember prefixes of conversations as vendors' caches do."""

import hashlib
from collections import OrderedDict

from dragoman.simulator.model.schema import encode
from dragoman.simulator.talk import Answer, Ask, Call, Usage

CHARACTERS = 4
_PER_TURN = 4
_PER_TOOL = 8
_PER_CALL = 8
_PER_MEDIUM = 258


def text_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return -(-len(text) // CHARACTERS)


def call_tokens(call: Call) -> int:
    """Count the tokens of a call."""
    return _PER_CALL + text_tokens(call.name) + text_tokens(_text(call.arguments))


def ask_tokens(ask: Ask) -> int:
    """Count the tokens of a request."""
    return sum(count for count, _ in _parts(ask))


def usage_of(ask: Ask, answer: Answer, memory: "PrefixMemory | None" = None) -> Usage:
    """Count the tokens of a request and its answer."""
    parts = _parts(ask)
    thought = text_tokens(answer.thought)
    return Usage(
        input=sum(count for count, _ in parts),
        output=thought + text_tokens(answer.text + answer.refusal) + sum(map(call_tokens, answer.calls)),
        cached=memory.recall(ask.model, parts) if memory is not None else 0,
        thought=thought,
    )


class PrefixMemory:
    """Prefixes of conversations that were seen lately, at most `size` of them.

    A prefix is the tools and the turns up to one of them. As with the vendors, one that has fewer than `least` tokens
    is not cached, and at least one token is always read anew.
    """

    def __init__(self, size: int = 4096, least: int = 1024) -> None:
        self._size = size
        self._least = least
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def recall(self, model: str, parts: "list[tuple[int, str]]") -> int:
        """Return how many tokens of a conversation were seen before, and remember all of it."""
        running = hashlib.blake2b(model.encode(errors="replace"), digest_size=16)
        tokens = cached = 0
        for count, text in parts:
            running.update(text.encode(errors="replace") + b"\0")
            tokens += count
            if tokens < self._least:
                continue
            key = running.digest()
            cached = tokens if key in self._seen else cached
            self._seen[key] = None
            self._seen.move_to_end(key)
            if len(self._seen) > self._size:
                self._seen.popitem(last=False)
        return min(cached, max(0, tokens - 1))


def _parts(ask: Ask) -> list[tuple[int, str]]:
    """Return what a request is made of, in the order vendors read it: tools, then turns."""
    tools = "".join(f"{tool.name}{tool.description}{_text(tool.schema)}" for tool in ask.tools)
    parts = [(text_tokens(tools) + _PER_TOOL * len(ask.tools), tools)] if tools else []
    for turn in ask.turns:
        calls = "".join(call.name + _text(call.arguments) for call in turn.calls)
        results = "".join(result.name + result.text for result in turn.results)
        text = turn.role + turn.text + calls + results
        parts.append((_PER_TURN + text_tokens(text) + _PER_MEDIUM * len(turn.media), text))
    return parts


def _text(value: dict[str, object] | str) -> str:
    return value if isinstance(value, str) else encode(value).decode()
