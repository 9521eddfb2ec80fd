"""Count tokens as if four characters were one, and remember prefixes of conversations as vendors' caches do."""

import hashlib
from collections import OrderedDict

import msgspec

from dragoman.simulator.talk import Answer, Ask, Call, Tool, Turn, Usage

CHARACTERS = 4
_PER_TURN = 4
_PER_TOOL = 8
_PER_CALL = 8
_PER_MEDIUM = 258


def text_tokens(text: str) -> int:
    """Tokens of a text."""
    return -(-len(text) // CHARACTERS)


def call_tokens(call: Call) -> int:
    """Tokens of a call."""
    arguments = call.arguments if isinstance(call.arguments, str) else _json(call.arguments)
    return _PER_CALL + text_tokens(call.name) + text_tokens(arguments)


def ask_tokens(ask: Ask) -> int:
    """Tokens of everything the model looks at."""
    return sum(count for count, _ in _parts(ask))


def usage_of(ask: Ask, answer: Answer, memory: "PrefixMemory | None" = None) -> Usage:
    """Count what an ask and its answer take."""
    cached = 0
    if memory is None:
        input_tokens = ask_tokens(ask)
    else:
        parts = _parts(ask)
        input_tokens = sum(count for count, _ in parts)
        cached = memory.recall(ask.model, parts)
    thought = text_tokens(answer.thought)
    output = thought + text_tokens(answer.text + answer.refusal) + sum(map(call_tokens, answer.calls))
    return Usage(input=input_tokens, output=output, cached=cached, thought=thought)


class PrefixMemory:
    """Beginnings of conversations that were seen lately, at most `size` of them.

    A beginning is the tools and the turns up to one of them. As with the vendors, one that has fewer than `least`
    tokens is not worth remembering, and at least one token is always read anew.
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
            running.update(text.encode(errors="replace"))
            running.update(b"\0")
            tokens += count
            if tokens < self._least:
                continue
            key = running.digest()
            if key in self._seen:
                cached = tokens
            self._remember(key)
        return min(cached, max(0, tokens - 1))

    def _remember(self, key: bytes) -> None:
        self._seen[key] = None
        self._seen.move_to_end(key)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)


def _parts(ask: Ask) -> list[tuple[int, str]]:
    """What an ask is made of, in the order vendors read it: tools, then turns."""
    tools = "".join(map(_tool, ask.tools))
    parts = [(text_tokens(tools) + _PER_TOOL * len(ask.tools), tools)] if tools else []
    for turn in ask.turns:
        text = _turn(turn)
        parts.append((_PER_TURN + text_tokens(text) + _PER_MEDIUM * len(turn.media), text))
    return parts


def _tool(tool: Tool) -> str:
    return f"{tool.name}{tool.description}{_json(tool.schema)}"


def _turn(turn: Turn) -> str:
    pieces = [turn.role, turn.text]
    for call in turn.calls:
        pieces += [call.name, call.arguments if isinstance(call.arguments, str) else _json(call.arguments)]
    for result in turn.results:
        pieces += [result.name, result.text]
    return "".join(pieces)


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, TypeError, RecursionError):
        return ""
