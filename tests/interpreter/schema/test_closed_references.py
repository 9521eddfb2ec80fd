"""References on their way into the subsets of structured output: kept, inlined or cut."""

import json

import pytest

from dragoman.interpreter.schema.arguments import restore_arguments
from dragoman.interpreter.schema.closed import MAX_NODES
from dragoman.interpreter.schema.roots import to_anthropic_output, to_openai_strict

TEXT = {"type": "string"}
SCALARS = ["string", "number", "boolean", "null"]


def convert(conversion, properties, **root):
    schema = {"type": "object", "properties": properties, "required": list(properties), **root}
    outcome = conversion(json.dumps(schema).encode())
    return json.loads(outcome.schema or b""), [(note.where, note.what) for note in outcome.notes], outcome


def cut(name):
    return {"type": "object", "properties": {}, "additionalProperties": False, "description": f"recursive {name}"}


def close_schema(properties, required=()):
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


@pytest.mark.parametrize("conversion", [to_anthropic_output, to_openai_strict])
@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_a_reference_to_a_definition_stays(conversion, keyword):
    reference = {"$ref": f"#/{keyword}/A"}
    document, notes, _ = convert(conversion, {"p": reference}, **{keyword: {"A": TEXT}})
    assert document["properties"]["p"] == reference
    assert document[keyword] == {"A": TEXT}
    assert notes == []


@pytest.mark.parametrize(
    ("reference", "root"),
    [
        ("#/properties/q", {}),
        ("#/$defs/A/properties/x", {"$defs": {"A": {"type": "object", "properties": {"x": TEXT}}}}),
        ("#anchor", {"$defs": {"A": {"type": "array", "items": {**TEXT, "$anchor": "anchor"}}}}),
    ],
)
def test_a_reference_to_another_place_is_inlined(reference, root):
    document, notes, _ = convert(to_anthropic_output, {"q": TEXT, "p": {"$ref": reference}}, **root)
    assert document["properties"]["p"] == TEXT
    assert notes == []


def test_siblings_of_a_reference_override_its_target():
    definitions = {"A": {"type": "string", "description": "theirs", "title": "t", "minLength": 3}}
    beside = {"$ref": "#/$defs/A", "description": "mine", "minLength": 5, "$comment": "c"}
    document, notes, _ = convert(to_anthropic_output, {"p": beside}, **{"$defs": definitions})
    assert document["properties"]["p"] == {
        "type": "string",
        "description": "mine (must have at least 5 characters)",
        "title": "t",
    }
    document, notes, _ = convert(to_anthropic_output, {"p": {**beside, "type": "integer"}}, **{"$defs": definitions})
    assert document["properties"]["p"]["type"] == "integer"
    assert ("/properties/p/type", "conflicting values of type; the first is kept") in notes


def test_definitions_next_to_a_reference_are_not_siblings_to_merge():
    inner = {"$ref": "#/$defs/A", "definitions": {"x": {}}, "$defs": {"y": {}}}
    document, _, _ = convert(to_anthropic_output, {"p": inner}, **{"$defs": {"A": TEXT}})
    assert document["properties"]["p"] == {"$ref": "#/$defs/A"}


def test_an_external_reference_becomes_a_description():
    document, notes, _ = convert(to_anthropic_output, {"p": {"$ref": "http://x/y", "type": "string"}})
    assert document["properties"]["p"] == {"type": "string", "description": "(as described at http://x/y)"}
    assert notes == [("/properties/p/$ref", "reference http://x/y is not in this schema: moved to the description")]


NODE = {"type": "object", "properties": {"v": TEXT, "next": {"$ref": "#/$defs/N"}}, "required": ["v"]}


def test_recursion_is_cut_for_anthropic_at_the_first_turn():
    document, notes, outcome = convert(to_anthropic_output, {"p": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": NODE}})
    assert document["properties"]["p"] == {"$ref": "#/$defs/N"}
    assert document["$defs"] == {"N": close_schema({"v": TEXT, "next": cut("N")}, ["v"])}
    assert notes == [("/$defs/N/properties/next", "recursion of N is cut")]
    assert outcome.narrowed


def test_recursion_of_the_root_is_cut_for_anthropic_and_stays_for_openai():
    properties = {"p": {"$ref": "#", "description": "d"}, "q": TEXT}
    document, notes, _ = convert(to_anthropic_output, properties)
    assert document["properties"]["p"] == cut("the whole schema")
    assert notes == [("/properties/p", "recursion of the whole schema is cut")]
    document, notes, outcome = convert(to_openai_strict, properties)
    assert document["properties"]["p"] == {"$ref": "#"}
    assert notes == [("/properties/p", "keywords next to a recursive reference are dropped")]
    assert not outcome.narrowed


def test_recursion_stays_for_openai_and_needs_no_note_without_siblings():
    document, notes, _ = convert(to_openai_strict, {"p": {"$ref": "#/$defs/N"}}, **{"$defs": {"N": NODE}})
    assert document["$defs"]["N"]["properties"]["next"] == {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}
    assert notes == [("/$defs/N/properties/next", "optional property: null means absent")]


def test_a_ring_of_definitions_is_cut_where_it_closes_and_the_way_in_stays():
    definitions = {
        "In": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}},
        "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
    }
    document, notes, _ = convert(to_anthropic_output, {"p": {"$ref": "#/$defs/In"}}, **{"$defs": definitions})
    assert document["$defs"] == {
        "In": close_schema({"a": {"$ref": "#/$defs/A"}}),
        "A": close_schema({"b": cut("B")}),
        "B": close_schema({"a": cut("A")}),
    }
    assert [where for where, _ in notes] == ["/$defs/A/properties/b", "/$defs/B/properties/a"]


