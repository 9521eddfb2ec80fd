"""Words, facts, clauses and patterns."""

import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.simulator.model.language.clauses import clauses
from dragoman.simulator.model.language.facts import conjoined, facts
from dragoman.simulator.model.language.words import stem, stems
from dragoman.simulator.model.schemas.patterns import written
from dragoman.simulator.model.schemas.validity import fits_pattern


@pytest.mark.parametrize(
    "forms",
    [
        ("search", "searches", "searching", "searched"),
        ("multiply", "multiplies", "multiplied"),
        ("translate", "translation", "translates", "translating", "translator"),
        ("city", "cities"),
        ("calculate", "calculator", "calculation"),
        ("file", "files"),
        ("user", "users", "user's"),
        ("run", "runs"),
    ],
)
def test_forms_of_a_word_have_one_stem(forms):
    assert len({stem(form) for form in forms}) == 1


def test_different_words_stay_different():
    assert len({stem(word) for word in ("bee", "be", "string", "weather", "wet", "user", "use", "ring")}) == 8


def test_identifiers_are_cut_into_words():
    assert stems("getUserByID") == ["get", "user", "by", "id"]
    assert stems("list_HTTPServers-now") == ["list", "http", stem("server"), "now"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.org/a?b=1.", [("url", "https://example.org/a?b=1")]),
        ("mail ada@example.org!", [("email", "ada@example.org")]),
        ("it's 'so' and “so” and `so`", [("quoted", "so"), ("quoted", "so"), ("code", "so")]),
        ("on 2025-03-04, 4 March 2025, 3/4/2025 and 4.3.2025", [("date", "2025-03-04")] * 4),
        ("at 2025-03-04 10:30", [("datetime", "2025-03-04T10:30")]),
        ("at 10:30 or 3 pm", [("time", "10:30"), ("time", "3 pm")]),
        ("edit ./a.py, ~/b/c and notes.md", [("path", "./a.py"), ("path", "~/b/c"), ("path", "notes.md")]),
        ("from www.example.org", [("host", "www.example.org")]),
        ("-3, 1,000 and 2.5e3 of three", [("number", -3), ("number", 1000), ("number", 2500.0), ("number", 3)]),
        ("10km at 5%", [("number", 10), ("number", 5)]),
        ("order A1B2 or PROJ-12 or 0-7653-1178-X", [("id", "A1B2"), ("id", "PROJ-12"), ("id", "0-7653-1178-X")]),
        ("go to New York and Rio de Janeiro", [("name", "New York"), ("name", "Rio de Janeiro")]),
        ("Paris is nice", [("opening", "Paris")]),
        ("Invent a thing", []),
        ("I think that it is", []),
        ("tomorrow", [("day", "tomorrow")]),
        ("in new delhi", [("phrase", "new delhi")]),
    ],
)
def test_facts_are_found(text, found):
    assert [(fact.kind, fact.value) for fact in facts(text)] == found


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("in Paris, Tokyo and Rome", [["Paris", "Tokyo", "Rome"]]),
        ("from Paris to Rome", []),
        ("in Lyon, Metz", []),
        ("5 and 6 of 'a', 'b'", [["5", "6"], ["a", "b"]]),
    ],
)
def test_enumerations_are_found(text, groups):
    assert [[fact.text for fact in group] for group in conjoined(text, facts(text))] == groups


def test_clauses_end_with_sentences_but_not_inside_of_quotes_and_names():
    told = clauses("Say 'a. B; c' to St. Mary. Then go! And then rest; done")
    assert [piece.text for piece in told] == ["Say 'a. B; c' to St. Mary", "go!", "rest", "done"]


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[A-Z]{2}\d{4}$", r"^(a|b)+c?$", r"^\w+([.-]\w+)*@\w+\.[a-z]{2,3}$", r"^[^\s/]+$", r"^\+?[1-9]\d{1,14}$",
        r"^(?:https?://)?[\w.-]+$", r"^\{[a-z]+\}$", r"^[\]\[-]$", r"^(?<year>\d{4})$", r"^\x41\u0042$", r"^a{2,}b{0}$",
        r"^\p{Lu}\p{L}+$", r"^(x)\1$", r"a|b", r"", r"^[\d\-x]+$", r"^.{3,5}$", r"^\s\S\D\W$", r"^$",
    ],
)  # fmt: skip
def test_a_text_is_written_for_a_pattern(pattern):
    assert fits_pattern(pattern, written(pattern))
    assert any(fits_pattern(pattern, written(pattern, 0, Random(seed))) for seed in range(20))  # noqa: S311


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(alphabet="ab01[](){}|*+?^$.\\-,:<=!PdwDu", max_size=20), st.integers(0, 9))
def test_no_pattern_is_too_odd(pattern, seed):
    assert isinstance(written(pattern, 3, Random(seed)), str)  # noqa: S311


@pytest.mark.parametrize("piece", ["a", "a.", "1-", "' \" ` “", "A b ", "a/", "<a-b>", "1+", "a@", "```\n", "-", "é, "])
def test_long_lines_cost_no_more_than_their_length(piece):
    def cost(size: int) -> float:
        text = (piece * size)[:size]
        start = time.process_time()
        facts(text)
        return time.process_time() - start

    small, large = min(cost(2000) for _ in range(3)), min(cost(16000) for _ in range(3))
    assert large < 60 * small + 0.05
