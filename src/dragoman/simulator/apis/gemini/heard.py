"""A request as the rules see it."""

from msgspec import Struct

from dragoman.simulator.api import Accepted
from dragoman.simulator.apis.gemini.generation import Generation
from dragoman.simulator.apis.gemini.proto import Surface
from dragoman.simulator.apis.gemini.shape import GenerateContentRequest, GenerationConfig
from dragoman.simulator.apis.gemini.shape_tools import FunctionDeclaration
from dragoman.simulator.apis.gemini.turns import Turn
from dragoman.simulator.rule import Rule
from dragoman.simulator.signatures import Signer

LEARN_MORE = "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"


class Heard(Struct, frozen=True, kw_only=True):
    """A request that has the right shape."""

    request: GenerateContentRequest
    turns: tuple[Turn, ...]
    generation: Generation
    model: str
    surface: Surface
    signer: Signer
    size: int
    """Bytes of the body."""

    @property
    def vertex(self) -> bool:
        """Whether the request came to Vertex, or to Code Assist, which passes it on."""
        return self.surface != "studio"

    @property
    def config(self) -> GenerationConfig:
        """How the model shall write."""
        return self.request.generation_config or GenerationConfig()

    @property
    def functions(self) -> list[FunctionDeclaration]:
        """All functions, whichever tool they stand in."""
        return [function for _, function in self.placed_functions]

    @property
    def placed_functions(self) -> list[tuple[tuple[int, int], FunctionDeclaration]]:
        """All functions, with the numbers of their tool and of themselves."""
        return [
            ((number, index), function)
            for number, tool in enumerate(self.request.tools or [])
            for index, function in enumerate(tool.function_declarations or [])
        ]


HeardRule = Rule[Heard]


def heard_in(accepted: Accepted) -> Heard:
    """Return the request a reply answers."""
    heard: Heard = accepted.body
    return heard


def field(path: str, words: str) -> str:
    """Say what is wrong with a field as AI Studio does."""
    return f"* GenerateContentRequest.{path}: {words}"


def unable(words: str) -> str:
    """Say what is wrong as Vertex does."""
    return f"Unable to submit request because {words} {LEARN_MORE}"
