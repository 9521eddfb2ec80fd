"""State that changes belongs to an object: no function changes a global of its module, except registries and a table by type."""

import ast

import pytest

from architecture.tree import PACKAGE, modules, parse

MUTATORS = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
ALLOWED = {
    "dialects/registry.py": {"DIALECTS"},  # other packages register their dialects here
    "upstreams/registry.py": {"KINDS"},  # and their kinds of upstream here
    "wire/shape.py": {"_RAW_MEMBERS"},  # a row for each struct type: `functools.cache` takes twice as long
}


def find_assigned_names(tree: ast.Module) -> set[str]:
    """The names that a module assigns at its top level."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [
        target for node in assigned for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def find_changed_name(node: ast.AST) -> str:
    """The name of the value that a node changes in place; "" if it changes none."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in MUTATORS:
            return name
        case ast.AugAssign(target=ast.Name(id=name)):
            return name
        case _:
            return ""


def find_changed_globals(tree: ast.Module) -> set[str]:
    """The globals of a module that its functions rebind or change in place; a local of the same name hides one."""
    known, found = find_assigned_names(tree), set[str]()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = list(ast.walk(function))
        found |= {name for node in inside if isinstance(node, ast.Global) for name in node.names}
        local = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        local |= {node.arg for node in inside if isinstance(node, ast.arg)}
        found |= {name for node in inside if (name := find_changed_name(node)) in known - local}
    return found


def test_only_registries_and_a_table_by_type_change_a_global():
    found = {
        path.relative_to(PACKAGE).as_posix(): find_changed_globals(parse(path)) for path in modules("src/dragoman")
    }
    assert {path: names for path, names in found.items() if names} == ALLOWED


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("count = 0\ndef add():\n    global count\n    count += 1", {"count"}),
        ("seen = {}\ndef add(key):\n    seen[key] = 1", {"seen"}),
        ("seen = {}\ndef drop(key):\n    del seen[key]", {"seen"}),
        ("seen: set[str] = set()\nclass A:\n    def add(self, key):\n        seen.add(key)", {"seen"}),
        ("seen = []\ndef read():\n    seen = []\n    seen.append(1)\n    return seen", set()),
        ("rows = {}\ndef read(key):\n    return rows.get(key)", set()),
    ],
)
def test_the_search_finds_changed_globals(source, expected):
    assert find_changed_globals(ast.parse(source)) == expected
