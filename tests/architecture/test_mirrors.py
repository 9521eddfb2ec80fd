"""Tests are found where their source is: `src/dragoman/P/M.py` is tested in `tests/P/test_M.py` or `test_M_<aspect>.py`.

A test module mirrors a source module if it has such a name and imports the module: by itself, through a helper of the
tests or the `conftest.py` of its folder, or through the package's `__init__`. Folders with tests of the whole system are
not counted.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from architecture.tree import PACKAGE, ROOT, modules, name_of, parsed

TESTS = ROOT / "tests"
WHOLE_SYSTEM = {
    "architecture",
    "benchmarks",
    "cases",
    "conformance",
    "end_to_end",
    "fuzz",
    "laws",
    "mutation",
    "real_clients",
}
FLOOR = 0.90
"""The share that mirrors a source module today; the goal is 0.70."""


@cache
def source(name: str) -> Path | None:
    """The file of a source module, given its dotted name; None if there is none."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def imports(path: Path) -> set[tuple[str, str]]:
    """Module and name of everything that a file imports."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "", alias.name) for alias in node.names}
    return found


def parents(module: str) -> set[str]:
    """The packages that a module is in; to import it is to import them."""
    parts = module.split(".")
    return {".".join(parts[:size]) for size in range(1, len(parts))}


@cache
def origins(module: str, name: str) -> set[str]:
    """The source modules that an import leads to: of a package those from which its `__init__` takes the name.

    A name that the `__init__` defines itself leads to all modules that it is made of.
    """
    file = source(module)
    if file is None:
        return set()
    found = {module, f"{module}.{name}", *parents(module)}
    if file.name == "__init__.py" and source(f"{module}.{name}") is None:
        inside = imports(file)
        for origin, each in [pair for pair in inside if pair[1] == name] or inside:
            found |= {origin, f"{origin}.{each}"}
    return found


def helpers(path: Path) -> Iterable[Path]:
    """The helper modules of the tests that a test module uses."""
    names = {name for module, each in imports(path) for name in (module, f"{module}.{each}")}
    files = [TESTS.joinpath(*name.split(".")).with_suffix(".py") for name in names]
    return [file for file in (*files, path.with_name("conftest.py")) if file.is_file()]


def is_mirror(path: Path) -> bool:
    """Whether a test module is named after a source module that it imports."""
    words = path.stem.removeprefix("test_").split("_")
    package = ".".join(("dragoman", *path.parent.relative_to(TESTS).parts))
    # A module outside the packages has a folder of its own: tests/config/test_config.py.
    parent = package if (source(package) or path).name == "__init__.py" else package.rpartition(".")[0]
    named = {f"{parent}.{'_'.join(words[:size])}" for size in range(1, len(words) + 1)}
    reached = {origin for file in (path, *helpers(path)) for pair in imports(file) for origin in origins(*pair)}
    return any(source(name) and name in reached for name in named)


def test_most_test_modules_mirror_a_source_module():
    counted = [path for path in modules("tests") if path.name.startswith("test_")]
    counted = [path for path in counted if path.relative_to(TESTS).parts[0] not in WHOLE_SYSTEM]
    others = [name_of(path) for path in counted if not is_mirror(path)]
    share = 1 - len(others) / len(counted)
    assert share >= FLOOR, f"{share:.3f} of {len(counted)}; these do not:\n" + "\n".join(others)
