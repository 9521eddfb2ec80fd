"""What the store promises, on every database."""

import asyncio
from time import time
from uuid import uuid4

import pytest
from msgspec import structs

from dragoman.sessions.signatures import SignatureRow
from dragoman.sessions.values import Conflict, Conversation, Item, Turn


@pytest.fixture
def owner():
    return uuid4().hex


def turn(owner, *output, **more):
    items = tuple(Item(f"i-{text}", f'"{text}"'.encode(), is_output=at % 2 == 1) for at, text in enumerate(output))
    return Turn(owner=owner, dialect="chat", items=items, **more)


def texts_of(history):
    return [item.body.decode().strip('"') for item in history.items]


async def begin(store, owner, name="c"):
    first = turn(owner, "hi", "hello", conversation=name)
    await store.add_turn(first, Conversation(owner=owner, id=name, dialect="chat"))
    return first


def test_a_conversation_is_loaded_in_its_order(ask, owner):
    async def do(store):
        last = await begin(store, owner)
        for number in range(5):
            conversation, _ = await store.load_conversation(owner, "c")
            last = turn(owner, f"q{number}", f"a{number}", parent=last.key, conversation="c")
            await store.add_turn(last, conversation)
        return await store.load_conversation(owner, "c")

    conversation, history = ask(do)
    assert texts_of(history) == ["hi", "hello", *(f"{kind}{number}" for number in range(5) for kind in "qa")]
    assert conversation.revision == 6
    assert history.last is not None
    assert history.last.key == conversation.head


def test_what_is_kept_is_there_when_the_store_is_opened_again(ask, owner):
    ask(lambda store: begin(store, owner))
    _, history = ask(lambda store: store.load_conversation(owner, "c"))
    assert texts_of(history) == ["hi", "hello"]


def test_of_two_turns_on_one_revision_the_second_is_a_conflict_and_leaves_nothing(ask, owner):
    async def do(store):
        first = await begin(store, owner)
        seen = await store.find_conversation(owner, "c")
        await store.add_turn(turn(owner, "a", "b", parent=first.key), seen)
        late = turn(owner, "x", "y", parent=first.key, id="late")
        with pytest.raises(Conflict):
            await store.add_turn(late, seen)
        return (await store.load_conversation(owner, "c"))[1], await store.find_turn(owner, "late")

    history, late = ask(do)
    assert texts_of(history) == ["hi", "hello", "a", "b"]
    assert late is None


def test_of_two_that_begin_one_conversation_the_second_is_a_conflict(ask, owner):
    async def do(store):
        await begin(store, owner)
        with pytest.raises(Conflict):
            await begin(store, owner)

    ask(do)


def test_of_many_writers_at_once_one_wins_each_revision(ask, owner):
    async def do(store):
        await begin(store, owner)

        async def write(number):
            while True:
                conversation, history = await store.load_conversation(owner, "c")
                try:
                    await store.add_turn(turn(owner, f"w{number}", parent=history.last.key), conversation)
                except Conflict:
                    await asyncio.sleep(0)
                else:
                    return

        await asyncio.gather(*(write(number) for number in range(20)))
        return (await store.load_conversation(owner, "c"))[1]

    assert sorted(texts_of(ask(do))[2:]) == sorted(f"w{number}" for number in range(20))


def test_nothing_of_another_owner_is_found(ask, owner):
    async def do(store):
        first = await begin(store, owner)
        named = turn(owner, "q", "a", id="resp_1")
        await store.add_turn(named)
        other = uuid4().hex
        return (
            await store.load_conversation(other, "c"),
            await store.find_turn(other, "resp_1"),
            await store.find_items(other, ["i-hi"]),
            await store.load_history(other, first),
            await store.find_same_turn(other, "", ""),
            await store.delete_conversation(other, "c"),
        )

    conversation, named, items, history, same, forgotten = ask(do)
    assert (conversation, named, items, texts_of(history), same, forgotten) == (None, None, {}, [], None, False)


def test_a_turn_is_found_by_its_name_with_all_it_has(ask, owner):
    kept = turn(
        owner,
        "q",
        "a",
        id="resp_2",
        model="m",
        settings=b'{"tools":[]}',
        calls={"c1": "f"},
        digest="d",
        attempt="t",
        reply=b"{}",
        created=7,
    )

    async def do(store):
        await store.add_turn(kept)
        return await store.find_turn(owner, "resp_2")

    assert ask(do) == kept


