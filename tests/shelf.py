"""The reference data next to the project: recorded exchanges, samples, schemas.

Where it is absent, the laws run with a few exchanges of our own, and tests that need more are skipped, visibly.
"""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2] / "shared"
needs_shelf = pytest.mark.skipif(not ROOT.is_dir(), reason="the reference shelf (../shared) is not here")

CORPUS_FILES = {
    "chat": "openai_chat.jsonl",
    "responses": "openai_responses.jsonl",
    "messages": "anthropic.jsonl",
    "gemini": "gemini.jsonl",
    "code_assist": "codeassist.jsonl",
}
SAMPLE_FOLDERS = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic",
    "gemini": "gemini",
    "code_assist": "code_assist",
}


OWN = Path(__file__).parent / "recordings"
"""Exchanges written by hand from the vendors' documented examples, in the form of the recorded ones."""


def enough(count: int) -> int:
    """Return how many cases a law must find to mean something: `count` with the shelf, none with our own exchanges."""
    return count if ROOT.is_dir() else 0


@functools.cache
def exchanges(dialect: str) -> tuple[dict[str, Any], ...]:
    """All recorded exchanges of one dialect; without the shelf, our own; empty if there are none."""
    name = CORPUS_FILES.get(dialect, f"{dialect}.jsonl")
    path = ROOT / "corpus" / name if ROOT.is_dir() else OWN / name
    if not path.is_file():
        return ()
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line)


def samples(dialect: str, suffix: str) -> list[Path]:
    """Sample files of one dialect whose names end in `suffix` (".request.json", ".stream.sse", …)."""
    folder = ROOT / "wire" / "samples" / SAMPLE_FOLDERS.get(dialect, dialect)
    return sorted(path for path in folder.glob("*") if path.name.endswith(suffix)) if folder.is_dir() else []


@functools.cache
def cases() -> dict[str, dict[str, Any]]:
    """Other gateways' bugs, by id."""
    path = ROOT / "cases" / "cases.jsonl"
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line)
    return {row["id"]: row for row in rows}
