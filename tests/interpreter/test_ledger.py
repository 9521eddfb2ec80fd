"""The ledger: losses by pointer or by field, with exact pointers when it is read."""

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Reasoning, Text
from dragoman.core.problems import Problem
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.ledger import Ledger, open_reply_ledger, open_request_ledger
from dragoman.interpreter.loss_report import list_leaves, reject_losses
from interpreter.workbench import encode

POINTERS = {"limit": ("/max_new", "/max"), "seed": ("/seed",), "part.mark": ("/mark", "/old_mark")}
DOCUMENT = encode({"max": 3, "seed": {"a": [1, {}], "b": 2}, "parts": [{"old_mark": {"x": 1}, "text": "hi"}]})
PART = Text(text="hi", where="/parts/0")


def ledger():
    return Ledger(POINTERS, DOCUMENT)


def test_a_dropped_value_is_one_loss_with_the_number_of_its_leaves():
    book = ledger()
    book.report_dropped("/seed", "gone")
    assert book.losses() == (Loss("/seed", "gone", "dropped", leaves=3),)


def test_an_approximated_value_is_reported_at_its_pointer():
    book = ledger()
    book.report_approximated("/seed", "bent")
    assert book.losses() == (Loss("/seed", "bent", "approximated"),)


def test_a_dropped_field_is_reported_where_the_document_has_it():
    book = ledger()
    book.report_dropped_field("limit", "gone")
    assert book.losses() == (Loss("/max", "gone", "dropped"),)


def test_a_field_that_is_not_in_the_document_is_reported_at_its_first_pointer():
    book = Ledger(POINTERS, b"{}")
    book.report_dropped_field("limit", "gone")
    assert book.losses() == (Loss("/max_new", "gone", "dropped"),)


def test_a_field_of_a_part_is_reported_below_its_owner():
    book = ledger()
    book.report_dropped_field("part.mark", "gone", PART)
    assert book.losses() == (Loss("/parts/0/old_mark", "gone", "dropped"),)


def test_an_owner_whose_field_has_no_pointer_in_the_dialect_is_approximated_and_not_dropped():
    book = ledger()
    book.report_dropped_field("part.unheard", "gone", PART)
    book.report_approximated_field("part.unheard", "bent", PART)
    book.report_dropped_field("unheard", "gone")
    assert book.losses() == (
        Loss("", "gone", "approximated"),
        Loss("/parts/0", "gone; bent", "approximated"),
    )


def test_an_approximated_known_field_is_one_loss_with_the_number_of_its_leaves():
    book = ledger()
    book.report_approximated_field("seed", "bent")
    assert book.losses() == (Loss("/seed", "bent", "approximated", leaves=3),)


def test_a_pointer_is_reported_once_per_kind_with_the_first_reason():
    book = ledger()
    book.report_dropped("/max", "first")
    book.report_dropped_field("limit", "second")
    book.report_approximated("/max", "third")
    assert book.losses() == (Loss("/max", "first", "dropped"), Loss("/max", "third", "approximated"))


def test_the_same_loss_is_counted_once():
    book = ledger()
    assert len(book) == 0
    book.report_dropped("/max", "gone")
    book.report_dropped("/max", "gone")
    book.report_approximated("/max", "bent")
    assert len(book) == 2


def test_places_are_all_candidates_and_place_is_the_one_that_is_there():
    book = ledger()
    assert book.list_pointers("limit") == ("/max_new", "/max")
    assert book.list_pointers("part.mark", PART) == ("/parts/0/mark", "/parts/0/old_mark")
    assert book.list_pointers("unheard") == ("",)
    assert book.find_pointer("limit") == "/max"
    assert book.find_pointer("part.mark", PART) == "/parts/0/old_mark"
    assert book.find_pointer("seed") == "/seed"
    assert Ledger(POINTERS, b"{}").find_pointer("limit") == "/max_new"


def test_a_ledger_without_a_document_reports_first_pointers():
    book = Ledger(POINTERS)
    book.report_dropped_field("limit", "gone")
    book.report_dropped("/seed", "gone")
    assert [loss.where for loss in book.losses()] == ["/max_new", "/seed"]


