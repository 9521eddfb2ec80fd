"""Regular expressions that match in linear time find what Python's own find."""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.interpreter.linear_pattern import LinearPattern

TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "aab",
    "abab",
    "get_weather",
    "weather forecast",
    "get_user_data",
    "A1",
    "aaa",
    "c\nb",
    "7",
]
PATTERNS = [
    "weather",
    "get_.*_data",
    "database.*query|query.*database",
    "(?i)SLACK|WEATHER",
    "^get",
    "data$",
    "^$",
    r"\w+_\d",
    r"[a-c]+b",
    r"[^a]",
    r"[]a]",
    r"a{2}",
    r"a{2,}",
    r"a{0,2}b",
    r"(ab){2}",
    r"(?:ab|b)*$",
    r"(?P<x>a)b",
    r"a+?b",
    r"\.",
    r"a\nb|c\nb",
    "",
    "a||b",
    "x*",
    "a{,2}c",
    "a{b",
    r"\Aa\Z",
    r"(a|b)?7",
    r"(a*)*b",
    r"a{0}7",
    r"[\w-]+t",
    r".+",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_pythons_own_matches(pattern):
    for text in TEXTS:
        expected = re.search(pattern, text.lower(), re.IGNORECASE) is not None
        assert LinearPattern(pattern).search(text) == expected, text


def atoms():
    return st.sampled_from(["a", "b", "c", ".", "[ab]", "[^b]", r"\w"])


def patterns():
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(
            st.builds("({}|{})".format, inner, inner),
            st.builds("{}{}".format, inner, inner),
            st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,1}"])),
        ),
        max_leaves=8,
    )


@settings(max_examples=300, deadline=None)
@given(pattern=patterns(), text=st.text(alphabet="abcd", max_size=12))
def test_a_generated_pattern_matches_what_pythons_own_matches(pattern, text):
    assert LinearPattern(pattern).search(text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)",
        "[a",
        "*a",
        r"(a)\1",
        "a(?=b)",
        "(?<!a)b",
        "a\\",
        r"\q",
        "a{5,2}",
        "a{5000}",
        "(a{50}){50}",
        "[z-a]",
        "a{2}*",
        "a**",
    ],
)
def test_what_has_no_automaton_or_is_wrong_is_an_error(pattern):
    with pytest.raises(ValueError, match=r"\w"):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", ["(" * 199, "(((){999}){999}){999}", "(" * 60 + "a" + ")" * 60])
def test_a_pattern_that_is_costly_to_read_is_an_error(pattern):
    with pytest.raises(ValueError, match=r"\w"):
        LinearPattern(pattern)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r"(\w+\s?)+$!", "(a?){50}a{50}"])
def test_a_pattern_that_takes_others_hours_takes_few_steps(pattern):
    compiled = LinearPattern(pattern)
    assert compiled.search("a" * 5_000 + "!") in (True, False)


def test_a_pattern_with_too_many_states_is_an_error():
    compiled = LinearPattern(r"(a|b)*a(a|b){180}c")
    text = "".join(Random(1).choices("ab", k=20_000))  # noqa: S311  a seeded test
    with pytest.raises(ValueError, match="too many steps"):
        compiled.search(text)
