"""Outcomes are remembered by the bytes of the schema, and the memory stays small."""

import pytest
from msgspec import structs

from dragoman.interpreter.schemas.arguments import ArgumentUndo
from dragoman.interpreter.schemas.notes import Note
from dragoman.interpreter.schemas.outcome import Converted, remembered, unchanged

NOTES = (Note("/a", "changed", "approximated"),)
UNDO = ArgumentUndo(integer=True)


def counting():
    """A conversion that changes nothing, and the schemas it was asked for."""
    asked = []

    @remembered
    def convert(schema, *, option=1):
        asked.append((schema, option))
        return Converted(schema, NOTES, UNDO, narrowed=True)

    return convert, asked


def test_a_schema_is_converted_once_for_each_set_of_options():
    convert, asked = counting()
    for _ in range(3):
        convert(b"{}")
        convert(b"{}", option=2)
    assert asked == [(b"{}", 1), (b"{}", 2)]


def test_a_schema_that_needs_nothing_is_returned_as_the_callers_own_object():
    convert, _ = counting()
    first, second = b"{ }", bytes(bytearray(b"{ }"))
    undo = structs.replace(UNDO, only_integers=True)
    assert convert(first) == Converted(first, NOTES, undo, narrowed=True)
    again = convert(second)
    assert again.schema is second
    assert again == Converted(second, NOTES, undo, narrowed=True)


def test_an_outcome_that_changed_the_schema_is_the_same_object_each_time():
    convert = remembered(lambda schema: Converted(b"new", NOTES))
    assert convert(b"{}") is convert(bytes(bytearray(b"{}")))


@pytest.mark.parametrize(("size", "calls"), [(65_536, 1), (65_537, 2)])
def test_a_large_schema_is_not_remembered(size, calls):
    convert, asked = counting()
    schema = b"x" * size
    assert convert(schema).schema is schema
    assert convert(schema).schema is schema
    assert len(asked) == calls
    convert(schema, option=2)
    assert asked[-1] == (schema, 2)


def test_a_thousand_schemas_are_remembered_and_the_oldest_forgotten_first():
    convert, asked = counting()
    for number in range(1024):
        convert(b"%d" % number)
    convert(b"0")
    assert len(asked) == 1024
    convert(b"1024")
    convert(b"1")
    assert asked[-2:] == [(b"1024", 1), (b"1", 1)]


def test_a_schema_that_fits_has_no_notes():
    assert unchanged(b"{}", UNDO) == Converted(b"{}", (), UNDO)
    assert unchanged(b"{}").undo is None
    assert unchanged(b"{}").narrowed is False


@pytest.mark.parametrize("size", [2, 65_537])
@pytest.mark.parametrize(
    ("inside", "retold"),
    [
        ({"integer": True}, False),
        ({"references": ("x",)}, False),
        ({"values": {"1": "1"}}, True),
        ({"parse": True}, True),
        ({"optional": frozenset({"a"})}, True),
        ({"renamed": {"a": "b"}}, True),
        ({"wrapped": "value"}, True),
    ],
)
def test_an_undo_that_does_more_than_write_integers_is_told_in_histories_too(inside, retold, size):
    undo = ArgumentUndo(items=ArgumentUndo(**inside))
    convert = remembered(lambda schema: Converted(schema, NOTES, undo, narrowed=True))
    schema = b"x" * size
    assert convert(schema) == Converted(
        schema, NOTES, structs.replace(undo, retold=retold, only_integers=not retold), narrowed=True
    )
