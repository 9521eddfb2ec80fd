"""Measure a schema before anything is compiled from it.

A hostile schema can be small and still expand without end: references fan out exponentially, nesting exhausts the
stack. All measures here take time linear in the bytes.
"""

from collections.abc import Iterator
from math import inf

from msgspec import Struct

from dragoman.interpreter.schemas.nodes import as_node, children
from dragoman.interpreter.schemas.references import REFERENCES, References

LARGEST = 262_144
DEEPEST = 64
MOST_EXPANDED = 10_000
LONGEST_CHAIN = 200
"""Schemas entered one inside the other when references are followed."""
DIALECTS = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    }
)


class Excess(Struct, frozen=True):
    """One way in which a schema is not to be trusted."""

    where: str
    message: str


def excesses(document: object) -> Iterator[Excess]:
    """Iterate what speaks against compiling a schema: unknown dialect, foreign references, depth, expansion."""
    node = as_node(document)
    if node is None:
        return
    dialect = node.get("$schema")
    if dialect is not None and not (isinstance(dialect, str) and dialect.rstrip("#") in DIALECTS):
        yield Excess("/$schema", f"unknown dialect {dialect!r}; known are drafts 4, 6, 7, 2019-09 and 2020-12")
    survey = _Survey(document)
    survey.walk(document, "", 0)
    yield from survey.found
    if not survey.found and survey.expanded(document) > MOST_EXPANDED:
        yield Excess("", f"references expand to more than {MOST_EXPANDED} schemas")


def is_recursive(document: object) -> bool:
    """Tell whether a schema contains itself."""
    survey = _Survey(document)
    survey.expanded(document)
    return survey.recursive


class _Survey:
    def __init__(self, document: object) -> None:
        self.references = References(document)
        self.found: list[Excess] = []
        self.counts: dict[str, float] = {}
        self.open: set[str] = set()
        self.recursive = False

    def walk(self, schema: object, where: str, depth: int) -> None:
        """Look at every schema once, for depth and references."""
        node = as_node(schema)
        if node is None:
            return
        if depth > DEEPEST:
            self.found.append(Excess(where, f"nested deeper than {DEEPEST} schemas"))
            return
        for keyword in REFERENCES:
            if keyword in node and self.references.locate(node[keyword], where) is None:
                self.found.append(Excess(f"{where}/{keyword}", _unfound(node[keyword])))
        for relative, child in children(node):
            self.walk(child, where + relative, depth + 1)

    def expanded(self, schema: object, where: str = "", depth: int = 0) -> float:
        """Count the schemas that a full inlining would give; a schema inside itself counts once."""
        node = as_node(schema)
        if node is None:
            return 1
        if depth > LONGEST_CHAIN:
            return inf
        if where in self.counts:
            self.recursive = self.recursive or where in self.open
            return self.counts[where]
        self.counts[where] = 1
        self.open.add(where)
        total: float = 1
        for relative, child in children(node):
            # Definitions cost where they are used.
            if not relative.startswith(("/$defs/", "/definitions/")):
                total += self.expanded(child, where + relative, depth + 1)
        for keyword in REFERENCES:
            pointer = self.references.locate(node.get(keyword), where)
            if pointer is not None:
                total += self.expanded(self.references.at(pointer), pointer, depth + 1)
        self.open.remove(where)
        self.counts[where] = total
        return total


def _unfound(reference: object) -> str:
    if isinstance(reference, str) and reference.startswith("#"):
        return f"reference {reference} points at nothing"
    return f"reference {reference} leads outside the schema and is never fetched"
