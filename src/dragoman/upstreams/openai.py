"""OpenAI and compatible servers: vLLM, llama.cpp, Ollama, LM Studio, OpenRouter and others."""

from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing, openai_rows
from dragoman.upstreams.upstream import FixedUpstream, Site, UpstreamSelector, select_members

BASE_URL = "https://api.openai.com/v1"
_CHAT, _RESPONSES = "chat", "responses"
_VARIABLES = {"api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"}
_COUNTED_MEMBERS = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation"}
)


class OpenAI:
    """A server with `/chat/completions` or `/responses` below its base URL."""

    form = ""
    has_passthrough = True

    def __init__(self, name: str, base_url: str, api_key: str, agent: str, *, responses: bool = False) -> None:
        self.name = name
        self.dialect = _RESPONSES if responses else _CHAT
        keys: Headers = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._site = Site(base_url or BASE_URL, keys, agent)
        self._path = "/responses" if responses else "/chat/completions"
        self._can_count = responses

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:  # noqa: ARG002
        return self._site.post(self._path, call.body, client_headers)

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        if not self._can_count:
            return None
        return self._site.post("/responses/input_tokens", select_members(call.body, _COUNTED_MEMBERS), client_headers)

    async def models(self) -> Listing | None:
        return Listing(self._site.get("/models"), openai_rows)

    def build_passthrough(self, request: Request) -> Outgoing | None:
        # The base URL already includes the version that clients put in the path.
        path = request.target.removeprefix("/v1/")
        return self._site.send(request, f"/{path}") if path != request.target else None


def _open_chat(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(OpenAI(name, table.base_url, table.api_key, agent))


def _open_responses(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(OpenAI(name, table.base_url, table.api_key, agent, responses=True))


CHAT_KIND = UpstreamKind(
    name="openai",
    dialects=(_CHAT,),
    open=_open_chat,
    base_url=BASE_URL,
    variables=_VARIABLES,
    compatible=True,
    other_kind="openai-responses",
)
RESPONSES_KIND = UpstreamKind(
    name="openai-responses",
    dialects=(_RESPONSES,),
    open=_open_responses,
    base_url=BASE_URL,
    variables=_VARIABLES,
    found_as="openai",
)
