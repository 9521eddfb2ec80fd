"""What is remembered of conversations, and for how long."""

from dragoman.interpreter.recall import NOTHING, Beginning, Recall

CHAT = ("chat", "gemini", "m")
HEAD = b"x" * 64


def beginning(items: bytes) -> Beginning:
    return Beginning(items=items)


def test_a_history_is_nothing_new_when_it_comes_again():
    recall = Recall(least=64)
    assert recall.find(CHAT, b"[" + HEAD + b"]", 1) is None
    assert recall.find(CHAT, b"[" + HEAD + b",more]", 1) is NOTHING


def test_a_mark_is_of_the_first_bytes_the_scope_and_nothing_else():
    recall = Recall(least=64)
    recall.find(CHAT, HEAD + b"a", 0)
    assert recall.find(CHAT, b"{}" + HEAD + b"b", 2) is NOTHING
    assert recall.find(("chat", "gemini", "other"), HEAD + b"a", 0) is None
    assert recall.find(CHAT, b"y" + HEAD, 0) is None


def test_the_longest_beginning_is_found():
    recall = Recall(least=64)
    short, long, other = beginning(HEAD + b"1"), beginning(HEAD + b"12"), beginning(HEAD + b"2222")
    for one in (long, short, other):
        recall.keep(CHAT, one, NOTHING)
    assert recall.find(CHAT, HEAD + b"123", 0) is long
    assert recall.find(CHAT, HEAD + b"13", 0) is short
    assert recall.find(CHAT, HEAD + b"3", 0) is NOTHING


def test_a_longer_beginning_takes_the_place_of_the_one_it_goes_on_from():
    recall = Recall(least=64)
    short, long = beginning(HEAD + b"1"), beginning(HEAD + b"12")
    recall.keep(CHAT, short, NOTHING)
    recall.keep(CHAT, long, short)
    assert recall.find(CHAT, HEAD + b"12", 0) is long
    assert recall.find(CHAT, HEAD + b"11", 0) is NOTHING


def test_the_same_beginning_is_kept_once():
    recall = Recall(least=64, most=4 * 65)
    first, second, other = beginning(HEAD + b"1"), beginning(HEAD + b"1"), beginning(b"y" + HEAD)
    recall.keep(CHAT, other, NOTHING)
    for one in (first, second, first, second):
        recall.keep(CHAT, one, NOTHING)
    assert recall.find(CHAT, HEAD + b"1", 0) is second
    assert recall.find(CHAT, b"y" + HEAD, 0) is other


def test_a_short_beginning_is_not_kept():
    recall = Recall(least=64)
    recall.keep(CHAT, beginning(HEAD[:-1]), NOTHING)
    assert recall.find(CHAT, HEAD, 0) is None


def test_a_beginning_that_would_take_most_of_the_room_is_not_kept():
    recall = Recall(least=64, most=4 * 70)
    large, fits = beginning(HEAD + b"1234567"), beginning(b"y" + HEAD + b"12345")
    recall.keep(CHAT, large, NOTHING)
    recall.keep(CHAT, fits, NOTHING)
    assert recall.find(CHAT, large.items, 0) is None
    assert recall.find(CHAT, fits.items, 0) is fits


def test_what_was_not_used_for_longest_is_forgotten_first():
    recall = Recall(least=64, most=4 * 65)
    ones = [beginning(str(number).encode() + HEAD) for number in range(5)]
    for one in ones[:4]:
        recall.keep(CHAT, one, NOTHING)
    assert recall.find(CHAT, ones[0].items, 0) is ones[0]
    recall.keep(CHAT, ones[4], NOTHING)
    kept = [recall.find(CHAT, one.items, 0) is one for one in ones]
    assert kept == [True, False, True, True, True]


def test_marks_are_few():
    recall = Recall(least=64, marks=3)
    bodies = [str(number).encode() + HEAD for number in range(4)]
    for body in bodies:
        recall.find(CHAT, body, 0)
    assert recall.find(CHAT, bodies[3], 0) is NOTHING
    assert recall.find(CHAT, bodies[1], 0) is NOTHING
    assert recall.find(CHAT, bodies[0], 0) is None


def test_of_many_conversations_with_one_mark_the_newest_are_kept():
    recall = Recall(least=64)
    ones = [beginning(HEAD + bytes([number])) for number in range(33)]
    for one in ones:
        recall.keep(CHAT, one, NOTHING)
    assert recall.find(CHAT, ones[0].items, 0) is NOTHING
    assert all(recall.find(CHAT, one.items, 0) is one for one in ones[1:])
