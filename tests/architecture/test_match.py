"""A `match` says what happens to every value: over a closed union its last case is `assert_never`.

Pyright checks that the union is closed; this test finds a `match` that ends without a case for the rest.
"""

import ast

import pytest

from architecture.tree import each, modules, name_of, parse


def has_case_for_the_rest(node: ast.Match) -> bool:
    last = node.cases[-1]
    return isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None


@each(modules("src/dragoman"))
def test_every_match_ends_in_a_case_for_the_rest(path):
    matches = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Match)]
    found = [node.lineno for node in matches if not has_case_for_the_rest(node)]
    assert not found, f"{name_of(path)} lines {found}"


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ("case int(): pass", False),
        ("case int(): pass\n    case _ if a: pass", False),
        ("case int(): pass\n    case _: assert_never(a)", True),
        ("case int(): pass\n    case other: use(other)", True),
    ],
)
def test_the_search_finds_a_match_that_is_open_ended(cases, expected):
    (node,) = ast.parse(f"match a:\n    {cases}").body
    assert isinstance(node, ast.Match)
    assert has_case_for_the_rest(node) is expected