def test_strict_mode_names_every_loss_and_the_first_place():
    losses = (Loss("", "bent", "approximated"), Loss("/b", "gone", "dropped"))
    with pytest.raises(Problem) as caught:
        reject_losses(losses)
    message = "strict mode: the request cannot be translated without loss: approximated /: bent; dropped /b: gone"
    assert caught.value == Problem("unsupported", message, where="")
    with pytest.raises(Problem) as caught:
        reject_losses(losses[1:])
    assert caught.value.where == "/b"


@pytest.mark.parametrize(("count", "tail"), [(20, "dropped /19: x"), (21, "dropped /19: x (and 1 more)")])
def test_strict_mode_names_at_most_twenty_losses(count, tail):
    with pytest.raises(Problem) as caught:
        reject_losses(tuple(Loss(f"/{index}", "x", "dropped") for index in range(count)))
    assert caught.value.message.endswith(tail)
    assert caught.value.message.count("dropped") == 20


def test_strict_mode_is_silent_without_losses():
    assert reject_losses(()) is None


def test_several_reasons_for_one_pointer_are_joined_and_not_repeated():
    book = ledger()
    for what in ("bent", "cut", "bent"):
        book.report_approximated("/seed/b", what)
    for what in ("gone", "lost"):
        book.report_dropped("/seed/b", what)
    assert book.losses() == (Loss("/seed/b", "bent; cut", "approximated"), Loss("/seed/b", "gone", "dropped"))


def test_without_a_document_a_field_is_reported_at_its_first_pointer():
    book = Ledger(POINTERS)
    book.report_dropped_field("limit", "gone")
    assert book.losses() == (Loss("/max_new", "gone", "dropped"),)
    assert book.find_pointer("limit") == "/max_new"


def test_losses_of_a_cached_prefix_are_merged_with_the_rest_in_order():
    book = ledger()
    book.report_approximated_once("/seed/b", "skipped")
    before = (Loss("/max", "bent", "approximated"), Loss("/seed/b", "gone", "dropped"))
    book.resume(frozenset({"bent"}), before)
    assert len(book) == 3
    book.report_approximated_once("/parts", "bent")
    book.report_dropped("/parts/0/text", "gone")
    assert book.losses() == (
        before[0],
        Loss("/parts/0/text", "gone", "dropped"),
        Loss("/seed/b", "gone", "dropped"),
        Loss("/seed/b", "skipped", "approximated"),
    )


def drop(document, *pointers, what="gone", informational=(), **options):
    """Return the losses of a document in which the values at `pointers` are dropped."""
    book = Ledger(POINTERS, encode(document), frozenset(informational), **options)
    for where in pointers:
        book.report_dropped(where, what)
    return book.losses()


NESTED = {"a": {"b": {"c": 1, "d": []}, "e": "x"}, "z": 1}


@pytest.mark.parametrize(
    ("value", "leaves"),
    [(1, 1), (None, 1), ("", 1), ({}, 1), ([], 1), ([{}, []], 2), ({"b": [1, {"c": None}], "d": 2}, 3)],
)
def test_every_scalar_and_every_empty_container_is_a_leaf(value, leaves):
    assert drop({"a": value, "z": 1}, "/a") == (Loss("/a", "gone", "dropped", leaves=leaves),)
    book = Ledger({}, exact=True)
    book.report_dropped_value("/a", encode(value), "gone")
    assert book.losses() == (Loss("/a", "gone", "dropped", leaves=leaves),)


def test_a_loss_inside_a_dropped_value_is_covered_by_it():
    expected = (Loss("/a", "gone", "dropped", leaves=3),)
    assert drop(NESTED, "/a/b/c", "/a", "/a/b") == expected
    book = Ledger({}, encode(NESTED))
    book.report_approximated("/a/b/c", "bent")
    book.report_dropped("/a", "gone")
    assert book.losses() == expected


def test_the_losses_of_all_members_become_one_loss_of_their_parent():
    assert drop(NESTED, "/a/b/c", "/a/b/d") == (Loss("/a/b", "gone", "dropped", leaves=2),)
    assert drop(NESTED, "/a/b/c", "/a/b/d", "/a/e") == (Loss("/a", "gone", "dropped", leaves=3),)
    assert drop({"a": [1, 2], "z": 1}, "/a/0", "/a/1") == (Loss("/a", "gone", "dropped", leaves=2),)
    assert drop({"a": {"b": {"c": 1}}, "z": 1}, "/a/b/c") == (Loss("/a", "gone", "dropped"),)


