"""What is kept of conversations, and for how long."""

from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix, PrefixCache

CHAT = ("chat", "gemini", "m")
HEAD = b"x" * 64


def prefix(items: bytes) -> Prefix:
    return Prefix(items=items)


def test_a_prefix_is_found_at_any_offset_but_only_in_its_scope():
    cache = PrefixCache(min_bytes=64)
    stored = prefix(HEAD)
    cache.store(CHAT, stored, NO_PREFIX)
    assert cache.find(CHAT, b"{}" + HEAD + b"b", 2) is stored
    assert cache.find(("chat", "gemini", "other"), HEAD + b"a", 0) is NO_PREFIX
    assert cache.find(CHAT, b"y" + HEAD, 0) is NO_PREFIX


def test_the_longest_prefix_is_found():
    cache = PrefixCache(min_bytes=64)
    short, long, other = prefix(HEAD + b"1"), prefix(HEAD + b"12"), prefix(HEAD + b"2222")
    for one in (long, short, other):
        cache.store(CHAT, one, NO_PREFIX)
    assert cache.find(CHAT, HEAD + b"123", 0) is long
    assert cache.find(CHAT, HEAD + b"13", 0) is short
    assert cache.find(CHAT, HEAD + b"3", 0) is NO_PREFIX


def test_a_longer_prefix_replaces_the_one_it_extends():
    cache = PrefixCache(min_bytes=64)
    short, long = prefix(HEAD + b"1"), prefix(HEAD + b"12")
    cache.store(CHAT, short, NO_PREFIX)
    cache.store(CHAT, long, short)
    assert cache.find(CHAT, HEAD + b"12", 0) is long
    assert cache.find(CHAT, HEAD + b"11", 0) is NO_PREFIX


def test_the_same_prefix_is_kept_once():
    cache = PrefixCache(min_bytes=64, max_bytes=2 * 4 * 65)
    first, second, other = prefix(HEAD + b"1"), prefix(HEAD + b"1"), prefix(b"y" + HEAD)
    cache.store(CHAT, other, NO_PREFIX)
    for one in (first, second, first, second):
        cache.store(CHAT, one, NO_PREFIX)
    assert cache.find(CHAT, HEAD + b"1", 0) is second
    assert cache.find(CHAT, b"y" + HEAD, 0) is other


def test_a_short_prefix_is_not_kept():
    cache = PrefixCache(min_bytes=64)
    cache.store(CHAT, prefix(HEAD[:-1]), NO_PREFIX)
    assert cache.find(CHAT, HEAD, 0) is NO_PREFIX


def test_a_prefix_that_would_take_most_of_the_room_is_not_kept():
    cache = PrefixCache(min_bytes=64, max_bytes=4 * 70)
    large, fits = prefix(HEAD + b"1234567"), prefix(b"y" + HEAD + b"12345")
    cache.store(CHAT, large, NO_PREFIX)
    cache.store(CHAT, fits, NO_PREFIX)
    assert cache.find(CHAT, large.items, 0) is NO_PREFIX
    assert cache.find(CHAT, fits.items, 0) is fits


def test_what_was_not_used_for_longest_is_evicted_first():
    cache = PrefixCache(min_bytes=64, max_bytes=2 * 4 * 65)
    ones = [prefix(str(number).encode() + HEAD) for number in range(5)]
    for one in ones[:4]:
        cache.store(CHAT, one, NO_PREFIX)
    assert cache.find(CHAT, ones[0].items, 0) is ones[0]
    cache.store(CHAT, ones[4], NO_PREFIX)
    kept = [cache.find(CHAT, one.items, 0) is one for one in ones]
    assert kept == [True, False, True, True, True]


def test_a_lookup_that_finds_nothing_stores_nothing():
    cache = PrefixCache(min_bytes=64)
    assert cache.find(CHAT, HEAD, 0) is NO_PREFIX
    assert not cache._prefixes


def test_of_many_conversations_with_one_key_the_newest_are_kept():
    cache = PrefixCache(min_bytes=64)
    ones = [prefix(HEAD + bytes([number])) for number in range(33)]
    for one in ones:
        cache.store(CHAT, one, NO_PREFIX)
    assert cache.find(CHAT, ones[0].items, 0) is NO_PREFIX
    assert all(cache.find(CHAT, one.items, 0) is one for one in ones[1:])