def test_an_inlined_target_that_leads_back_to_itself_is_cut():
    definitions = {"N": {**NODE, "description": "theirs"}}
    inlined = {"$ref": "#/$defs/N", "description": "mine"}
    document, notes, _ = convert(to_anthropic_output, {"p": inlined}, **{"$defs": definitions})
    assert document["properties"]["p"] == {**close_schema({"v": TEXT, "next": cut("N")}, ["v"]), "description": "mine"}
    assert [where for where, _ in notes] == ["/properties/p", "/$defs/N/properties/next"]


def test_references_inside_all_of_are_merged_over_several_hops():
    definitions = {
        "A": {"$ref": "#/$defs/B", "description": "a"},
        "B": {"type": "object", "properties": {"b": TEXT}, "required": ["b"], "description": "b"},
    }
    schema = {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"c": TEXT}, "description": "c"}]}
    document, notes, _ = convert(to_anthropic_output, {"p": schema}, **{"$defs": definitions})
    assert document["properties"]["p"] == {**close_schema({"b": TEXT, "c": TEXT}, ["b"]), "description": "a\nc"}
    assert notes == []


@pytest.mark.parametrize("reference", ["#/$defs/ghost", "http://x/y"])
def test_a_reference_inside_all_of_that_is_not_found_is_dropped_with_a_note(reference):
    document, notes, _ = convert(to_anthropic_output, {"p": {"allOf": [{"$ref": reference, "title": "t"}, TEXT]}})
    assert document["properties"]["p"] == TEXT
    assert notes == [("/properties/p", f"reference {reference} inside allOf is dropped")]


def chain(links, last=TEXT):
    definitions = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(links - 1)}
    return {"$defs": {**definitions, f"d{links - 1}": last}}


def test_a_chain_of_references_inside_all_of_is_followed_thirty_times():
    schema = {"allOf": [{"$ref": "#/$defs/d0"}], "title": "t"}
    document, notes, _ = convert(to_anthropic_output, {"p": schema}, **chain(30))
    assert document["properties"]["p"] == {"type": "string", "title": "t"}
    assert notes == []
    document, notes, _ = convert(to_anthropic_output, {"p": schema}, **chain(31))
    assert document["properties"]["p"] == {"type": SCALARS, "title": "t"}
    assert ("/properties/p", "reference #/$defs/d30 inside allOf is dropped") in notes


def test_a_chain_of_references_with_siblings_is_followed_thirty_one_times_and_cut():
    schema = {"$ref": "#/$defs/d0", "title": "t"}
    document, notes, _ = convert(to_anthropic_output, {"p": schema}, **chain(31))
    assert document["properties"]["p"] == {"type": "string", "title": "t"}
    assert notes == []
    document, notes, _ = convert(to_anthropic_output, {"p": schema}, **chain(32))
    assert document["properties"]["p"] == cut("d31")
    assert notes == [("/properties/p", "recursion of d31 is cut")]


def test_all_of_inside_all_of_is_merged_thirty_times():
    def nest(levels):
        schema = TEXT
        for _ in range(levels):
            schema = {"allOf": [schema]}
        return schema

    assert convert(to_anthropic_output, {"p": nest(30)})[0]["properties"]["p"] == TEXT
    assert convert(to_anthropic_output, {"p": nest(31)})[0]["properties"]["p"] != TEXT


def test_a_union_over_a_reference_takes_what_its_target_takes():
    definitions = {
        "T": {"type": "object", "properties": {"k": {"enum": ["x"]}, "a": TEXT}, "required": ["k"]},
        "U": {"type": "object", "properties": {"k": {"enum": ["y"]}, "a": {"type": ["string", "null"]}}},
    }
    union = {"anyOf": [{"$ref": "#/$defs/T"}, {"$ref": "#/$defs/U"}, TEXT]}
    _, _, outcome = convert(to_openai_strict, {"p": union}, **{"$defs": definitions})
    assert outcome.undo is not None
    assert restore_arguments('{"p":{"k":"x","a":null}}', outcome.undo) == '{"p":{"k":"x"}}'
    assert restore_arguments('{"p":{"k":"y","a":null}}', outcome.undo) == '{"p":{"k":"y","a":null}}'


