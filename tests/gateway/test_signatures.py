"""Signatures are looked up in one query, separately for each owner, and none are found after a store error."""

import asyncio

import pytest

from dragoman.core.parts import Signature
from dragoman.gateway.signatures import SignatureStore
from dragoman.interpreter.signature_recorder import SignedSection
from dragoman.interpreter.translation import PlacedSignature, SavedSignatures
from dragoman.sessions.signatures import SignatureRow
from dragoman.sessions.values import Unavailable


class Store:
    """Has the signature of one call, and records the queries."""

    def __init__(self) -> None:
        self.asked = []
        self.fails = False
        self.free = asyncio.Event()
        self.free.set()

    async def find(self, owner, ids):
        self.asked.append((owner, tuple(ids)))
        await self.free.wait()
        if self.fails:
            raise Unavailable("gone")
        return {"signed": {"digest": SignatureRow("google", "value")}} if "signed" in ids and owner == "a" else {}


@pytest.fixture
def store():
    return Store()


def test_ids_that_arrive_during_a_lookup_are_looked_up_together(store):
    async def run():
        signature_store = SignatureStore(store)
        store.free.clear()
        lookups = [
            asyncio.create_task(signature_store.look_up("a", [name])) for name in ("one", "two", "signed", "three")
        ]
        await asyncio.sleep(0)
        store.free.set()
        assert await asyncio.gather(*lookups) == [False, False, True, False]

    asyncio.run(run())
    assert store.asked == [("a", ("one",)), ("a", ("two", "signed", "three"))]


def test_owners_do_not_wait_for_each_other_and_share_nothing(store):
    async def run():
        signature_store = SignatureStore(store)
        store.free.clear()
        lookups = [asyncio.create_task(signature_store.look_up(owner, ["signed"])) for owner in ("a", "b")]
        await asyncio.sleep(0)
        assert store.asked == [("a", ("signed",)), ("b", ("signed",))]
        store.free.set()
        assert await asyncio.gather(*lookups) == [True, False]
        assert signature_store.signer_for("a").find_signatures("signed") == {
            "digest": SavedSignatures(Signature("google", "value"))
        }
        assert signature_store.signer_for("b").find_signatures("signed") == {}

    asyncio.run(run())


def test_a_lookup_that_is_cancelled_leaves_its_ids_to_the_others(store):
    async def run():
        signature_store = SignatureStore(store)
        store.free.clear()
        first = asyncio.create_task(signature_store.look_up("a", ["one"]))
        await asyncio.sleep(0)
        others = [asyncio.create_task(signature_store.look_up("a", [name])) for name in ("signed", "two")]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        store.free.set()
        assert await asyncio.gather(*others) == [True, False]

    asyncio.run(run())


def test_nothing_is_known_after_an_error_of_the_store(store):
    async def run():
        signature_store = SignatureStore(store)
        store.fails = True
        assert not await signature_store.look_up("a", ["signed"])
        assert signature_store.signer_for("a").find_signatures("signed") is None
        store.fails = False
        assert await signature_store.look_up("a", ["signed"])

    asyncio.run(run())


class Recorder(Store):
    """Remembers what is saved, and for whom."""

    def __init__(self) -> None:
        super().__init__()
        self.saved = {}

    async def save(self, owner, rows):
        self.saved.update({(owner, *key): row for key, row in rows.items()})

    async def has_any(self, owner):
        self.asked.append(owner)
        return any(saved[0] == owner for saved in self.saved)


def section(name, value, text="Thinking."):
    placed = PlacedSignature("reasoning", Signature("anthropic", value), texts=(text,))
    return SignedSection(name, "digest", SavedSignatures(None, (placed,)))


def test_what_is_saved_is_known_at_once_and_only_to_its_owner():
    async def run():
        table = Recorder()
        signature_store = SignatureStore(table)
        assert signature_store.signer_for("a").is_empty
        await signature_store.save("a", [section("one", "value")])
        signer = signature_store.signer_for("a")
        assert not signer.is_empty
        assert await signer.has_any()
        assert table.asked == []
        assert signer.find_signatures("one")["digest"].placed[0].texts == ("Thinking.",)
        assert signature_store.signer_for("b").find_signatures("one") is None
        assert not await signature_store.signer_for("b").has_any()

    asyncio.run(run())


def test_reasoning_that_is_too_large_is_not_stored():
    async def run():
        table = Recorder()
        signature_store = SignatureStore(table)
        await signature_store.save("a", [section("large", "v", "x" * (1 << 20)), section("small", "v")])
        assert table.saved.keys() == {("a", "small", "digest")}
        assert signature_store.signer_for("a").find_signatures("large") == {}

    asyncio.run(run())


def test_the_cache_is_limited_by_bytes_and_forgets_the_oldest():
    async def run():
        signature_store = SignatureStore(Recorder())
        for number in range(200):
            await signature_store.save("a", [section(f"call {number}", "v", "x" * (1 << 19))])
        signer = signature_store.signer_for("a")
        kept = [number for number in range(200) if signer.find_signatures(f"call {number}") is not None]
        assert kept == list(range(kept[0], 200))
        assert 100 < len(kept) < 129

    asyncio.run(run())


def test_calls_that_repeat_an_id_do_not_grow_its_entry_without_limit():
    async def run():
        signature_store = SignatureStore(Recorder())
        for number in range(500):
            one = section("same", "v")
            await signature_store.save("a", [SignedSection(one.id, f"{number}", one.saved)])
        assert len(signature_store.signer_for("a").find_signatures("same")) == 64

    asyncio.run(run())
