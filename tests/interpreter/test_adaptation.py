"""Shared state of the adaptation steps: names for the target and the undo."""

from dragoman.core.request import Tool
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.schema.arguments import ArgumentUndo
from dragoman.interpreter.schema.conversion import Note
from dragoman.interpreter.undo import Undo
from interpreter.workbench import adaptation_for, encode, loss_pointers


def test_a_legal_name_is_kept_and_needs_no_undo():
    adaptation = adaptation_for("chat", "gpt-4.1")
    assert adaptation.alias_tool("find") == "find"
    assert adaptation.build_undo() == Undo()


def test_an_illegal_name_is_recorded_in_the_undo():
    adaptation = adaptation_for("chat", "gpt-4.1")
    assert adaptation.alias_tool("a b") == "a_b_c8687a08"
    assert adaptation.build_undo() == Undo({"a_b_c8687a08": ("", "a b")})


def test_a_namespace_is_put_before_the_name_where_the_target_has_none():
    adaptation = adaptation_for("chat", "gpt-4.1")
    assert adaptation.alias_tool("find", "crm") == "crm__find"
    assert adaptation.build_undo() == Undo({"crm__find": ("crm", "find")})


def test_a_namespace_stays_separate_if_the_target_has_namespaces():
    adaptation = adaptation_for("responses", "gpt-5.6")
    assert adaptation.alias_tool("find", "crm") == "find"
    assert adaptation.build_undo() == Undo()


def test_notes_of_a_conversion_are_reported_below_the_schema_that_the_document_has():
    function = {"name": "f", "parameters": {"properties": {"a": {"x": 1, "y": 2}}}}
    adaptation = adaptation_for("gemini", document={"tools": [{"function": function}]})
    tool = Tool(name="f", parameters=encode(function["parameters"]), where="/tools/0")
    notes = (Note("/properties/a/x", "gone", "dropped"), Note("/properties", "bent", "approximated"))
    adaptation.report_notes(notes, "tool.parameters", tool)
    assert loss_pointers(adaptation) == [
        ("approximated", "/tools/0/function/parameters/properties"),
        ("dropped", "/tools/0/function/parameters/properties/a/x"),
    ]


def test_no_notes_book_nothing():
    adaptation = adaptation_for("gemini")
    adaptation.report_notes((), "tool.parameters")
    assert len(adaptation.ledger) == 0


def test_the_undo_has_names_free_form_tools_and_arguments():
    adaptation = adaptation_for("chat")
    step = ArgumentUndo(parse=True)
    adaptation.custom = frozenset({"shell"})
    adaptation.arguments["find"] = (step,)
    assert adaptation.build_undo() == Undo({}, frozenset({"shell"}), {"find": (step,)})


def test_an_adaptation_starts_with_an_empty_undo():
    adaptation = Adaptation(traits_for("chat", ""), Ledger({}), "openai")
    assert (adaptation.validated, adaptation.can_force, adaptation.single_call, adaptation.instructions) == (
        False,
        True,
        False,
        [],
    )
    assert (Undo().names, Undo().custom, Undo().arguments, Undo().single_call) == ({}, frozenset(), {}, False)
    assert adaptation.alias_tool("a b") == "a_b_c8687a08"