def test_a_schema_beyond_the_budget_is_narrowed_with_a_note():
    def wide(members):
        return convert(to_anthropic_output, {f"p{i}": TEXT for i in range(members)})

    # The root is the first of all nodes.
    document, notes, outcome = wide(MAX_NODES - 1)
    assert document["properties"][f"p{MAX_NODES - 2}"] == TEXT
    assert notes == []
    document, notes, outcome = wide(MAX_NODES)
    last = f"p{MAX_NODES - 1}"
    assert document["properties"][last] == {"type": SCALARS}
    assert notes == [(f"/properties/{last}", "the schema is too large: the rest is limited to scalar values")]
    assert outcome.narrowed


def test_references_inside_all_of_are_paid_for():
    merged = {"allOf": [{"$ref": "#/$defs/A"}]}
    members = {"first": TEXT, **{f"p{i}": merged for i in range(2500)}}
    document, notes, _ = convert(to_anthropic_output, members, **{"$defs": {"A": TEXT}})
    # The root and the first are one each, and every other is two: itself and its reference.
    assert all(document["properties"][f"p{i}"] == TEXT for i in range(2499))
    assert document["properties"]["p2499"] == {"type": SCALARS}
    document, notes, _ = convert(
        to_anthropic_output, dict.fromkeys(list(members)[1:], merged), **{"$defs": {"A": TEXT}}
    )
    assert notes[0] == ("/properties/p2499", "reference #/$defs/A inside allOf is dropped")


def test_inlining_stops_at_a_depth():
    def bury(schema, levels):
        for _ in range(levels):
            schema = {"type": "array", "items": schema}
        return schema

    definitions = {f"d{i}": bury({"$ref": f"#/$defs/d{i + 1}", "title": "t"}, 42) for i in range(3)}
    definitions["d3"] = bury(TEXT, 2)
    document, notes, _ = convert(
        to_anthropic_output, {"p": {"$ref": "#/$defs/d0", "title": "t"}}, **{"$defs": definitions}
    )
    found = document["properties"]["p"]
    for _ in range(3 * 42):
        found = found["items"]
    # 128 steps from the root is the last place that is still closed.
    assert found == {"type": "array", "items": {"type": SCALARS}, "title": "t"}
    assert {what for _, what in notes} == {"the schema is too large: the rest is limited to scalar values"}


def test_a_reference_to_a_place_around_it_is_recursive():
    around = {"type": "object", "properties": {"q": {"$ref": "#/properties/p"}}}
    document, notes, _ = convert(to_anthropic_output, {"p": around, "pp": {"$ref": "#/properties/p/properties/q"}})
    assert document["properties"]["p"] == close_schema({"q": cut("p")})
    assert document["properties"]["pp"] == close_schema({"q": cut("p")})
    assert ("/properties/p/properties/q", "recursion of p is cut") in notes


def test_a_union_over_a_target_without_a_type_takes_what_its_keywords_mean():
    definitions = {"T": {"properties": {"a": TEXT}}, "Any": {}}
    union = {"anyOf": [{"$ref": "#/$defs/Any"}, {"$ref": "#/$defs/T"}]}
    _, _, outcome = convert(to_openai_strict, {"p": union}, **{"$defs": definitions})
    assert outcome.undo is not None
    assert restore_arguments('{"p":{"a":null}}', outcome.undo) == '{"p":{}}'


def test_a_budget_is_five_thousand_nodes():
    assert MAX_NODES == 5000


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ({"enum": [1, None]}, True),
        ({"$ref": "#/$defs/Null"}, True),
        ({"anyOf": [{"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}, {"$ref": "#/$defs/Null"}]}, True),
        ({"anyOf": [{"$ref": "#/$defs/T"}, TEXT]}, False),
        (TEXT, False),
    ],
)
def test_null_is_kept_where_the_target_of_a_reference_takes_it(target, kept):
    definitions = {"T": target, "Null": {"type": ["string", "null"]}}
    _, notes, outcome = convert(to_openai_strict, {"p": {"$ref": "#/$defs/T"}}, required=[], **{"$defs": definitions})
    absent = ("/properties/p", "optional property: null means absent")
    assert (absent in notes) is not kept
    back = restore_arguments('{"p":null}', outcome.undo) if outcome.undo else '{"p":null}'
    assert back == ('{"p":null}' if kept else "{}")


def test_alternatives_are_distinguished_by_their_constants():
    leaf = {"type": "object", "properties": {"k": {"const": "leaf"}, "n": TEXT}, "required": ["k"]}
    tree = {"type": "object", "properties": {"k": {"const": "tree"}, "n": {"type": ["string", "null"]}}}
    union = {"anyOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/tree"}]}
    _, _, outcome = convert(to_openai_strict, {"p": union}, **{"$defs": {"leaf": leaf, "tree": tree}})
    assert restore_arguments('{"p":{"k":"leaf","n":null}}', outcome.undo) == '{"p":{"k":"leaf"}}'
    assert restore_arguments('{"p":{"k":"tree","n":null}}', outcome.undo) == '{"p":{"k":"tree","n":null}}'