def test_members_are_not_joined_while_one_of_them_is_sent():
    assert [loss.where for loss in drop(NESTED, "/a/b/c", "/a/e")] == ["/a/b/c", "/a/e"]
    assert [loss.where for loss in drop({"a": {"b": 1, "c": None}, "z": 1}, "/a/b")] == ["/a/b"]


def test_members_are_not_joined_while_one_of_them_is_sent_in_another_form():
    book = Ledger({}, encode({"a": {"b": 1, "c": {"d": 2}}, "z": 1}))
    for where in ("/a/b", "/a/c/d"):
        book.report_dropped(where, "gone")
    book.report_approximated("/a/c", "bent")
    assert [(loss.kind, loss.where) for loss in book.losses()] == [
        ("dropped", "/a/b"),
        ("approximated", "/a/c"),
        ("dropped", "/a/c/d"),
    ]


def test_members_lost_for_different_reasons_or_with_different_grades_are_not_joined():
    book = Ledger({}, encode(NESTED))
    book.report_dropped("/a/b", "gone")
    book.report_dropped("/a/e", "lost")
    assert [(loss.where, loss.what) for loss in book.losses()] == [("/a/b", "gone"), ("/a/e", "lost")]
    graded = drop(NESTED, "/a/b", "/a/e", informational=["/a/e"])
    assert [(loss.where, loss.grade) for loss in graded] == [("/a/b", "material"), ("/a/e", "informational")]
    alike = drop(NESTED, "/a/b", "/a/e", informational=["/a/b", "/a/e"])
    assert alike == (Loss("/a", "gone", "dropped", "informational", leaves=3),)


def test_the_whole_document_is_never_one_loss():
    assert [loss.where for loss in drop(NESTED, "/a", "/z")] == ["/a", "/z"]


def test_a_single_loss_of_a_reply_stays_where_it_is():
    document = {"a": {"b": 1}, "c": {"d": 1, "e": 2}}
    for exact in (True, False):
        lost = drop(document, "/a/b", "/c/d", "/c/e", is_reply=True, exact=exact)
        assert lost == (Loss("/a/b", "gone", "dropped"), Loss("/c", "gone", "dropped", leaves=2))
        assert drop(document, "/a/b", is_reply=True, exact=exact) == (Loss("/a/b", "gone", "dropped"),)


def test_many_losses_are_each_joined_with_their_own_siblings():
    document = {"a": [[{"b": 1}, 0] for _ in range(500)]}
    lost = drop(document, *(f"/a/{index}/0/b" for index in range(500)))
    assert lost == tuple(sorted(Loss(f"/a/{index}/0", "gone", "dropped") for index in range(500)))


@pytest.mark.parametrize(
    ("where", "grade"),
    [
        ("/metadata", "informational"),
        ("/metadata/a/b", "informational"),
        ("/tools/12/cache_control", "informational"),
        ("/tools/12/cacheControl/ttl", "informational"),
        ("/request/metadata", "informational"),
        ("/tools/12", "material"),
        ("/tools/12/cache_controls", "material"),
        ("/meta", "material"),
        ("", "material"),
    ],
)
def test_a_loss_is_informational_if_the_table_has_its_pointer_or_one_above_it(where, grade):
    book = Ledger({}, informational=frozenset({"/metadata", "/tools/#/cachecontrol"}))
    book.report_dropped(where, "gone")
    assert book.losses() == (Loss(where, "gone", "dropped", grade),)


def test_requests_and_replies_of_a_dialect_have_their_own_tables():
    chat = dialect_named("chat")
    for book, grade in ((open_request_ledger(chat), "material"), (open_reply_ledger(chat), "informational")):
        book.report_dropped("/system_fingerprint", "gone")
        assert [loss.grade for loss in book.losses()] == [grade]


def test_a_value_with_several_reasons_is_material_if_one_of_them_is():
    book = ledger()
    book.report_placeholder_once("/max", "filled")
    book.report_approximated("/max", "bent")
    assert book.losses() == (Loss("/max", "filled; bent", "approximated", "material"),)


