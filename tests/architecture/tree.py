"""The project's files, parsed once, for tests about the project itself."""

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "dragoman"


def modules(*folders: str) -> list[Path]:
    """Python files below `folders` of the project, sorted."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(path: Path) -> str:
    """Path from the project's root, for test ids and messages."""
    return path.relative_to(ROOT).as_posix()


def published() -> list[Path]:
    """Files that git tracks or would track."""
    told = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return sorted(ROOT / name for name in set(told.stdout.split("\0")) if name and (ROOT / name).is_file())
