"""Tests are found where their source is: `src/dragoman/P/M.py` is tested in `tests/P/test_M.py` or `test_M_<aspect>.py`.

A test module mirrors a source module if it has such a name and imports the module itself: not only through a helper of
the tests or the package's `__init__`. Folders with tests of the whole system are not counted.
"""

import ast
from functools import cache
from pathlib import Path

from architecture.tree import PACKAGE, ROOT, modules, name_of, parse

TESTS = ROOT / "tests"
WHOLE_SYSTEM = {
    "architecture",
    "attack",
    "benchmarks",
    "cases",
    "conformance",
    "end_to_end",
    "fuzz",
    "laws",
    "mutation",
    "real_clients",
}
FLOOR = 0.75
"""The share that mirrors a source module today; the goal is 0.70."""


@cache
def source(name: str) -> Path | None:
    """The file of a source module, given its dotted name; None if there is none."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def find_imported_modules(path: Path) -> set[str]:
    """Every dotted name that a file imports, and the modules they are in."""
    found: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def is_mirror(path: Path) -> bool:
    """Whether a test module is named after a source module that it imports."""
    words = path.stem.removeprefix("test_").split("_")
    package = ".".join(("dragoman", *path.parent.relative_to(TESTS).parts))
    # A module outside the packages has a folder of its own: tests/config/test_config.py.
    parent = package if (source(package) or path).name == "__init__.py" else package.rpartition(".")[0]
    named = {f"{parent}.{'_'.join(words[:size])}" for size in range(1, len(words) + 1)}
    return any(source(name) for name in named & find_imported_modules(path))


def test_most_test_modules_mirror_a_source_module():
    counted = [path for path in modules("tests") if path.name.startswith("test_")]
    counted = [path for path in counted if path.relative_to(TESTS).parts[0] not in WHOLE_SYSTEM]
    others = [name_of(path) for path in counted if not is_mirror(path)]
    share = 1 - len(others) / len(counted)
    assert share >= FLOOR, f"{share:.3f} of {len(counted)}; these do not:\n" + "\n".join(others)
