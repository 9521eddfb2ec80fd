"""Names and texts use the words of the field: no gerund modules, no class name twice, no private vocabulary."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from architecture.tree import ROOT, each, modules, name_of, parsed

SOURCES = modules("src/dragoman")

GERUNDS = {"encoding", "grounding", "pairing", "reasoning"}
"""Last words of module names that are nouns of HTTP, of Gemini, of this package and of the vendors."""
NOT_GERUNDS = {"string", "thing", "ping"}

PRIVATE_WORDS = re.compile(
    r"\b(told|tells?|telling|said|stands?|stood|somebody|nobody|everybody|whoever|heeds?|heeded|booked|minted|mends?|"
    r"mended|mending|borne|bears|beside|has the word|is no more|comes of|let in|let go|of ours|of theirs|"
    r"goes along|looks on|looker|is asked|straight way|way back|words for|wishes|wish)\b",
    re.IGNORECASE,
)
"""Words that this project used in a sense of its own; the field has a plain word for each of them."""

MODEL_TEXTS = {
    "src/dragoman/interpreter/text_calls/prompt.py",
    "src/dragoman/interpreter/text_calls/templates.py",
}
"""Modules whose strings are prompts: models were measured with exactly these words."""
VENDOR_TEXTS = "src/dragoman/simulator/apis/"
"""The simulated APIs repeat the vendors' own wording."""

DUPLICATES: dict[str, set[str]] = {}
"""Public class names that are used in two packages, each with its reason."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text


def other_strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings of more than two words that are no docstrings: messages, reasons, help."""
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            text = node.value
            yield from [(node.lineno, text)] if text.count(" ") > 1 else []


def found_in(texts: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"{line}: {match.group()!r} in {text[:80]!r}" for line, text in texts if (match := PRIVATE_WORDS.search(text))
    ]


@each(SOURCES)
def test_a_module_is_named_by_a_noun(path):
    last = path.stem.split("_")[-1]
    assert not last.endswith("ing") or last in GERUNDS | NOT_GERUNDS, f"{name_of(path)} is named by a gerund"


@each(SOURCES)
def test_docstrings_use_plain_words(path):
    assert not found_in(docstrings(parsed(path)))


@each([p for p in SOURCES if name_of(p) not in MODEL_TEXTS and not name_of(p).startswith(VENDOR_TEXTS)])
def test_messages_use_plain_words(path):
    assert not found_in(other_strings(parsed(path)))


@each(sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]))
def test_documents_use_plain_words(path):
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
    assert not found_in(iter([(0, line) for line in text.splitlines()]))


def test_no_public_class_name_is_used_twice():
    names: Counter[str] = Counter()
    for path in SOURCES:
        if not name_of(path).startswith("src/dragoman/simulator"):
            classes = [node.name for node in parsed(path).body if isinstance(node, ast.ClassDef)]
            names.update(name for name in classes if not name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} <= DUPLICATES.keys()


def test_the_glossary_has_at_most_25_terms():
    rows = [line for line in Path(ROOT, "docs", "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert len(rows) - 1 <= 25
