"""What the model does for every client: it looks at a file, then runs two commands at once, one of which fails, and
reports all results. Only the client's own tools can find them out.
"""

import secrets
from pathlib import Path
from typing import NamedTuple

from dragoman.simulator import Answer, Call, Received
from dragoman.simulator.apis.conversation import RequestResult, RequestTurn

PROMPT = "Look into note.txt, then find out the rest."


class Tools(NamedTuple):
    """How a client's own tools are called."""

    read: str
    file: str
    """The argument that names the file."""
    run: str
    command: str
    """The argument that is the command."""
    reads_by_command: bool = False
    """The client reads files with the shell."""


class Plot:
    """The script of one conversation, and what was seen of it."""

    def __init__(self, tools: Tools, folder: Path) -> None:
        self._tools = tools
        self._folder = folder
        self.note, self.rest = secrets.token_hex(8), secrets.token_hex(8)
        (folder / "note.txt").write_text(f"The word is {self.note}.\n", encoding="utf-8")
        (folder / "rest.txt").write_text(f"The rest is {self.rest}.\n", encoding="utf-8")
        self.results: list[RequestResult] = []
        """The results of the last request that had any."""

    def __call__(self, received: Received) -> Answer | None:
        """Answer; what has none of the tools, such as a request for a title, is left to the simulator."""
        asked = received.request
        if not {self._tools.read, self._tools.run} <= {tool.name for tool in asked.tools}:
            return None
        self.results = _pair(asked.turns)
        match len(self.results):
            case 0:
                return Answer(thought="I look first.", text="One moment.", calls=(self._read(),), end="calls")
            case 1:
                calls = (self._run("2", "cat rest.txt"), self._run("3", "cat nowhere.txt"))
                return Answer(thought="There is more.", calls=calls, end="calls")
            case _:
                return Answer(text=" | ".join(result.text for result in self.results))

    def _read(self) -> Call:
        if self._tools.reads_by_command:
            return self._run("1", "cat note.txt")
        return Call(id="1", name=self._tools.read, arguments={self._tools.file: str(self._folder / "note.txt")})

    def _run(self, number: str, command: str) -> Call:
        return Call(id=number, name=self._tools.run, arguments={self._tools.command: command})


def _pair(turns: tuple[RequestTurn, ...]) -> list[RequestResult]:
    """Return the results by their calls; each must have one, in its turn. Calls of one turn may be done in any order."""
    made = {call.id: at for at, turn in enumerate(turns) for call in turn.calls}
    results = [result for turn in turns for result in turn.results]
    assert sorted(result.call_id for result in results) == sorted(made), "a result is not paired with its call"
    assert [made[result.call_id] for result in results] == sorted(made.values()), "results are not in their turns"
    order = list(made)
    return sorted(results, key=lambda result: order.index(result.call_id))
