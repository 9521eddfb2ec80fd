"""Calls whose signatures were not looked up count as unsigned, and that is cached only until they are found."""

import json
from typing import Any

import pytest

from dragoman.core.parts import Signature
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.signature_recorder import digest_call
from dragoman.interpreter.signatures import find_unknown_ids
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translate import Caches, parse_request
from dragoman.interpreter.translation import SavedSignatures, TranslationTask

MODEL = "gemini-3-flash"


class Signer:
    """Has the given signatures; other calls are unknown rather than unsigned."""

    scope = "owner"
    is_empty = False

    def __init__(self) -> None:
        self.known: dict[str, dict[str, SavedSignatures]] = {}

    def find_signatures(self, section_id: str) -> dict[str, SavedSignatures] | None:
        return self.known.get(section_id)


def body_of(rounds: int) -> bytes:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x" * 80}]
    for number in range(rounds):
        function = {"name": "f", "arguments": json.dumps({"n": number})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "done"})
    return json.dumps({"model": "m", "messages": messages}).encode()


class Conversation:
    """One conversation from Chat to Gemini, with caches of its own."""

    def __init__(self) -> None:
        self.caches = Caches(ToolsCache(), PrefixCache(min_bytes=64))
        self.signer = Signer()

    def parse(self, rounds: int):
        request = TranslationTask(
            Call(body_of(rounds)), dialect_named("chat"), dialect_named("gemini"), MODEL, signer=self.signer
        )
        return parse_request(request, self.caches)

    def unknown_ids(self, rounds: int) -> list[str]:
        pending = self.parse(rounds)
        return [*pending.unconfirmed, *find_unknown_ids(pending.unsigned, self.signer)]

    def signatures(self, rounds: int) -> list[str]:
        contents = json.loads(self.parse(rounds).translate(None).call.body)["contents"]
        parts = [part for content in contents for part in content["parts"] if "functionCall" in part]
        return [part.get("thoughtSignature", "") for part in parts]


SKIPPED = "skip_thought_signature_validator"


@pytest.fixture
def conversation() -> Conversation:
    """A conversation whose prefix is kept though none of its calls was looked up."""
    started = Conversation()
    for _ in range(2):
        assert started.signatures(3) == [SKIPPED] * 3
    return started


def test_unknown_calls_are_listed_until_their_signatures_are_found(conversation):
    assert set(conversation.unknown_ids(4)) == {f"call_{number}" for number in range(4)}
    conversation.signer.known.update({f"call_{number}": {} for number in range(3)})
    assert conversation.unknown_ids(4) == ["call_3"]


def test_a_prefix_is_not_used_once_one_of_its_calls_is_known_to_be_signed(conversation):
    digest = digest_call("f", '{"n": 1}')
    conversation.signer.known = {f"call_{number}": {} for number in range(3)}
    conversation.signer.known["call_1"] = {digest: SavedSignatures(Signature("google", "signed"))}
    assert conversation.signatures(4) == [SKIPPED, "signed", SKIPPED, SKIPPED]
    assert conversation.signatures(5) == [SKIPPED, "signed", SKIPPED, SKIPPED, SKIPPED]


def test_a_prefix_whose_calls_are_known_to_be_unsigned_serves_without_another_lookup(conversation):
    conversation.signer.known = {f"call_{number}": {} for number in range(4)}
    assert conversation.signatures(4) == [SKIPPED] * 4
    conversation.signer.known = {"call_4": {}}
    assert not set(conversation.unknown_ids(5)) - {"call_3"}


def test_after_a_store_error_every_request_looks_up_again(conversation):
    for _ in range(2):
        assert set(conversation.unknown_ids(4)) == {f"call_{number}" for number in range(4)}
        assert conversation.signatures(4) == [SKIPPED] * 4
