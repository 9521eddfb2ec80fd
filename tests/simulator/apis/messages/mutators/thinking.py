"""Mutators for the rules about thinking: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.messages.models import ClaudeModel, parse_model_name
from dragoman.simulator.apis.messages.signatures import sign
from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import change, ends_with, onto, with_exchange
from simulator.mutation import Mutate

_BINDS = "claude-opus-5-5"


def _thoughtless(body: Json, _: Random) -> Iterator[Json]:
    if any(message["role"] == "assistant" for message in body["messages"]):
        return
    for moved in onto(body, "claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 1024}):
        yield from with_exchange(moved)


def _thought(words: str = "Hm.", signed: str = "Hm.", bound: tuple[str, ClaudeModel] | None = None) -> Json:
    """Sign like a simulator with the default seed."""
    return {"type": "thinking", "thinking": words, "signature": sign(signed, bound, TokenSigner(), "mutation")}


def _with_answer(body: Json, *blocks: Json) -> Iterator[Json]:
    if ends_with(body) == "user" and body.get("thinking", {}).get("type") != "enabled":
        answer = {"role": "assistant", "content": list(blocks)}
        yield change(body, messages=[*body["messages"], answer, {"role": "user", "content": "Go on."}])


_WORDS: Json = {"type": "text", "text": "Well."}


def _thinks_last(body: Json, _: Random) -> Iterator[Json]:
    yield from _with_answer(body, _WORDS, _thought())
    used: Json = {"type": "tool_use", "id": "toolu_01Extra", "name": "dragoman_extra", "input": {}}
    for once in with_exchange(body):
        if once.get("thinking", {}).get("type") != "enabled":
            once["messages"][-2]["content"] = [used, _thought()]
            yield once


def _alter(body: Json, chance: Random) -> Iterator[Json]:
    thought = _thought()
    token = thought["signature"]
    at = chance.randrange(32, 48)
    other = "A" if token[at] != "A" else "B"
    for signature in (token[:at] + other + token[at + 1 :], token[:-4], "", "bm90IG91cnMgYXQgYWxs!"):
        yield from _with_answer(body, {**thought, "signature": signature}, _WORDS)


def _edit(body: Json, _: Random) -> Iterator[Json]:
    yield from _with_answer(body, _thought("Hm, hm.", "Hm."), _WORDS)


def _repeat(body: Json, _: Random) -> Iterator[Json]:
    for once in _with_answer(body, _thought(), _WORDS):
        yield from _with_answer(once, _thought(), _WORDS)


def _bind_to_other_model(body: Json, _: Random) -> Iterator[Json]:
    bound = ("another conversation", parse_model_name(_BINDS))
    for moved in onto(body, _BINDS):
        yield from _with_answer(moved, _thought(bound=bound), _WORDS)


def _sign_again(body: Json, _: Random) -> Iterator[Json]:
    search: Json = {"type": "server_tool_use", "id": "srvtoolu_01Extra", "name": "web_search", "input": {"query": "a"}}
    page = {"type": "web_search_result", "title": "A", "url": "https://example.com/a", "page_age": None}
    found = {**page, "encrypted_content": TokenSigner().issue("https://example.com/b", "mutation")}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01Extra", "content": [found]}
    yield from _with_answer(body, search, result, _WORDS)


MUTATORS: dict[str, Mutate] = {
    "messages.thinking-first": _thoughtless,
    "messages.thinking-last": _thinks_last,
    "messages.search-sealed": _sign_again,
    "messages.thinking-signature": _alter,
    "messages.thinking-modified": _edit,
    "messages.thinking-reused": _repeat,
    "messages.thinking-prefix": _bind_to_other_model,
}
