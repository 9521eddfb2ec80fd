"""Small wrong changes to a Python source, each as an edit of a span of bytes.

An edit touches only its own expression or statement, so a diff shows one line. Left alone: docstrings, annotations, type
aliases, `__all__`, `__slots__`, texts for people (several words), and changes that could only raise a NameError.
"""

import ast
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}
_WORDS = re.compile(r"[A-Za-z]{2,}.*\s.*[A-Za-z]{2,}", re.DOTALL)
_UNTOUCHED_NAMES = {"__all__", "__slots__"}
_TYPE_MAKERS = {"TypeVar", "NewType", "cast", "Literal", "get_args"}


@dataclass(frozen=True)
class Mutant:
    """One wrong change: bytes `start` to `end` of a file become `replacement`."""

    line: int
    start: int
    end: int
    replacement: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        """The source with the change made."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """The change as lines of a diff without context."""
        before, after = (text.decode().splitlines() for text in (source, self.apply(source)))
        lines = difflib.unified_diff(before, after, n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def find(source: bytes) -> list[Mutant]:
    """Yield every mutant of a source that still compiles, in source order."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: set[Mutant] = set()
    for node, kind, replacement in _Walk().walk(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        mutant = Mutant(node.lineno, start, end, replacement, kind)
        if source[start:end].decode() != replacement and _compiles(mutant.apply(source)):
            found.add(mutant)
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


Change = tuple[ast.AST, str, str]


class _Walk:
    """Goes through a tree, skipping what must not be changed."""

    def walk(self, node: ast.AST) -> Iterator[Change]:
        yield from _changes(node)
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "type_params"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_unchanged(node, child):
                    yield from self.walk(child)


def _is_unchanged(parent: ast.AST, child: ast.AST) -> bool:
    """Whether a child is a text for people, a type, or a list of names."""
    match child:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return True
        case ast.JoinedStr():
            return True  # its pieces have no positions of their own; `_changes` of the parent takes it whole
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            is_alias = (
                name.lstrip("_")[:1].isupper() and not name.isupper() and isinstance(value, ast.BinOp | ast.Subscript)
            )
            return name in _UNTOUCHED_NAMES or is_alias
        case ast.Call(func=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name)) if name in _TYPE_MAKERS:
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.ClassDef(bases=bases):
            return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)
        case ast.keyword(value=ast.Constant(value=bool())) if isinstance(parent, ast.ClassDef):
            return True  # frozen, kw_only and the like guard against mistakes that no test makes
    return isinstance(parent, ast.Raise)


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=comparators):
            swapped = ast.Compare(left, [_COMPARISONS[type(operator)]()], comparators)
            yield node, "comparison", ast.unparse(swapped)
        case ast.BoolOp(op=operator, values=values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield node, "and/or", f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "negation", f"({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _ARITHMETIC:
            if not (_is_text(left) or _is_text(right)):
                yield node, "arithmetic", f"({ast.unparse(ast.BinOp(left, _ARITHMETIC[type(operator)](), right))})"
        case ast.Constant(value=value):
            yield from ((node, "constant", changed) for changed in _other_constants(value))
        case _:
            yield from _statement_changes(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr) and not isinstance(node, ast.Raise) and not _is_message(child):
            yield child, "constant", '"mutated"'


def _statement_changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(
            test, ast.Compare | ast.UnaryOp
        ):
            yield test, "negation", f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=tests):
            yield from ((test, "negation", f"(not ({ast.unparse(test)}))") for test in tests)
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield node, "return None", "return None"
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield node, "removed statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.AugAssign() | ast.Delete() | ast.Raise():
            yield node, "removed statement", "pass"
        case ast.Continue() | ast.Break():
            yield node, "removed statement", "pass"


def _other_constants(value: object) -> Iterator[str]:
    match value:
        case bool():
            yield repr(not value)
        case int() | float():
            yield repr(value + 1)
        case str() if not _WORDS.search(value):
            yield repr(value + "~mutated")
        case bytes():
            yield repr(value + b"~mutated")


def _is_text(node: ast.AST) -> bool:
    """Whether an operand is plainly text, on which only `+` is defined."""
    match node:
        case ast.Constant(value=str() | bytes()) | ast.JoinedStr():
            return True
        case ast.Call(func=ast.Attribute(attr="encode" | "join" | "decode" | "strip")):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text(left) or _is_text(right)
    return False


def _is_message(node: ast.JoinedStr) -> bool:
    """Whether an f-string is a text for people: it has two words or more."""
    shown = " ".join(
        part.value for part in node.values if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    return _WORDS.search(shown) is not None
