import json

import pytest

from dragoman.interpreter.schema.arguments import Alternative, ArgumentUndo, accepts, restore_arguments

NUMBER = ArgumentUndo(values={"1": "1"})
INTEGER = ArgumentUndo(integer=True)


def test_where_nothing_changes_the_very_same_text_is_returned():
    text = '{ "a" : 1 , "b":[1.0,  2] }'
    undo = ArgumentUndo(properties={"a": INTEGER, "c": NUMBER}, optional=frozenset({"z"}), renamed={"y": "x"})
    assert restore_arguments(text, undo) is text


def test_unchanged_parts_keep_their_bytes():
    undo = ArgumentUndo(properties={"a": NUMBER})
    text = '{"a":"1","b":{ "x" : 1.50,"y":"\\u00e9" },"c":12345678901234567890123}'
    assert restore_arguments(text, undo) == '{"a":1,"b":{ "x" : 1.50,"y":"\\u00e9" },"c":12345678901234567890123}'


@pytest.mark.parametrize("text", ["", "{", '{"a":"1"', "nonsense", "hello", '{"a":"1"} trailing', "\ud800", "[" * 5000])
def test_what_is_not_json_is_returned_unchanged(text):
    undo = ArgumentUndo(properties={"a": NUMBER}, items=NUMBER, integer=True)
    assert restore_arguments(text, undo) is text


def test_arguments_nested_beyond_measure_are_returned_unchanged():
    undo = ArgumentUndo(
        references=("N",),
        definitions={"N": ArgumentUndo(properties={"n": ArgumentUndo(references=("N",))}, integer=True)},
    )
    text = '{"n":' * 200 + "5.0" + "}" * 200
    assert restore_arguments(text, undo) is text


def test_references_that_go_in_circles_end():
    ring = {"A": ArgumentUndo(references=("A", "B")), "B": ArgumentUndo(references=("B", "A"))}
    text = '{"a":1}'
    assert restore_arguments(text, ArgumentUndo(references=("A",), definitions=ring)) is text


def test_a_recursive_undo_follows_the_arguments():
    node = ArgumentUndo(properties={"n": INTEGER, "next": ArgumentUndo(references=("N",))})
    undo = ArgumentUndo(references=("N",), definitions={"N": node})
    assert (
        restore_arguments('{"n":1.0,"next":{"n":2.0,"next":{"n":3.5}}}', undo)
        == '{"n":1,"next":{"n":2,"next":{"n":3.5}}}'
    )


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("5.0", "5"),
        ("5", "5"),
        ("5.5", "5.5"),
        ("5e0", "5"),
        ("1E3", "1000"),
        ("-7.000", "-7"),
        ("5e-1", "5e-1"),
        ("1e999", "1e999"),
        ("123456789012345678901.0", "123456789012345678901"),
    ],
)
def test_integers_are_written_as_integers(sent, meant):
    assert restore_arguments(f'{{"n":{sent}}}', ArgumentUndo(properties={"n": INTEGER})) == f'{{"n":{meant}}}'


def test_names_are_changed_back():
    undo = ArgumentUndo(renamed={"a_b": "a b"}, properties={"a_b": NUMBER})
    assert restore_arguments('{"a_b":"1","c":2}', undo) == '{"a b":1,"c":2}'


def test_a_name_that_is_there_already_is_not_taken_by_another():
    undo = ArgumentUndo(renamed={"a_b": "a b"}, properties={"a_b": NUMBER})
    assert restore_arguments('{"a_b":"1","a b":2}', undo) == '{"a_b":1,"a b":2}'


def test_a_wrapped_value_is_unwrapped_and_changed_back_inside():
    undo = ArgumentUndo(wrapped="value", properties={"value": ArgumentUndo(items=NUMBER)})
    assert restore_arguments('{"value":["1","x"]}', undo) == '[1,"x"]'
    assert restore_arguments('{"value":[ 2 ]}', undo) == "[ 2 ]"


def test_arguments_that_were_sent_unwrapped_stay():
    text = '{"other":1}'
    assert restore_arguments(text, ArgumentUndo(wrapped="value")) is text


def test_nulls_of_optional_members_are_dropped_and_others_kept():
    undo = ArgumentUndo(optional=frozenset({"a"}))
    assert restore_arguments('{"a": null ,"b":null}', undo) == '{"b":null}'


def test_text_that_should_be_json_and_is_not_stays_text():
    undo = ArgumentUndo(properties={"any": ArgumentUndo(parse=True)})
    assert restore_arguments('{"any":"{broken"}', undo) == '{"any":"{broken"}'
    assert restore_arguments('{"any":" [1, 2] "}', undo) == '{"any":[1, 2]}'


def test_the_first_choice_thattakes_the_value_decides():
    numbers = Alternative(kinds=frozenset({"string"}), texts=frozenset({"1"}), undo=NUMBER)
    text = Alternative(kinds=frozenset({"string"}))
    listed = Alternative(kinds=frozenset({"array"}), undo=ArgumentUndo(items=NUMBER))
    undo = ArgumentUndo(properties={"p": ArgumentUndo(choices=(numbers, text, listed))})
    assert restore_arguments('{"p":"1"}', undo) == '{"p":1}'
    assert restore_arguments('{"p":"2"}', undo) == '{"p":"2"}'
    assert restore_arguments('{"p":["1"]}', undo) == '{"p":[1]}'
    assert restore_arguments('{"p":true}', undo) == '{"p":true}'


