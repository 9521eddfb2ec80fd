"""Who works at something now, on every database."""

from time import time
from uuid import uuid4

import pytest

from dragoman.sessions.runs import INTERRUPTED_AFTER


@pytest.fixture
def owner():
    return uuid4().hex


def test_a_claim_is_one_holders_until_it_is_given_back(ask, owner):
    async def do(store):
        claims = store.claims
        assert await claims.acquire(owner, "c", "one")
        assert await claims.acquire(owner, "c", "one")
        assert not await claims.acquire(owner, "c", "two")
        await claims.release(owner, "c", "two")
        assert not await claims.acquire(owner, "c", "two")
        await claims.release(owner, "c", "one")
        assert await claims.acquire(owner, "c", "two")

    ask(do)


def test_claims_of_others_and_of_other_things_are_others(ask, owner):
    async def do(store):
        assert await store.claims.acquire(owner, "c", "one")
        assert await store.claims.acquire(owner, "d", "two")
        assert await store.claims.acquire("somebody else " + owner, "c", "two")

    ask(do)


def test_a_claim_without_heartbeats_can_be_taken_over(ask, owner):
    async def do(store):
        assert await store.claims.acquire(owner, "c", "one")
        then = int(time() - INTERRUPTED_AFTER - 5)
        change = "UPDATE claims SET alive = ? WHERE owner = ?"
        await store._engine.write(lambda cursor: cursor.execute(change, then, owner))
        assert await store.claims.acquire(owner, "c", "two")
        assert not await store.claims.acquire(owner, "c", "one")

    ask(do)
