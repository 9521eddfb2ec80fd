"""Signatures are looked up in one query, separately for each owner, and none are found after a store error."""

import asyncio

import pytest

from dragoman.core.parts import Signature
from dragoman.gateway.signatures import SignatureStore
from dragoman.interpreter.translation import SavedSignatures
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
