"""The fast path for plain schemas gives the same results as the general code, and most tools in use are plain."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.test_corpus_schemas import FILES, rows
from dragoman.interpreter.schema.plain import prove_plain
from interpreter.schema.test_plain import assert_same_as_general
from shelf import needs_shelf

MCP = ("docker-mcp-registry", "github-mcp-server", "kubernetes-mcp-server", "mcp-servers-live")
NAMES = st.sampled_from(["a", "b", "type", "x y", "é", ""])
KINDS = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])
ODD = st.sampled_from([None, True, False, 0, -1, 1.0, 1.5, "1", "", "any", [], {}, ["a"], ["a", "a"], [1], 2**70])
NUMBERS = st.integers(-2, 9) | st.sampled_from([0.5, 1.0, 1e300])
VALUES = ODD | st.lists(ODD, max_size=2) | st.dictionaries(NAMES, ODD, max_size=2)
RIGHT = {
    "type": KINDS | st.lists(KINDS, min_size=1, max_size=2),
    "title": st.sampled_from(["", "t", "integer"]),
    "description": st.sampled_from(["", "d", "\x00\n\u2028é😀"]),
    "enum": st.lists(VALUES, max_size=3),
    "const": VALUES,
    "default": VALUES,
    "examples": st.lists(VALUES, max_size=2),
    "format": st.sampled_from(["date", "enum", "int64"]),
    "pattern": st.sampled_from(["^a$", "("]),
    "required": st.lists(NAMES, max_size=2),
    "uniqueItems": st.booleans(),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties"), st.integers(0, 3)),
}
FOREIGN = st.sampled_from(["$ref", "$id", "$schema", "nullable", "id", "not", "prefixItems", "definitions", "x-any"])


def keywords(inner):
    """Keywords with valid values."""
    holding = {
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "items": inner,
        "propertyNames": inner,
        "additionalProperties": st.booleans() | inner,
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), st.lists(inner, min_size=1, max_size=2)),
    }
    return st.fixed_dictionaries({}, optional={**RIGHT, **holding})


NODES = st.recursive(st.fixed_dictionaries({}, optional={"type": KINDS}), keywords, max_leaves=6)


@st.composite
def roots(draw):
    """Object schemas, most of them plain; now and then one keyword is odd."""
    root = {"type": "object", "properties": draw(st.dictionaries(NAMES, NODES, max_size=3))}
    root["required"] = draw(st.lists(st.sampled_from([*root["properties"], "a"]), max_size=2))
    member = next(iter(root["properties"].values()), root)
    if draw(st.integers(0, 3)) == 0:
        member[draw(st.sampled_from([*RIGHT, "properties", "items", "additionalProperties", "anyOf"]))] = draw(ODD)
    if draw(st.integers(0, 3)) == 0:
        draw(st.sampled_from([root, member]))[draw(FOREIGN)] = draw(ODD)
    return root


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(root=roots(), indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_the_proof_of_a_made_up_schema_decides_as_the_general_code_does(root, indent, ascii_only):
    assert_same_as_general(json.dumps(root, indent=indent, ensure_ascii=ascii_only).encode())


@needs_shelf
@pytest.mark.parametrize("name", FILES)
def test_the_proof_of_every_recorded_schema_decides_as_the_general_code_does(name):
    for _, schema in rows(name):
        assert_same_as_general(schema)


def share(names, field):
    proofs = [prove_plain(schema) for name in names for _, schema in rows(name)]
    return sum(getattr(proof, field) for proof in proofs) / len(proofs)


@needs_shelf
@pytest.mark.parametrize(
    ("names", "field", "least"),
    [
        (MCP, "valid", 0.96),
        (MCP, "fits_gemini", 0.91),
        (MCP, "fits_root", 0.91),
        (["bfcl-normalised"], "valid", 0.99),
        (["bfcl-normalised"], "fits_gemini", 0.97),
        (["bfcl-normalised"], "fits_root", 0.97),
    ],
)
def test_most_recorded_tools_are_proven_plain(names, field, least):
    assert share(names, field) >= least
