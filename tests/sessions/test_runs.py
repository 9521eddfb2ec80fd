"""Runs of agents, on every database."""

from time import time
from uuid import uuid4

import pytest

from dragoman.sessions.runs import INTERRUPTED_AFTER, RunMessage
from dragoman.sessions.values import Conflict
from sessions.stored_runs import find_run


@pytest.fixture
def owner():
    return uuid4().hex


async def begin(store, owner, name="r"):
    await store.runs.begin(owner, name, "gemini-3-flash", b"first")
    await store.runs.add_entry(owner, name, 1, b"second")
    await store.runs.add_entry(owner, name, 2, b"third")


async def silent_for(store, owner, seconds):
    """Let a run be one of which nothing was heard for a while."""
    then = int(time() - seconds)
    await store._engine.write(lambda cursor: cursor.execute("UPDATE runs SET alive = ? WHERE owner = ?", then, owner))


def test_a_run_is_read_in_the_order_it_was_written(ask, owner):
    ask(lambda store: begin(store, owner))
    kept = ask(lambda store: find_run(store, owner, "r"))
    assert kept.entries == (b"first", b"second", b"third")
    assert (kept.status, kept.model, kept.summary) == ("running", "gemini-3-flash", b"{}")


def test_the_same_entry_again_changes_nothing(ask, owner):
    async def do(store):
        await begin(store, owner)
        await store.runs.add_entry(owner, "r", 2, b"another")
        return await find_run(store, owner, "r")

    assert ask(do).entries == (b"first", b"second", b"third")


def test_a_run_is_found_by_its_owner_only(ask, owner):
    ask(lambda store: begin(store, owner))
    assert ask(lambda store: find_run(store, "somebody else", "r")) is None
    assert ask(lambda store: find_run(store, owner, "another")) is None


def test_a_second_run_of_one_name_is_a_conflict(ask, owner):
    async def do(store):
        await begin(store, owner)
        with pytest.raises(Conflict):
            await store.runs.begin(owner, "r", "m", b"other")
        await store.runs.begin("somebody else " + owner, "r", "m", b"other")
        return await find_run(store, owner, "r")

    assert ask(do).entries[0] == b"first"


def test_a_run_without_heartbeats_is_interrupted_until_the_next_heartbeat(ask, owner):
    async def do(store):
        await begin(store, owner)
        result = [(await find_run(store, owner, "r")).status]
        await silent_for(store, owner, INTERRUPTED_AFTER + 5)
        result.append((await find_run(store, owner, "r")).status)
        await store.runs.update_heartbeat(owner, "r")
        return [*result, (await find_run(store, owner, "r")).status]

    assert ask(do) == ["running", "interrupted", "running"]


def test_a_run_that_is_over_stays_as_it_ended(ask, owner):
    async def do(store):
        await begin(store, owner)
        await store.runs.end(owner, "r", "finished", b'{"turns":2}')
        await store.runs.end(owner, "r", "cancelled", b"{}")
        await silent_for(store, owner, INTERRUPTED_AFTER + 5)
        return await find_run(store, owner, "r")

    kept = ask(do)
    assert (kept.status, kept.summary) == ("finished", b'{"turns":2}')


def test_one_entry_may_take_the_place_of_all(ask, owner):
    async def do(store):
        await begin(store, owner)
        await store.runs.replace_entries(owner, "r", 3, b"all")
        await store.runs.add_entry(owner, "r", 4, b"more")
        return await find_run(store, owner, "r")

    assert ask(do).entries == (b"all", b"more")


def test_a_run_is_forgotten_alone_or_when_it_is_old(ask, owner):
    async def do(store):
        await begin(store, owner)
        await begin(store, owner, "other")
        assert await store.runs.delete(owner, "r")
        assert not await store.runs.delete(owner, "r")
        assert (await find_run(store, owner, "other")).entries
        await store.purge(time() + 10)
        await begin(store, owner, "other")  # nothing of the old one stands in its way
        return await find_run(store, owner, "other")

    assert len(ask(do).entries) == 3


def test_a_run_may_reuse_the_name_of_a_finished_run_but_not_of_a_running_one(ask, owner):
    async def do(store):
        await begin(store, owner)
        with pytest.raises(Conflict):
            await store.runs.begin(owner, "r", "m", b"new", replaces_ended=True)
        await silent_for(store, owner, INTERRUPTED_AFTER + 5)
        await store.runs.begin(owner, "r", "m", b"new", replaces_ended=True)
        await store.runs.end(owner, "r", "completed", b"{}")
        await store.runs.begin(owner, "r", "m", b"newer", replaces_ended=True)
        return await find_run(store, owner, "r")

    assert (found := ask(do)).entries == (b"newer",)
    assert found.status == "running"


def test_how_far_a_run_is_is_seen_with_its_newest_entry_and_read_on_from_a_place(ask, owner):
    async def do(store):
        await begin(store, owner)
        seen = await store.runs.find_status(owner, "r")
        return seen, await store.runs.list_entries(owner, "r", 0), await store.runs.find_status(owner, "nothing")

    seen, entries, nothing = ask(do)
    assert (seen.status, seen.last) == ("running", b"third")
    assert entries == [(1, b"second"), (2, b"third")]
    assert nothing is None


def test_messages_reach_a_run_until_its_end_and_the_first_one_counts(ask, owner):
    async def list_messages(store):
        return [output for output in await store.runs.list_messages() if output.owner == owner]

    async def do(store):
        await begin(store, owner)
        first = RunMessage(owner, "r", "topic", b"yes")
        await store.runs.send_message(first)
        await store.runs.send_message(RunMessage(owner, "r", "topic", b"no"))
        assert await list_messages(store) == [first]
        await store.runs.end(owner, "r", "completed", b"{}")
        assert await list_messages(store) == []

    ask(do)
