"""Received data must not be executed, unpickled, or put into SQL or a shell."""

import ast
import re

from architecture.tree import each, modules, name_of, parse

SOURCES = modules("src/dragoman")
RUNS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "marshal", "shelve", "dill", "jinja2", "mako", "yaml"}
UNPICKLES = {"large_bodies.py"}
"""Files that unpickle what the same program has written to a process that it has started."""
STARTS = {"converter.py", "large_bodies.py", "command.py", "mitmproxy.py", "caller.py"}
"""Files that start a process: each with a list of words, never with a shell."""
SQL = re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")


def call(node: ast.Call) -> str:
    """The dotted name of the called function; "" if it is none. To unparse every call would take seconds."""
    names, function = [], node.func
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    return ".".join([function.id, *reversed(names)]) if isinstance(function, ast.Name) else ""


@each(SOURCES)
def test_no_received_data_is_executed_or_unpickled(path):
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Call):
            assert call(node) not in RUNS, f"{name_of(path)}:{node.lineno}"
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        unpickles = {name.partition(".")[0] for name in names} & MODULES
        assert not unpickles or path.name in UNPICKLES, f"{name_of(path)}"


@each(SOURCES)
def test_no_shell_is_started_and_processes_only_where_it_is_known(path):
    for node in ast.walk(parse(path)):
        if not isinstance(node, ast.Call):
            continue
        name = call(node)
        assert name not in {"os.system", "os.popen", "asyncio.create_subprocess_shell", "subprocess.getoutput"}
        assert not any(word.arg == "shell" for word in node.keywords), f"{name_of(path)}:{node.lineno}"
        if name.startswith(("subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "asyncio.create_subprocess")):
            assert path.name in STARTS, f"{name_of(path)}:{node.lineno}"


def constants(tree: ast.Module) -> set[str]:
    """Names that are only ever assigned constant texts."""
    given = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    plain = {node.targets[0].id for node in given if isinstance(node.value, ast.Constant)}
    return plain - {node.targets[0].id for node in given if not isinstance(node.value, ast.Constant)}


@each([path for path in SOURCES if "sessions" in path.parts])
def test_no_value_is_written_into_a_statement(path):
    """The values in the braces of a statement are constant texts: a list of columns, a condition."""
    tree = parse(path)
    ours = constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and SQL.search(ast.unparse(node)):
            held = {ast.unparse(value.value) for value in node.values if isinstance(value, ast.FormattedValue)}
            assert all(name in ours or name.isupper() for name in held), f"{name_of(path)}:{node.lineno} {held}"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
            assert not (isinstance(node.left.value, str) and SQL.search(node.left.value)), node.lineno
