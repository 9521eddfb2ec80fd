"""Laws over generated schemas: arguments under the adapted schema, restored, match the caller's own schema."""

import json

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.test_corpus_schemas import FILES, rows
from dragoman.interpreter.schema.arguments import ArgumentUndo, restore_arguments
from dragoman.interpreter.schema.conversion import convert_history_arguments
from dragoman.interpreter.schema.gemini_json import convert_gemini
from dragoman.interpreter.schema.openapi import to_openapi
from dragoman.interpreter.schema.plain import adapt_gemini, adapt_root, to_json_schema
from dragoman.interpreter.schema.roots import convert_root, to_openai_strict
from dragoman.interpreter.schema.validation import check_arguments
from shelf import needs_shelf

NAMES = st.sampled_from(["a", "b", "type", "enum", "$comment", "properties", "x y", "é"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1", "true", "null", "2.5", "é"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2), max_leaves=4
)
LEAVES = st.one_of(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "boolean"},
            {"type": "number", "exclusiveMinimum": -10},
            {"type": "integer", "exclusiveMinimum": -5, "maximum": 5},
            {"type": ["integer", "null"]},
            {"type": ["string", "boolean"]},
            {"type": "array"},
            {"type": "object"},
            {"$ref": "#/$defs/shared"},
            {},
            True,
        ]
    ),
    st.lists(VALUES.filter(lambda value: value != ""), min_size=1, max_size=4).map(lambda values: {"enum": values}),
    SCALARS.filter(lambda value: value not in ("", True, False)).map(lambda value: {"const": value}),
)


def objects(inner):
    return st.dictionaries(NAMES, inner, min_size=1, max_size=3).flatmap(
        lambda properties: st.sets(st.sampled_from(sorted(properties))).map(
            lambda required: {"type": "object", "properties": properties, "required": sorted(required)}
        )
    )


def combine(inner):
    return st.one_of(
        objects(inner),
        inner.map(lambda items: {"type": "array", "items": items}),
        st.just({"type": "object", "additionalProperties": {"type": "integer"}}),
    )


def unions(inner):
    return st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})


def add_root(schemas):
    return objects(schemas).map(lambda root: {**root, "$defs": {"shared": {"enum": [1, "one", None]}}})


ROOTS = add_root(st.recursive(LEAVES, lambda inner: combine(inner) | unions(inner), max_leaves=8))
PLAIN_ROOTS = add_root(st.recursive(LEAVES, combine, max_leaves=8))
"""In a union a value may have several forms."""


@st.composite
def arguments_under(draw, schema):
    """A value as a model would generate it for a converted `Schema`, with some numbers as doubles."""
    if schema.get("nullable") and draw(st.booleans()):
        return None
    if "anyOf" in schema:
        return draw(arguments_under(draw(st.sampled_from(schema["anyOf"]))))
    if "any JSON value" in schema.get("description", ""):
        return json.dumps(draw(VALUES))
    if "a JSON object, written" in schema.get("description", ""):
        return json.dumps(draw(st.dictionaries(NAMES, st.integers(), max_size=2)))
    match schema["type"]:
        case "STRING":
            return draw(st.sampled_from(schema["enum"]) if "enum" in schema else st.sampled_from(["", "x", "1", "{}"]))
        case "INTEGER":
            return draw(
                st.integers(schema.get("minimum", -4), schema.get("maximum", 5)).flatmap(
                    lambda n: st.sampled_from([n, float(n)])
                )
            )
        case "NUMBER":
            return draw(st.sampled_from([-1.5, 0, 2.0]))
        case "BOOLEAN":
            required = {"(must be true)": True, "(must be false)": False}.get(schema.get("description", ""))
            return draw(st.booleans()) if required is None else required
        case "ARRAY":
            return draw(st.lists(arguments_under(schema["items"]), max_size=2))
        case "OBJECT":
            names = schema.get("required", [])
            optional = [name for name in schema.get("properties", {}) if name not in names and draw(st.booleans())]
            return {name: draw(arguments_under(schema["properties"][name])) for name in [*names, *optional]}
    return None


def is_equivalent(content, result):
    """Return whether two values are equivalent; where any value is allowed, null and text may also be JSON text."""
    if content is None or isinstance(content, str):
        return result in (content, json.dumps(content))
    if isinstance(content, list):
        return len(content) == len(result) and all(map(is_equivalent, content, result))
    if isinstance(content, dict):
        return content.keys() == result.keys() and all(is_equivalent(content[name], result[name]) for name in content)
    return content == result


