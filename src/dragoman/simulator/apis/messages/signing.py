"""How thoughts are signed and judged.

A signature is one token over the words of the thought. The newest models bind it to the conversation and to
themselves too: a second token over everything before it, and a third over the model, follow the first. What the vendor
does not count as a change is left out of that: breakpoints of the cache, other thoughts, deferred tools, the order of
members, and the line that Claude Code puts before its instructions. A thought of another model is no error: the newest
ones leave it out.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.simulator.apis.messages.blocks import RedactedThinking, Thinking
from dragoman.simulator.apis.messages.models import Model
from dragoman.simulator.apis.messages.reading import Placed, Reading
from dragoman.simulator.signatures import Signer, Verdict

_TOKEN = 72
"""Characters of one token."""
REDACTED = "redacted"
BINDING = "thinking-binding-controls-"
"""The beta in which a reply tells of the thoughts that were left out."""
_BILLING = "x-anthropic-billing-header:"


def sign(words: str, bound: tuple[str, Model] | None, signer: Signer, occasion: str) -> str:
    """Sign the words of a thought, and what it is bound to: the conversation before it and the model."""
    token = signer.issue(words, occasion)
    if bound is None:
        return token
    prefix, model = bound
    return token + signer.issue(prefix, f"{occasion} prefix") + signer.issue(model.line, f"{occasion} model")


def judge_words(signature: str, words: str, signer: Signer) -> Verdict:
    """Tell whether a signature is for these words; words put into a thought that came without are ignored."""
    token, *bound = _tokens(signature)
    verdict = signer.judge(token, words)
    if verdict == "moved" and signer.judge(token, "") == "genuine":
        verdict = "genuine"
    if verdict != "foreign" and (len(bound) not in {0, 2} or any(signer.judge(one, "") != "moved" for one in bound)):
        return "altered"
    return verdict


def _tokens(signature: str) -> list[str]:
    return [signature[at : at + _TOKEN] for at in range(0, len(signature), _TOKEN)] or [""]


def thoughts(reading: Reading) -> Iterator[tuple[int, Placed, str, str]]:
    """Return every thought: its turn, itself, its signature and the words that are signed."""
    for number, turn in enumerate(reading.turns):
        for placed in turn.blocks:
            match placed.block:
                case Thinking(thinking=words, signature=signature):
                    yield number, placed, signature, words
                case RedactedThinking(data=data):
                    yield number, placed, data, REDACTED
                case _:
                    pass


def drops_thoughts(reading: Reading) -> bool:
    """Whether thoughts of another conversation shall be left out rather than refused."""
    binding = getattr(reading.request.thinking, "block_binding", None)
    return binding is not None and binding.prefix_mismatch_behavior == "drop_block"


def bound_elsewhere(reading: Reading, signer: Signer) -> Iterator[Placed]:
    """Return the thoughts of ours that belong to another conversation; only the newest models look at that."""
    found = list(thoughts(reading)) if reading.model.newest else []
    before = prefixes(reading) if found else []
    for number, placed, signature, _words in found:
        if _is_own(signature, reading, signer) and signer.judge(_tokens(signature)[1], before[number]) == "moved":
            yield placed


def thought_elsewhere(reading: Reading, signer: Signer) -> Iterator[Placed]:
    """Return the thoughts of ours that another model had: the newest models leave them out."""
    for _number, placed, signature, words in thoughts(reading) if reading.model.newest else ():
        if not _is_own(signature, reading, signer) and judge_words(signature, words, signer) == "genuine":
            yield placed


def _is_own(signature: str, reading: Reading, signer: Signer) -> bool:
    return signer.judge(signature[2 * _TOKEN :], reading.model.line) == "genuine"


def prefixes(reading: Reading) -> list[str]:
    """Digest what stands before each turn, and at last before the answer."""
    running = hashlib.sha256()
    system = reading.request.system
    said = [system] if isinstance(system, str) else [block.text for block in system or ()]
    _add(running, [text for text in said if not text.startswith(_BILLING)])
    _add(running, [tool for tool in reading.tools if not getattr(tool, "defer_loading", None)])
    found: list[str] = []
    for turn in reading.turns:
        found.append(running.hexdigest())
        blocks = [placed.block for placed in turn.blocks]
        _add(running, [turn.role, *(block for block in blocks if not isinstance(block, Thinking | RedactedThinking))])
    return [*found, running.hexdigest()]


def _add(running: Any, values: list[Any]) -> None:
    plain = _plain(msgspec.to_builtins(values))
    running.update(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())


def _plain(value: Any) -> Any:
    """Leave out breakpoints, and write a result's words in one way."""
    if isinstance(value, list):
        return [_plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    members: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
    plain = {name: _plain(part) for name, part in members.items() if name != "cache_control"}
    if plain.get("type") == "tool_result" and isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain


def seal(content: str, signer: Signer, occasion: str) -> str:
    """Make what the vendor encrypts: only it can read that, and only it can tell that it was changed."""
    return signer.issue(content, occasion)