def test_a_placeholder_is_reported_once_as_informational():
    book = ledger()
    book.report_placeholder_once("/parts/0", "filled")
    book.report_placeholder_once("/parts/1", "filled")
    assert book.losses() == (Loss("/parts/0", "filled", "approximated", "informational"),)
    later = ledger()
    later.resume(book.reported_once)
    later.report_placeholder_once("/parts/2", "filled")
    assert later.losses() == ()


@pytest.mark.parametrize(("kind", "grade"), [(Text, "informational"), (Reasoning, "material")])
def test_only_the_signature_of_reasoning_is_a_material_loss(kind, grade):
    book = Ledger({"part.signature": ("/mark",)}, encode({"parts": [{"mark": "s", "text": "hi"}]}))
    book.report_dropped_signature(kind(where="/parts/0") if kind is Reasoning else PART, "gone")
    assert book.losses() == (Loss("/parts/0/mark", "gone", "dropped", grade),)


@pytest.mark.parametrize(("by_leaf", "lost"), [(False, [("/p", 2)]), (True, [("/p/a", 1), ("/p/b", 1)])])
def test_a_value_of_a_stream_is_one_loss_or_on_request_one_for_each_leaf(by_leaf, lost):
    book = Ledger({}, by_leaf=by_leaf)
    book.report_dropped_leaves("/p", ["/p/a", "/p/b"], "gone")
    assert [(loss.where, loss.leaves) for loss in book.losses()] == lost
    book = Ledger({}, by_leaf=by_leaf)
    book.report_dropped_value("/p", b'{"a": 1, "b": []}', "gone")
    assert [(loss.where, loss.leaves) for loss in book.losses()] == lost


def test_a_value_that_comes_in_several_events_of_a_stream_has_the_largest_count():
    book = Ledger({})
    for raw in (b'["a", "b"]', b'["a", "b", "c"]', b"[]"):
        book.report_dropped_value("/p", raw, "gone")
    assert book.losses() == (Loss("/p", "gone", "dropped", leaves=3),)


def test_leaves_are_listed_with_the_reason_and_grade_of_their_loss():
    losses = (
        Loss("/max", "bent", "approximated"),
        Loss("/nowhere", "gone", "dropped"),
        Loss("/parts/0/old_mark", "gone", "dropped", "informational"),
        Loss("/seed", "lost", "dropped", leaves=3),
    )
    assert list_leaves(losses, DOCUMENT) == (
        *losses[:2],
        Loss("/parts/0/old_mark/x", "gone", "dropped", "informational"),
        Loss("/seed/a/0", "lost", "dropped"),
        Loss("/seed/a/1", "lost", "dropped"),
        Loss("/seed/b", "lost", "dropped"),
    )
    assert list_leaves((), DOCUMENT) == ()


def test_there_are_as_many_leaves_as_the_losses_count():
    losses = drop(NESTED, "/a/b/c", "/a/b/d", "/z")
    leaves = list_leaves(losses, encode(NESTED))
    assert [loss.where for loss in leaves] == ["/a/b/c", "/a/b/d", "/z"]
    assert sum(loss.leaves for loss in losses) == len(leaves)


def test_losses_of_another_ledger_keep_their_counts_and_grades():
    book = ledger()
    fork = book.fork()
    fork.report_dropped_field("seed", "gone", grade="informational")
    fork.report_placeholder_once("/max", "filled")
    book.add(fork.entries())
    assert book.losses() == fork.losses()
    assert book.losses() == (
        Loss("/max", "filled", "approximated", "informational"),
        Loss("/seed", "gone", "dropped", "informational", leaves=3),
    )


def test_strict_mode_rejects_only_material_losses_and_all_losses_on_request():
    losses = (Loss("/a", "gone", "dropped", "informational"), Loss("/b", "lost", "dropped"))
    with pytest.raises(Problem) as caught:
        reject_losses(losses)
    assert (caught.value.where, "/a" in caught.value.message) == ("/b", False)
    with pytest.raises(Problem) as caught:
        reject_losses(losses, strict="all")
    assert caught.value.where == "/a"
    assert caught.value.message.endswith("dropped /a: gone; dropped /b: lost")
    assert reject_losses(losses[:1]) is None
    with pytest.raises(Problem):
        reject_losses(losses[:1], "reply", strict="all")
