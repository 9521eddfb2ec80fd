"""Anthropic's own API."""

from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing, anthropic_rows
from dragoman.upstreams.upstream import FixedUpstream, Site, UpstreamSelector, select_members

BASE_URL = "https://api.anthropic.com"
_VERSION = ("anthropic-version", "2023-06-01")
"""The newer version rejects sampling fields, even for models that support them."""
COUNTED_MEMBERS = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "mcp_servers"}
)


class Anthropic:
    """A server with `/v1/messages` below its base URL."""

    form = ""
    has_passthrough = True
    dialect = "messages"

    def __init__(self, name: str, base_url: str, api_key: str, agent: str) -> None:
        self.name = name
        keys: Headers = (("x-api-key", api_key),) if api_key else ()
        self._site = Site((base_url or BASE_URL).rstrip("/").removesuffix("/v1"), keys, agent)

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:  # noqa: ARG002
        return self._site.post("/v1/messages", call.body, _add_version(client_headers))

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        return self._site.post(
            "/v1/messages/count_tokens", select_members(call.body, COUNTED_MEMBERS), _add_version(client_headers)
        )

    async def models(self) -> Listing | None:
        return Listing(self._site.get("/v1/models?limit=1000", (_VERSION,)), anthropic_rows)

    def build_passthrough(self, request: Request) -> Outgoing | None:
        if not request.target.startswith("/v1/"):
            return None
        missing = () if request.header(_VERSION[0]) else (_VERSION,)
        return self._site.send(request, request.target, missing)


def _add_version(headers: Headers) -> Headers:
    return headers if any(name == _VERSION[0] for name, _ in headers) else (_VERSION, *headers)


def _open(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(Anthropic(name, table.base_url, table.api_key, agent))


KIND = UpstreamKind(
    name="anthropic",
    dialects=(Anthropic.dialect,),
    open=_open,
    base_url=BASE_URL,
    variables={"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"},
    found_as="anthropic",
)
