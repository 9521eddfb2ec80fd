"""The notes and the undo of a schema conversion."""

import pytest
from msgspec import structs

from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import ConvertedSchema, Note, keep_schema, note_history_changes

NOTES = (Note("/a", "changed", "approximated"),)
UNDO = ArgumentUndo(integer=True)


def test_a_schema_that_needs_no_change_has_no_notes():
    assert keep_schema(b"{}", UNDO) == ConvertedSchema(b"{}", (), UNDO)
    assert keep_schema(b"{}").undo is None
    assert keep_schema(b"{}").narrowed is False


@pytest.mark.parametrize(
    ("inside", "converts_history"),
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
def test_an_undo_that_does_more_than_integers_applies_to_histories_too(inside, converts_history):
    undo = ArgumentUndo(items=ArgumentUndo(**inside))
    convert = note_history_changes(lambda schema: ConvertedSchema(schema, NOTES, undo, narrowed=True))
    schema = b"{}"
    assert convert(schema) == ConvertedSchema(
        schema,
        NOTES,
        structs.replace(undo, converts_history=converts_history, only_integers=not converts_history),
        narrowed=True,
    )
