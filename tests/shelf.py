"""The reference data next to the project: recorded exchanges, samples, schemas.

Tests that need it are skipped, visibly, where it is absent.
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


@functools.cache
def exchanges(dialect: str) -> tuple[dict[str, Any], ...]:
    """All recorded exchanges of one dialect; empty without the shelf or a recording."""
    path = ROOT / "corpus" / CORPUS_FILES.get(dialect, f"{dialect}.jsonl")
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
