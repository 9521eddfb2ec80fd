"""What fuzzing starts from: a few small documents of our own, and the shelf's recordings where they are.

A seed is a plain value until it is mutated: a whole document, or the list of a stream's frames. Large recordings are left out:
what breaks a reader is the shape of a document, and a small one is mutated a thousand times while a large one is once.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shelf

DIALECTS = ("chat", "responses", "messages", "gemini")
MAX_BYTES = 8_000
OWN_SHARE = 4
"""Own documents hold every kind of part, so one input in this many starts from one of them."""
_FOLDER = Path(__file__).parent / "documents"


@dataclass(frozen=True)
class Frame:
    """One event of a stream; `verbatim` is its data where that is not JSON (`[DONE]`)."""

    event: str
    data: Any
    verbatim: str = ""


@dataclass(frozen=True)
class Seeds:
    """Our own documents of one kind and the recorded ones."""

    own: tuple[Any, ...]
    recorded: tuple[Any, ...] = ()

    def choose(self, chance: Any) -> Any:
        """Draw one."""
        if not self.recorded or chance.randrange(OWN_SHARE) == 0:
            return chance.choice(self.own)
        return chance.choice(self.recorded)


@functools.cache
def _own(dialect: str) -> dict[str, list[Any]]:
    return json.loads((_FOLDER / f"{dialect}.json").read_text(encoding="utf-8"))


def _rows(dialect: str) -> list[dict[str, Any]]:
    names = (dialect, "code_assist") if dialect == "gemini" else (dialect,)
    return [row for name in names for row in shelf.exchanges(name) if row["op"] == "generate"]


def _small(values: list[Any]) -> tuple[Any, ...]:
    return tuple(value for value in values if value and len(json.dumps(value)) <= MAX_BYTES)


@functools.cache
def requests(dialect: str) -> Seeds:
    """Requests of one dialect."""
    return Seeds(tuple(_own(dialect)["requests"]), _small([row["request"] for row in _rows(dialect)]))


@functools.cache
def replies(dialect: str) -> Seeds:
    """Whole replies of one dialect."""
    recorded = [row.get("response") for row in _rows(dialect) if row["status"] == 200]
    return Seeds(tuple(_own(dialect)["replies"]), _small(recorded))


@functools.cache
def errors(dialect: str) -> Seeds:
    """Error bodies of one dialect."""
    recorded = [row.get("response") for row in _rows(dialect) if row["status"] != 200]
    return Seeds(tuple(_own(dialect)["errors"]), _small(recorded))


@functools.cache
def streams(dialect: str) -> Seeds:
    """Streams of one dialect, each a tuple of frames."""
    done = (Frame("", None, "[DONE]"),) if dialect == "chat" else ()
    named = dialect in {"messages", "responses"}
    own = tuple(
        (*(Frame(data["type"] if named else "", data) for data in events), *done) for events in _own(dialect)["streams"]
    )
    recorded = (row.get("sse") for row in _rows(dialect))
    return Seeds(own, tuple(_frames(text) for text in recorded if isinstance(text, str) and 0 < len(text) <= MAX_BYTES))


def _frames(text: str) -> tuple[Frame, ...]:
    frames: list[Frame] = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        event = next((line[6:].strip() for line in lines if line.startswith("event:")), "")
        data = "\n".join(line[5:].strip() for line in lines if line.startswith("data:"))
        if not data:
            continue
        try:
            frames.append(Frame(event, json.loads(data)))
        except ValueError:
            frames.append(Frame(event, None, data))
    return tuple(frames) or (Frame("", None, text),)