LAW = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@LAW
@given(root=ROOTS, data=st.data())
def test_arguments_under_googles_schema_match_the_callers_schema_once_restored(root, data):
    schema = json.dumps(root).encode()
    converted = to_openapi(schema)
    content = json.dumps(data.draw(arguments_under(json.loads(converted.schema or b""))))
    back = restore_arguments(content, converted.undo) if converted.undo else content
    assert check_arguments(schema, back) == [], (content, back)


@LAW
@given(root=PLAIN_ROOTS, data=st.data())
def test_arguments_under_googles_schema_are_sent_again_unchanged(root, data):
    converted = to_openapi(json.dumps(root).encode())
    content = json.dumps(data.draw(arguments_under(json.loads(converted.schema or b""))))
    undo = converted.undo or ArgumentUndo()
    result = convert_history_arguments(restore_arguments(content, undo), undo)
    assert is_equivalent(json.loads(content), json.loads(result)), (content, result)


@LAW
@given(root=ROOTS, data=st.data())
def test_arguments_that_match_the_callers_schema_survive_every_adapted_schema(root, data):
    schema = json.dumps(root).encode()
    google = to_openapi(schema)
    assert_whole(schema, google, json.dumps(data.draw(arguments_under(json.loads(google.schema or b"")))))


def assert_whole(schema, google, content):
    """Check that the meaning of arguments under Google's schema survives the schemas of all targets."""
    meant = restore_arguments(content, google.undo) if google.undo else content
    for converted in (google, adapt_gemini(schema), adapt_root(schema, property_keys=True), to_openai_strict(schema)):
        undo = converted.undo or ArgumentUndo()
        result = convert_history_arguments(meant, undo)
        assert json.loads(restore_arguments(result, undo)) == json.loads(meant), result


@needs_shelf
@LAW
@given(data=st.data())
def test_arguments_that_match_a_recorded_schema_survive_every_adapted_schema(data):
    schema = data.draw(st.sampled_from(rows(data.draw(st.sampled_from(FILES)))))[1]
    google = to_openapi(schema)
    assume(google.schema is not None)
    assert_whole(schema, google, json.dumps(data.draw(arguments_under(json.loads(google.schema or b"")))))


@LAW
@given(root=ROOTS)
def test_conversions_are_functions_of_the_bytes(root):
    schema = json.dumps(root).encode()
    for convert in (to_openapi, convert_gemini, convert_root, to_openai_strict):
        assert convert.__wrapped__(schema) == convert.__wrapped__(bytes(bytearray(schema)))


@LAW
@given(root=ROOTS, data=st.data())
def test_arguments_that_match_the_callers_schema_match_the_adapted_root_and_survive(root, data):
    google = json.loads(to_openapi(json.dumps(root).encode()).schema or b"")
    assert_fitting(root, json.dumps(data.draw(arguments_under(google))))


@pytest.mark.parametrize("meant", [-1, {"k": "v"}, {}])
def test_a_constant_next_to_an_open_object_keeps_its_number_type(meant):
    union = [{"type": "object", "additionalProperties": {"type": "string"}}, {"const": -1}]
    for either in (union, union[::-1]):
        root = {"type": "object", "properties": {"a": {"anyOf": either}}}
        assert assert_fitting(root, json.dumps({"a": json.dumps(meant)})) == {"a": meant}


def assert_fitting(root, content):
    """Check that arguments under Google's schema match the adapted root; return the restored arguments."""
    schema = json.dumps(root).encode()
    adapted, undo = adapt_root(schema, property_keys=True), to_openapi(schema).undo
    assert adapted.schema is not None
    names = {meant: sent for sent, meant in (adapted.undo.renamed if adapted.undo else {}).items()}
    meant = json.loads(restore_arguments(content, undo) if undo else content)
    sent = json.dumps({names.get(name, name): value for name, value in meant.items()})
    assert check_arguments(adapted.schema, sent) == []
    assert json.loads(restore_arguments(sent, adapted.undo) if adapted.undo else sent) == meant
    return meant


@LAW
@given(root=ROOTS)
def test_a_schema_there_and_back_is_legal_json_schema(root):
    import jsonschema_rs

    converted = to_openapi(json.dumps(root).encode()).schema
    assert converted is not None
    assert jsonschema_rs.meta.is_valid(json.loads(to_json_schema(converted).schema or b""))


@LAW
@given(text=st.text(), root=ROOTS)
def test_text_that_is_no_json_is_never_touched(text, root):
    undo = to_openapi(json.dumps(root).encode()).undo
    try:
        json.loads(text)
    except ValueError:
        assert undo is None or restore_arguments(text, undo) is text
