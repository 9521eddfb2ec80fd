"""docs/explanation/architecture.md is true: its files and names exist, and its table of packages is the rule of imports."""

import ast
import re

import pytest

from architecture.test_imports import MAY_IMPORT
from architecture.tree import PACKAGE, ROOT

TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", TEXT)))
FOLDERS = sorted(set(re.findall(r"`([\w/]+/)`", TEXT)))
LINKED = re.findall(r"\[`([\w/]+\.py)(?:::\w+)?`\]\(([^)]+)\)", TEXT)
ROWS = re.findall(r"^\| ((?:\[?`.*?`\S*,? ?)+) \| .* \| (.*) \|$", TEXT.partition("## The path")[0], re.MULTILINE)
"""The first and the last cell of each row of the table of packages."""


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_file_and_name_of_the_architecture_page_is_there(file, name):
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    defined = {
        node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not name or name in defined


def test_the_architecture_page_names_many():
    assert len(NAMED) > 50


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_the_architecture_page_is_there(folder):
    assert (ROOT if folder.startswith("tests/") else PACKAGE).joinpath(folder).is_dir()


def test_every_file_of_the_walk_is_linked():
    walk = TEXT.partition("## The path")[2].partition("## Where")[0]
    assert not re.findall(r"(?<!\[)`[\w/]+\.py(?:::\w+)?`", walk)
    assert [target for file, target in LINKED if target != f"../../src/dragoman/{file}"] == []


def test_the_table_has_every_package_and_module_at_the_top():
    described = {name for names, _ in ROWS for name in re.findall(r"`([\w.]+)`", names)}
    names = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert described == names - {"__init__.py"}


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_the_table_says_what_a_package_may_import(package):
    (cell,) = [imports for names, imports in ROWS if names == f"`{package}`"]
    assert ({*cell.split(", ")} - {"nothing"}) == MAY_IMPORT[package]
