"""The simulator: one server that simulates every vendor's API and picks the dialect by the model name."""

from dragoman.upstreams import code_assist, gemini, vertex
from dragoman.upstreams.anthropic import Anthropic
from dragoman.upstreams.gemini import Gemini
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.openai import OpenAI
from dragoman.upstreams.upstream import Upstream, UpstreamSelector

_KEY = "simulated"


def _open(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    google = Gemini(name, table.base_url, _KEY, agent)
    claude = Anthropic(name, table.base_url, _KEY, agent)
    openai = OpenAI(name, f"{table.base_url}/v1", _KEY, agent, responses=True)

    def select(model: str) -> Upstream:
        bare = model.removeprefix("models/")
        return google if bare.startswith("gemini") else claude if bare.startswith("claude") else openai

    return select


def _client_urls(_table: UpstreamTable) -> tuple[str, ...]:
    """Return every base URL of Google, because the simulator simulates all of its services."""
    return (gemini.BASE_URL, code_assist.BASE_URL, vertex.base_url_of("global"), vertex.base_url_of("*"))


_SIMULATED = (gemini.KIND, vertex.GEMINI_KIND, code_assist.KIND)
KIND = UpstreamKind(
    name="simulator",
    dialects=("gemini", "messages", "responses"),
    open=_open,
    client_variables=tuple(variable for kind in _SIMULATED for variable in kind.client_variables),
    client_urls=_client_urls,
)
