"""Names and texts use the words of the field: no gerund modules, no class name twice, no private vocabulary."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from architecture.tree import ROOT, each, modules, name_of, parse

SOURCES = modules("src/dragoman")
TESTS = [*modules("tests"), *modules("benchmarks")]

GERUNDS = {"encoding", "grounding", "pairing", "reasoning"}
"""Last words of module names that are nouns of HTTP, of Gemini, of this package and of the vendors."""
NOT_GERUNDS = {"string", "thing", "ping"}

PRIVATE_WORDS = re.compile(
    r"\b(told|tells?|telling|said|stands?|stood|somebody|nobody|everybody|whoever|heeds?|heeded|booked|minted|mends?|"
    r"mended|mending|borne|bears|beside|has the word|is no more|comes of|let in|let go|of ours|of theirs|"
    r"goes along|looks on|looker|is asked|straight way|way back|words for|wishes|wish|looked at|retold|sealed|spoken|"
    r"asks back|what is no|films|anew|roster|crew|knobs?)\b",
    re.IGNORECASE,
)
"""Words that this project used in a sense of its own; the field has a plain word for each of them."""

MODEL_TEXTS = (
    "was not run: it needs approval",
    "there is nobody to ask",
    "nobody answered within",
    "that cannot be told here]",
    "ran, but what it returned cannot be told",
    "Whoever stands there made it",
    "What stands between the two lines with",
    "The tool asks back before it answers",
    "answered with what is no result",
)
"""Sentences that models read, and that come back in histories: they do not change with the language of the project."""
VENDOR_TEXTS = "src/dragoman/simulator/apis/"
"""The simulated APIs repeat the vendors' own wording."""
MODEL_WORDS = "src/dragoman/simulator/model/"
"""The simulated model answers as a person would talk, and lists words of prompts."""
SQL = re.compile(r"^(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH)\b")

PRIVATE_NAMES = frozenset(
    [
        "told",
        "said",
        "heard",
        "heeded",
        "minted",
        "booked",
        "borne",
        "spoken",
        "retold",
        "wish",
        "asker",
        "carrier",
        "carry",
        "carrying",
        "roster",
        "crew",
        "bench",
        "desk",
        "vault",
        "pulse",
        "knobs",
        "kin",
        "looker",
        "onlooker",
        "remembered",
        "onward",
        "fitted",
        "fitter",
        "carried",
    ]
)
"""Words that no class, function, parameter or variable has in its name."""
WHOLE_NAMES = frozenset({"here", "there", "holds"})
"""Names that say nothing alone; as a word of a longer name they are plain English."""
VAULT_SERVER = ("tests/real_clients/launch.py", "tests/real_clients/test_other_tools.py")
"""These run an MCP server that has a vault."""

PARTICIPLES = re.compile(
    r"told|said|heard|kept|sent|held|found|known|given|taken|begun|written|made|met|seen|spoken|shown|built|drawn|lost|"
    r"paid|sought|brought|led|left|meant|[a-z]{3,}ed|[a-z]{2,}ing"
)
NOT_PARTICIPLES = {"need", "feed", "embed", "ping", "ring", "closing", "running", "closed"}
"""Verbs that look like participles, and names of the public API and of mitmproxy."""
FIXTURE = re.compile(r"fixture|property|\btool\b|cached")
"""Decorators of functions that are read as values, or that give a tool its name."""

DUPLICATES = {
    "FileData": "Gemini's wire format, and the input of the MCP tool `query`, which uses Gemini's words",
    "Part": "a part of the core, and of the input of the MCP tool `query`",
    "Request": "a request of the core, and an HTTP request",
}
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
            text = node.value.strip()
            if text.count(" ") > 1 and not SQL.match(text) and not any(known in text for known in MODEL_TEXTS):
                yield node.lineno, text


def find_in(texts: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"{line}: {match.group()!r} in {text[:80]!r}" for line, text in texts if (match := PRIVATE_WORDS.search(text))
    ]


@each(SOURCES)
def test_a_module_is_named_by_a_noun(path):
    last = path.stem.split("_")[-1]
    assert not last.endswith("ing") or last in GERUNDS | NOT_GERUNDS, f"{name_of(path)} is named by a gerund"


@each([*SOURCES, *TESTS])
def test_docstrings_use_plain_words(path):
    # Tools of tests are described to a model in the imperative: "Tell the weather."
    texts = docstrings(parse(path))
    assert not find_in((line, text.removeprefix("Tell ") if path in TESTS else text) for line, text in texts)


@each([p for p in SOURCES if not name_of(p).startswith((VENDOR_TEXTS, MODEL_WORDS))])
def test_messages_use_plain_words(path):
    assert not find_in(other_strings(parse(path)))


@each(sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]))
def test_documents_use_plain_words(path):
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
    assert not find_in(iter([(0, line) for line in text.splitlines()]))


def names_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names that a module gives: of classes, functions, parameters, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


@each([*SOURCES, *TESTS])
def test_names_use_plain_words(path):
    words = [
        (line, name, re.findall("[a-z]+", re.sub("([A-Z])", r"_\1", name).lower()))
        for line, name in names_in(parse(path))
    ]
    private = PRIVATE_NAMES - {"vault"} if name_of(path) in VAULT_SERVER else PRIVATE_NAMES
    assert not [
        f"{line}: {name}" for line, name, parts in words if private & set(parts) or name.strip("_") in WHOLE_NAMES
    ]


@each([*SOURCES, *TESTS])
def test_a_function_is_not_named_by_a_bare_participle(path):
    functions = [node for node in parse(path).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    called = [node for node in functions if not any(FIXTURE.search(ast.unparse(one)) for one in node.decorator_list)]
    names = [(node.lineno, node.name.strip("_")) for node in called]
    assert not [at for at in names if PARTICIPLES.fullmatch(at[1]) and at[1] not in NOT_PARTICIPLES]


def test_no_public_class_name_is_used_twice():
    names: Counter[str] = Counter()
    for path in SOURCES:
        if not name_of(path).startswith("src/dragoman/simulator"):
            classes = [node.name for node in parse(path).body if isinstance(node, ast.ClassDef)]
            names.update(name for name in classes if not name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} == DUPLICATES.keys()


def test_the_glossary_has_at_most_25_terms():
    rows = [line for line in Path(ROOT, "docs", "glossary.md").read_text().splitlines() if line.startswith("| ")]
    assert len(rows) - 1 <= 25