def test_a_branch_can_continue_from_any_turn(ask, owner):
    async def do(store):
        first = turn(owner, "1", "2", id="r1", calls={"c1": "f"})
        left = turn(owner, "3", "4", id="r2", parent=first.key, calls={"c2": "g"})
        right = turn(owner, "5", "6", id="r3", parent=first.key)
        for one in (first, left, right):
            await store.add_turn(one)
        return await store.load_history(owner, left), await store.load_history(owner, right)

    left, right = ask(do)
    assert (texts_of(left), dict(left.calls)) == (["1", "2", "3", "4"], {"c1": "f", "c2": "g"})
    assert (texts_of(right), dict(right.calls)) == (["1", "2", "5", "6"], {"c1": "f"})


def test_a_deleted_turn_has_no_id_and_keeps_only_what_other_turns_need(ask, owner):
    async def do(store):
        first = turn(owner, "1", "2", id="r1")
        second = turn(owner, "3", "4", id="r2", parent=first.key)
        for one in (first, second):
            await store.add_turn(one)
        await store.delete_turn(first)
        gone = await store.find_turn(owner, "r1")
        history = await store.load_history(owner, second)
        await store.delete_turn(second)
        return gone, texts_of(history), await store.find_items(owner, ["i-3"])

    assert ask(do) == (None, ["1", "2", "3", "4"], {})


def test_an_item_can_be_taken_out_of_a_conversation(ask, owner):
    async def do(store):
        await begin(store, owner)
        conversation = await store.find_conversation(owner, "c")
        taken = await store.delete_item(conversation, "i-hi")
        again = await store.delete_item(await store.find_conversation(owner, "c"), "i-hi")
        return taken, again, texts_of((await store.load_conversation(owner, "c"))[1])

    assert ask(do) == (True, False, ["hello"])


def test_old_conversations_are_deleted_after_their_time(ask, owner):
    async def do(store):
        old = turn(owner, "1", "2", id="old", created=1000)
        base = turn(owner, "3", "4", id="base", created=1000)
        fresh = turn(owner, "5", "6", id="fresh", parent=base.key, created=int(time()))
        for one in (old, base, fresh):
            await store.add_turn(one)
        await store.purge(2000)
        names = ("old", "base", "fresh")
        return [await store.find_turn(owner, name) is not None for name in names], await store.load_history(
            owner, fresh
        )

    second, history = ask(do)
    assert second == [False, True, True]
    assert texts_of(history) == ["3", "4", "5", "6"]


def test_a_signature_is_found_by_owner_call_id_and_call_content(ask, owner):
    async def do(store):
        before = await store.signatures.has_any(owner)
        await store.signatures.save(owner, {("c1", "d1"): SignatureRow("google", "s1")})
        await store.signatures.save(
            owner, {("c1", "d1"): SignatureRow("google", "s2"), ("c2", "d2"): SignatureRow("google", "s3", b"[1]")}
        )
        await store.signatures.save(owner, {("c3", "d3"): SignatureRow(reasoning=b"[2]")})
        found = await store.signatures.find(owner, ["c1", "c2", "c3", "c4"])
        other = uuid4().hex
        known = [before, await store.signatures.has_any(owner), await store.signatures.has_any(other)]
        return found, await store.signatures.find(other, ["c1", "c3"]), known

    rows = {
        "c1": {"d1": SignatureRow("google", "s2")},
        "c2": {"d2": SignatureRow("google", "s3", b"[1]")},
        "c3": {"d3": SignatureRow(reasoning=b"[2]")},
    }
    assert ask(do) == (rows, {}, [False, True, False])


def test_old_reasoning_is_deleted_with_old_signatures(ask, owner):
    async def do(store):
        await store.signatures.save(owner, {("c1", "d1"): SignatureRow("google", "s1", b"[1]")})
        await store.purge(time() + 10)
        return await store.signatures.has_any(owner)

    assert ask(do) is False


def test_a_note_that_an_answer_arrived_is_kept(ask, owner):
    async def do(store):
        await store.add_turn(turn(owner, "q", "a", id="r"))
        before = await store.find_turn(owner, "r")
        await store.mark_delivered(before)
        return before, await store.find_turn(owner, "r")

    before, after = ask(do)
    assert after == structs.replace(before, delivered=True)


def test_asides_are_found_by_their_owner_many_at_once(ask, owner):
    kept = {f"call_{n}": f"{n}".encode() for n in range(450)}

    async def do(store):
        await store.save_blobs(owner, kept)
        names = [*kept, "call_unknown"]
        return (
            await store.find_blobs(owner, names),
            await store.find_blobs("somebody else", names),
            await store.find_blobs(owner, []),
        )

    assert ask(do) == (kept, {}, {})
