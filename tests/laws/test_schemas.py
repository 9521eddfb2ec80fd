"""Laws over made-up schemas: what a model says under the adapted schema, restored, fits the caller's own schema."""

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


def combined(inner):
    return st.one_of(
        objects(inner),
        inner.map(lambda items: {"type": "array", "items": items}),
        st.just({"type": "object", "additionalProperties": {"type": "integer"}}),
    )


def unions(inner):
    return st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})


def rooted(schemas):
    return objects(schemas).map(lambda root: {**root, "$defs": {"shared": {"enum": [1, "one", None]}}})


ROOTS = rooted(st.recursive(LEAVES, lambda inner: combined(inner) | unions(inner), max_leaves=8))
PLAIN_ROOTS = rooted(st.recursive(LEAVES, combined, max_leaves=8))
"""In a union a value may be said in several ways."""


@st.composite
def said_under(draw, schema):
    """A value as a model would say it under a converted `Schema`, numbers now and then as doubles."""
    if schema.get("nullable") and draw(st.booleans()):
        return None
    if "anyOf" in schema:
        return draw(said_under(draw(st.sampled_from(schema["anyOf"]))))
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
            return draw(st.lists(said_under(schema["items"]), max_size=2))
        case "OBJECT":
            names = schema.get("required", [])
            optional = [name for name in schema.get("properties", {}) if name not in names and draw(st.booleans())]
            return {name: draw(said_under(schema["properties"][name])) for name in [*names, *optional]}
    return None


def is_told(said, told):
    """Tell whether what was said is told; null and text may be said as such or as JSON text where any value goes."""
    if said is None or isinstance(said, str):
        return told in (said, json.dumps(said))
    if isinstance(said, list):
        return len(said) == len(told) and all(map(is_told, said, told))
    if isinstance(said, dict):
        return said.keys() == told.keys() and all(is_told(said[name], told[name]) for name in said)
    return said == told


LAW = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@LAW
@given(root=ROOTS, data=st.data())
def test_what_is_said_under_googles_schema_fits_the_callers_once_restored(root, data):
    schema = json.dumps(root).encode()
    converted = to_openapi(schema)
    said = json.dumps(data.draw(said_under(json.loads(converted.schema or b""))))
    back = restore_arguments(said, converted.undo) if converted.undo else said
    assert check_arguments(schema, back) == [], (said, back)


@LAW
@given(root=PLAIN_ROOTS, data=st.data())
def test_what_is_said_under_googles_schema_is_told_again_as_it_was_said(root, data):
    converted = to_openapi(json.dumps(root).encode())
    said = json.dumps(data.draw(said_under(json.loads(converted.schema or b""))))
    undo = converted.undo or ArgumentUndo()
    told = convert_history_arguments(restore_arguments(said, undo), undo)
    assert is_told(json.loads(said), json.loads(told)), (said, told)


@LAW
@given(root=ROOTS, data=st.data())
def test_what_fits_the_caller_comes_back_whole_whatever_schema_it_is_told_under(root, data):
    schema = json.dumps(root).encode()
    google = to_openapi(schema)
    assert_whole(schema, google, json.dumps(data.draw(said_under(json.loads(google.schema or b"")))))


def assert_whole(schema, google, said):
    """Hold what is meant by something said under Google's schema to what comes back of it from each target."""
    meant = restore_arguments(said, google.undo) if google.undo else said
    for converted in (google, adapt_gemini(schema), adapt_root(schema, property_keys=True), to_openai_strict(schema)):
        undo = converted.undo or ArgumentUndo()
        told = convert_history_arguments(meant, undo)
        assert json.loads(restore_arguments(told, undo)) == json.loads(meant), told


@needs_shelf
@LAW
@given(data=st.data())
def test_what_fits_a_recorded_schema_comes_back_whole_whatever_schema_it_is_told_under(data):
    schema = data.draw(st.sampled_from(rows(data.draw(st.sampled_from(FILES)))))[1]
    google = to_openapi(schema)
    assume(google.schema is not None)
    assert_whole(schema, google, json.dumps(data.draw(said_under(json.loads(google.schema or b"")))))


@LAW
@given(root=ROOTS)
def test_conversions_are_functions_of_the_bytes(root):
    schema = json.dumps(root).encode()
    for convert in (to_openapi, convert_gemini, convert_root, to_openai_strict):
        assert convert.__wrapped__(schema) == convert.__wrapped__(bytes(bytearray(schema)))


@LAW
@given(root=ROOTS, data=st.data())
def test_arguments_that_fit_the_caller_fit_the_fitted_root_and_come_back_whole(root, data):
    google = json.loads(to_openapi(json.dumps(root).encode()).schema or b"")
    assert_fitting(root, json.dumps(data.draw(said_under(google))))


@pytest.mark.parametrize("meant", [-1, {"k": "v"}, {}])
def test_a_constant_beside_an_object_of_any_members_comes_back_as_the_number_it_is(meant):
    union = [{"type": "object", "additionalProperties": {"type": "string"}}, {"const": -1}]
    for either in (union, union[::-1]):
        root = {"type": "object", "properties": {"a": {"anyOf": either}}}
        assert assert_fitting(root, json.dumps({"a": json.dumps(meant)})) == {"a": meant}


def assert_fitting(root, said):
    """Hold what is meant by something said under Google's schema to the fitted root; return what is meant."""
    schema = json.dumps(root).encode()
    fitted, undo = adapt_root(schema, property_keys=True), to_openapi(schema).undo
    assert fitted.schema is not None
    names = {meant: sent for sent, meant in (fitted.undo.renamed if fitted.undo else {}).items()}
    meant = json.loads(restore_arguments(said, undo) if undo else said)
    sent = json.dumps({names.get(name, name): value for name, value in meant.items()})
    assert check_arguments(fitted.schema, sent) == []
    assert json.loads(restore_arguments(sent, fitted.undo) if fitted.undo else sent) == meant
    return meant


@LAW
@given(root=ROOTS)
def test_a_schema_there_and_back_is_legal_json_schema(root):
    import jsonschema_rs

    there = to_openapi(json.dumps(root).encode()).schema
    assert there is not None
    assert jsonschema_rs.meta.is_valid(json.loads(to_json_schema(there).schema or b""))


@LAW
@given(text=st.text(), root=ROOTS)
def test_text_that_is_no_json_is_never_touched(text, root):
    undo = to_openapi(json.dumps(root).encode()).undo
    try:
        json.loads(text)
    except ValueError:
        assert undo is None or restore_arguments(text, undo) is text
