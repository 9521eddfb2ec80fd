"""The settings that the README gives to its readers: the tests use these and no others."""

import re
import shlex
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BASE_URL = "http://127.0.0.1:8741"
_BLOCK = re.compile(r"^```(?P<language>\w+) (?P<name>[\w-]+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def block(language: str, name: str, base_url: str) -> str:
    """Return a block of the README for a gateway that listens somewhere else."""
    found = {(match["language"], match["name"]): match["text"] for match in _BLOCK.finditer(README.read_text("utf-8"))}
    return found[language, name].replace(BASE_URL, base_url)


def shell(name: str, base_url: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables that a block exports, and the words of the command below them."""
    *exports, command = block("sh", name, base_url).strip().splitlines()
    variables: dict[str, str] = {}
    for line in exports:
        export, *pairs = shlex.split(line, comments=True)
        assert export == "export", line
        variables |= dict(pair.split("=", 1) for pair in pairs)
    return variables, shlex.split(command, comments=True)
