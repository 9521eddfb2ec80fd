"""A request as the rules see it, its turns, and the formats of Google's error texts.

Consecutive contents of one side are one turn, as Google treats them. Function results belong to the user in any role
(recorded: Code Assist clients send them with the role `model`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct

from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.gemini.body import COUNT_REQUEST, REQUEST, TOOL
from dragoman.simulator.apis.gemini.models import GeminiGeneration
from dragoman.simulator.apis.gemini.proto import Surface, to_snake_case
from dragoman.simulator.apis.rule import CheckContext, ErrorText, Json, PathCheck, VendorRequest, Violation
from dragoman.wire.pointer import unescape

Side = Literal["user", "model"]
ValueTest = Callable[[Any], bool]
_LEARN_MORE = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
_MAP_MEMBERS = frozenset({"properties", "defs"})
"""Fields of a schema that hold schemas by arbitrary keys."""


class PlacedPart(Struct, frozen=True):
    """A part, with the index of its content and its own."""

    content: int
    index: int
    part: Json

    @property
    def where(self) -> str:
        """The pointer to the part."""
        return f"/contents/{self.content}/parts/{self.index}"


class GeminiTurn(Struct, frozen=True):
    """Consecutive contents of one side."""

    side: Side
    parts: list[PlacedPart]
    calls: list[PlacedPart]
    results: list[PlacedPart]


class GeminiRequest(VendorRequest, frozen=True, kw_only=True):
    """A request whose fields are valid, with camelCase names."""

    model: str
    generation: GeminiGeneration
    surface: Surface
    signer: TokenSigner
    size: int
    """Size of the body in bytes."""
    turns: list[GeminiTurn]

    @property
    def vertex(self) -> bool:
        """Whether the request came to Vertex, or to Code Assist, which forwards it there."""
        return self.surface != "studio"

    @property
    def config(self) -> Json:
        """The generation config."""
        return self.document.get("generationConfig", {})

    @property
    def thinking(self) -> Json:
        """The thinking config."""
        return self.config.get("thinkingConfig", {})

    @property
    def tool_config(self) -> Json:
        """The tool config."""
        return self.document.get("toolConfig", {})

    @property
    def calling(self) -> Json:
        """The function calling config."""
        return self.tool_config.get("functionCallingConfig", {})

    @property
    def parts(self) -> dict[str, list[PlacedPart]]:
        """All parts of contents, by the names of their fields."""
        if "parts" not in self.computed:
            parts: dict[str, list[PlacedPart]] = {}
            for placed in (placed for turn in self.turns for placed in turn.parts):
                for name in placed.part:
                    parts.setdefault(name, []).append(placed)
            self.computed["parts"] = parts
        return self.computed["parts"]

    @property
    def functions(self) -> list[tuple[str, Json]]:
        """All functions of all tools, with their pointers."""
        if "functions" not in self.computed:
            self.computed["functions"] = [
                (f"/tools/{number}/functionDeclarations/{index}", function)
                for number, tool in enumerate(self.list("tools"))
                for index, function in enumerate(tool.get("functionDeclarations", ()))
            ]
        return self.computed["functions"]

    @property
    def server_tools(self) -> list[str]:
        """The names of the tools that Google runs itself."""
        return [name for tool in self.list("tools") for name in TOOL.names[1:] if name in tool]


def read_request(body: bytes, surface: Surface, *, counting: bool = False) -> Json | Violation:
    """Return the request in a body, or what is wrong with it; a token-count body wraps the request."""
    if not counting:
        return REQUEST.read(body, surface)
    read = COUNT_REQUEST.read(body, surface)
    return read if isinstance(read, Violation) else read.get("generateContentRequest", read)


def merge_turns(document: Json) -> list[GeminiTurn]:
    """Merge contents into turns."""
    turns: list[GeminiTurn] = []
    for number, content in enumerate(document.get("contents", ())):
        parts = [PlacedPart(number, index, part) for index, part in enumerate(content.get("parts", ()))]
        results = [placed for placed in parts if "functionResponse" in placed.part]
        side: Side = "model" if content.get("role") == "model" and not results else "user"
        if not turns or turns[-1].side != side:
            turns.append(GeminiTurn(side, [], [], []))
        turns[-1].parts.extend(parts)
        turns[-1].calls.extend(placed for placed in parts if "functionCall" in placed.part)
        turns[-1].results.extend(results)
    return turns


def iterate_current_steps(turns: list[GeminiTurn]) -> Iterator[GeminiTurn]:
    """Yield the model's turns since the last user turn that is more than results."""
    begin = 0
    for number, turn in enumerate(turns):
        only_results = bool(turn.parts) and len(turn.results) == len(turn.parts)
        if turn.side == "user" and not only_results:
            begin = number
    yield from (turn for turn in turns[begin:] if turn.side == "model")


def build_check(
    path: str, studio_message: ErrorText, vertex_message: ErrorText, test: ValueTest, when: ValueTest | None = None
) -> Callable[[GeminiRequest, CheckContext], Iterable[Violation]]:
    """Return a check that rejects the value at a path with the error text of the surface."""
    on_studio = PathCheck(path, studio_message, test, when)
    on_vertex = PathCheck(path, vertex_message, test, when)
    return lambda request, context: (on_vertex if request.vertex else on_studio)(request, context)


def describe_field(where: str, problem: str) -> str:
    """Return AI Studio's error text for a field."""
    return f"* GenerateContentRequest.{format_path(where)}: {problem}"


def build_field_message(problem: str) -> ErrorText:
    """Return a function that gives AI Studio's error text for a field."""
    return lambda where, _: describe_field(where, problem)


def describe_vertex_error(problem: str) -> str:
    """Return Vertex's error text."""
    return f"Unable to submit request because {problem} {_LEARN_MORE}"


def format_path(where: str) -> str:
    """Return a pointer in Google's notation: `contents[0].parts[1].file_data`."""
    path = ""
    is_name = False
    for step in where.split("/")[1:]:
        path += f"[{unescape(step)}]" if is_name or step.isdigit() else f".{to_snake_case(step)}"
        is_name = step in _MAP_MEMBERS and not is_name
    return path.removeprefix(".")
