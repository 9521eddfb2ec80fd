"""The ledger: losses by pointer or by field, with exact pointers when it is read."""

import pytest

from dragoman.core.losses import Loss
from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.interpreter.ledger import Ledger, reject_losses
from interpreter.workbench import encoded

POINTERS = {"limit": ("/max_new", "/max"), "seed": ("/seed",), "part.mark": ("/mark", "/old_mark")}
DOCUMENT = encoded({"max": 3, "seed": {"a": [1, {}], "b": 2}, "parts": [{"old_mark": {"x": 1}, "text": "hi"}]})
PART = Text(text="hi", where="/parts/0")


def ledger():
    return Ledger(POINTERS, DOCUMENT)


def test_a_dropped_value_is_reported_leaf_by_leaf():
    book = ledger()
    book.report_dropped("/seed", "gone")
    assert book.losses() == (
        Loss("/seed/a/0", "gone", "dropped"),
        Loss("/seed/a/1", "gone", "dropped"),
        Loss("/seed/b", "gone", "dropped"),
    )


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
    assert book.losses() == (Loss("/parts/0/old_mark/x", "gone", "dropped"),)


def test_a_field_without_a_pointer_in_the_dialect_is_reported_at_its_owner():
    book = ledger()
    book.report_dropped_field("part.unheard", "gone", PART)
    book.report_approximated_field("part.unheard", "bent", PART)
    assert book.losses() == (
        Loss("/parts/0", "bent", "approximated"),
        Loss("/parts/0/old_mark/x", "gone", "dropped"),
        Loss("/parts/0/text", "gone", "dropped"),
    )


def test_an_approximated_known_field_is_reported_leaf_by_leaf():
    book = ledger()
    book.report_approximated_field("seed", "bent")
    assert [loss.where for loss in book.losses()] == ["/seed/a/0", "/seed/a/1", "/seed/b"]
    assert {loss.kind for loss in book.losses()} == {"approximated"}


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