def test_a_choice_of_objects_needs_its_required_members_and_tags():
    first = Alternative(
        kinds=frozenset({"object"}),
        required=frozenset({"a"}),
        tags={"k": frozenset({"x"})},
        undo=ArgumentUndo(properties={"a": NUMBER}),
    )
    undo = ArgumentUndo(choices=(first,))
    assert restore_arguments('{"k":"x","a":"1"}', undo) == '{"k":"x","a":1}'
    assert restore_arguments('{"k":"y","a":"1"}', undo) == '{"k":"y","a":"1"}'
    assert restore_arguments('{"k":1,"a":"1"}', undo) == '{"k":1,"a":"1"}'
    assert restore_arguments('{"k":"x"}', undo) == '{"k":"x"}'


def test_prefix_items_and_further_items_are_distinguished():
    undo = ArgumentUndo(prefix=(NUMBER, None), items=INTEGER)
    assert restore_arguments('["1","1",1.0]', undo) == '[1,"1",1]'


def test_restoring_twice_changes_nothing_more():
    undo = ArgumentUndo(properties={"a": NUMBER, "n": INTEGER}, optional=frozenset({"z"}))
    once = restore_arguments('{"a":"1","n":5.0,"z":null}', undo)
    assert restore_arguments(once, undo) is once
    assert json.loads(once) == {"a": 1, "n": 5}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b'"x"', "string"),
        (b" {}", "object"),
        (b"[]", "array"),
        (b"true", "boolean"),
        (b"false", "boolean"),
        (b"null", "null"),
        (b"-1", "number"),
    ],
)
def test_a_choicetakes_values_of_its_kinds_and_no_others(text, kind):
    for other in ("string", "object", "array", "boolean", "null", "number"):
        assert accepts(Alternative(kinds=frozenset({other})), text) is (other == kind)


def test_a_choicetakes_the_texts_it_lists_or_every_text():
    assert accepts(Alternative(kinds=frozenset({"string"}), texts=frozenset({"a"})), b'"a"')
    assert not accepts(Alternative(kinds=frozenset({"string"}), texts=frozenset({"a"})), b'"b"')
    undo = ArgumentUndo(choices=(Alternative(kinds=frozenset({"string"}), undo=ArgumentUndo(parse=True)),))
    assert restore_arguments('"[1]"', undo) == "[1]"


def nest(levels, inner, opening, closing):
    return opening * levels + inner + closing * levels


@pytest.mark.parametrize("path", ["items", "prefix", "properties", "others"])
def test_values_are_changed_back_down_to_a_hundred_levels(path):
    undo = INTEGER
    for _ in range(100):
        inside = {"prefix": (undo,), "properties": {"a": undo}}.get(path, undo)
        undo = ArgumentUndo(**{path: inside})
    opening, closing = ("[", "]") if path in ("items", "prefix") else ('{"a":', "}")
    inner = undo.properties["a"] if path == "properties" else undo.prefix[0] if path == "prefix" else None
    reached = inner or getattr(undo, path)
    assert restore_arguments(nest(99, "5.0", opening, closing), reached) == nest(99, "5", opening, closing)
    text = nest(100, "5.0", opening, closing)
    assert restore_arguments(text, undo) is text


def test_choices_and_references_count_as_levels():
    undo = INTEGER
    for _ in range(99):
        undo = ArgumentUndo(choices=(Alternative(kinds=frozenset({"number"}), undo=undo),))
    assert restore_arguments("5.0", undo) == "5"
    assert (
        restore_arguments("5.0", ArgumentUndo(choices=(Alternative(kinds=frozenset({"number"}), undo=undo),))) == "5.0"
    )

    def chain(links):
        definitions = {str(i): ArgumentUndo(references=(str(i + 1),)) for i in range(links)}
        return ArgumentUndo(references=("0",), definitions={**definitions, str(links): INTEGER})

    assert restore_arguments("5.0", chain(98)) == "5"
    assert restore_arguments("5.0", chain(99)) == "5.0"


def test_a_hundred_thousand_values_are_changed_back_and_no_more():
    undo = ArgumentUndo(items=INTEGER)

    def send(count, number="5.0"):
        return "[" + ",".join([number] * count) + "]"

    assert restore_arguments(send(99_999), undo) == send(99_999, "5")
    text = send(100_000)
    assert restore_arguments(text, undo) is text


def test_an_empty_undo_changes_nothing():
    for text in ('"[1]"', "5.0", '{"value":{"a":5.0}}', "[5.0]", "true", "null"):
        assert restore_arguments(text, ArgumentUndo()) is text


@pytest.mark.parametrize(
    ("content", "meant"),
    [('"{\\"k\\":1}"', '{"k":1}'), ('" {} "', "{}"), ('"1"', '"1"'), ('"[]"', '"[]"'), ('"{x"', '"{x"')],
)
def test_text_in_place_of_a_map_is_parsed_only_if_it_contains_one(content, meant):
    assert restore_arguments(content, ArgumentUndo(parse=True, parsed_kind="object")) == meant
