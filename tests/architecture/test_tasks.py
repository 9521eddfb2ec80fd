"""Tasks are started in one module, which references and names them and reports their failures."""

import ast

import pytest

from architecture.tree import PACKAGE, each, modules, name_of, parse

SOURCES = [path for path in modules("src/dragoman") if path != PACKAGE / "tasks.py"]
CREATE = {"create_task", "ensure_future", "TaskGroup"}


def creates_task(node: ast.AST) -> bool:
    """Whether a node creates an asyncio task by itself: on the loop, on a group, or by asyncio's own functions."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in CREATE or ast.unparse(node.func) == "asyncio.Task"


def drops_task(node: ast.AST) -> bool:
    """Whether a started task is not referenced, so that it may be garbage collected before it ends."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in {"start_task", "tasks.start_task"}
    )


@each(SOURCES)
def test_only_the_module_of_tasks_creates_them_and_none_is_dropped(path):
    found = [node.lineno for node in ast.walk(parse(path)) if creates_task(node) or drops_task(node)]
    assert not found, f"{name_of(path)} lines {found}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("asyncio.create_task(work())", True),
        ("loop.create_task(work())", True),
        ("group.create_task(work())", True),
        ("ensure_future(work())", True),
        ("asyncio.Task(work())", True),
        ("start_task(work(), 'work')", True),
        ("task = start_task(work(), 'work')", False),
        ("background.start(work(), 'work')", False),
    ],
)
def test_the_search_finds_unsupervised_tasks(source, expected):
    assert any(creates_task(node) or drops_task(node) for node in ast.walk(ast.parse(source))) is expected
