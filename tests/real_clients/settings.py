"""The settings that the README and the how-to page give to their readers: the tests use these and no others."""

import re
import shlex
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
CONNECT = README.parent / "docs" / "how-to" / "connect-a-client.md"
BASE_URL = "http://127.0.0.1:8741"
_BLOCK = re.compile(r"^```(?P<language>\w+) (?P<name>[\w-]+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> dict[tuple[str, str], str]:
    """Return the named blocks of a page, by language and name."""
    return {(match["language"], match["name"]): match["text"] for match in _BLOCK.finditer(page.read_text("utf-8"))}


def block(language: str, name: str, base_url: str, page: Path = README) -> str:
    """Return a block of a page for a gateway that listens somewhere else."""
    return blocks(page)[language, name].replace(BASE_URL, base_url)


def shell(name: str, base_url: str, page: Path = README) -> tuple[dict[str, str], list[str]]:
    """Return the variables that a block exports, and the words of the command below them."""
    *exports, command = block("sh", name, base_url, page).strip().splitlines()
    variables: dict[str, str] = {}
    for line in exports:
        export, *pairs = shlex.split(line, comments=True)
        assert export == "export", line
        variables |= dict(pair.split("=", 1) for pair in pairs)
    return variables, shlex.split(command, comments=True)
