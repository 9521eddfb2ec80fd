"""Signing and verification of thinking blocks.

A signature is one token over the text of the block. The newest models bind it to the conversation and to themselves
too: a second token over everything before it, and a third over the model, follow the first. What the vendor does not
count as a change is excluded from that: cache breakpoints, other thinking blocks, deferred tools, the order of
members, and the line that Claude Code puts before its instructions. A thinking block of another model is no error:
the newest models drop it.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, cast

from dragoman.simulator.apis.conversation import TokenSigner, Verdict
from dragoman.simulator.apis.messages.models import ClaudeModel
from dragoman.simulator.apis.messages.request import Block, MessagesRequest
from dragoman.simulator.apis.rule import cache_per_request

_TOKEN = 72
"""Length of one token in characters."""
REDACTED = "redacted"
THOUGHTS = ("thinking", "redacted_thinking")
_BILLING = "x-anthropic-billing-header:"


def sign(text: str, binding: tuple[str, ClaudeModel] | None, signer: TokenSigner, nonce: str) -> str:
    """Sign the text of a thinking block, and what it is bound to: the conversation before it and the model."""
    token = signer.issue(text, nonce)
    if binding is None:
        return token
    prefix, model = binding
    return token + signer.issue(prefix, f"{nonce} prefix") + signer.issue(model.canonical_name, f"{nonce} model")


def verify_thinking(signature: str, text: str, signer: TokenSigner) -> Verdict:
    """Verify the signature of a text; text added to a block that was signed without any is ignored."""
    token, *bound = _split_tokens(signature)
    verdict = signer.judge(token, text)
    if verdict == "moved" and signer.judge(token, "") == "genuine":
        verdict = "genuine"
    if verdict != "foreign" and (len(bound) not in {0, 2} or any(signer.judge(one, "") != "moved" for one in bound)):
        return "altered"
    return verdict


def _split_tokens(signature: str) -> list[str]:
    return [signature[at : at + _TOKEN] for at in range(0, len(signature), _TOKEN)] or [""]


@cache_per_request
def find_thoughts(request: MessagesRequest) -> Iterator[tuple[Block, str, str]]:
    """Return every thinking block, its signature, and the text that is signed."""
    for block in request.blocks(*THOUGHTS):
        is_open = block.kind == "thinking"
        yield block, block.members["signature" if is_open else "data"], block.get("thinking") if is_open else REDACTED


def iterate_other_conversation_thoughts(request: MessagesRequest) -> Iterator[Block]:
    """Yield the simulator's thinking blocks of another conversation; only the newest models check that."""
    found = find_thoughts(request) if request.model.is_newest else []
    before = digest_prefixes(request) if found else []
    for block, signature, _thinking in found:
        if (
            _is_from_same_model(signature, request)
            and request.signer.judge(_split_tokens(signature)[1], before[block.turn]) == "moved"
        ):
            yield block


def iterate_other_model_thoughts(request: MessagesRequest) -> Iterator[Block]:
    """Yield the simulator's thinking blocks of another model: the newest models drop them."""
    for block, signature, thinking in find_thoughts(request) if request.model.is_newest else ():
        if (
            not _is_from_same_model(signature, request)
            and verify_thinking(signature, thinking, request.signer) == "genuine"
        ):
            yield block


def _is_from_same_model(signature: str, request: MessagesRequest) -> bool:
    return request.signer.judge(signature[2 * _TOKEN :], request.model.canonical_name) == "genuine"


def digest_prefixes(request: MessagesRequest) -> list[str]:
    """Return a digest of everything before each turn, and finally before the answer."""
    running = hashlib.sha256()
    system: Any = request.get("system")
    texts: list[str] = [system] if isinstance(system, str) else [block["text"] for block in system or ()]
    _update_digest(running, [text for text in texts if not text.startswith(_BILLING)])
    _update_digest(running, [tool for tool in request.list("tools") if not tool.get("defer_loading")])
    found: list[str] = []
    for turn in request.turns:
        found.append(running.hexdigest())
        _update_digest(running, [turn.role, *(block.members for block in turn.blocks if block.kind not in THOUGHTS)])
    return [*found, running.hexdigest()]


def _update_digest(digest: Any, values: list[Any]) -> None:
    digest.update(json.dumps(_normalise(values), sort_keys=True, separators=(",", ":")).encode())


def _normalise(value: Any) -> Any:
    """Drop cache breakpoints and nulls, and write the text of a result in one form."""
    if isinstance(value, list):
        return [_normalise(part) for part in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value).items()
    plain = {name: _normalise(part) for name, part in members if name != "cache_control" and part is not None}
    if plain.get("type") == "tool_result" and isinstance(plain.get("content"), str):
        plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain
