"""Budgets. There is no list of exceptions to grow: a file over budget is split, a function over budget is cut."""

import ast

from architecture.tree import each, modules, name_of, parse

MAX_FILE = 400
MAX_FUNCTION = 60
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "misc", "types", "manager"}

SOURCES = modules("src/dragoman")
ALL = modules("src/dragoman", "tests", "benchmarks")


@each(ALL)
def test_a_file_is_at_most_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE, name_of(path)


# A test that compares a whole stream with what it should be is as long as the stream.
@each(modules("src/dragoman", "benchmarks"))
def test_a_function_is_at_most_60_lines(path):
    long = {
        f"{node.name}:{node.lineno}": size
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (size := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION
    }
    assert not long, name_of(path)


@each(SOURCES)
def test_a_module_is_named_after_something(path):
    assert path.stem not in VAGUE, name_of(path)
    assert path.parent.name not in VAGUE, name_of(path)
