"""The project's files, parsed once, for tests about the project itself."""

import ast
import functools
import subprocess
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "dragoman"


def modules(*folders: str) -> list[Path]:
    """Python files below `folders` of the project, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    """Path from the project's root, for test ids and messages."""
    return path.relative_to(ROOT).as_posix()


def list_published() -> list[Path]:
    """Files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return sorted(ROOT / name for name in set(listed.stdout.split("\0")) if name and (ROOT / name).is_file())


def each(paths: Sequence[Path]) -> Callable[[Callable[[Path], None]], Any]:
    """Call a test with every file, with one pytest item for each folder: one for each file would be slower."""
    # By folder first: a folder inside another would split its files into two groups, and one of them would be lost.
    in_order = sorted(paths, key=lambda path: (path.parent, path))
    folders = {name_of(folder): list(inside) for folder, inside in groupby(in_order, lambda path: path.parent)}

    def by_folder(look: Callable[[Path], None]) -> Any:
        @pytest.mark.parametrize("folder", folders)
        @functools.wraps(look)
        def test(folder: str) -> None:
            for path in folders[folder]:
                look(path)

        del test.__wrapped__  # pytest would ask it for its parameters
        return test

    return by_folder
