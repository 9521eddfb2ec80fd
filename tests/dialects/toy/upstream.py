"""A kind of upstream that speaks Toy."""

from dialects.toy.wire import NAME
from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing
from dragoman.upstreams.upstream import FixedUpstream, Site, UpstreamSelector


class ToyUpstream:
    """A server with `/toy/talk` below its base."""

    dialect = NAME
    form = ""
    has_passthrough = False

    def __init__(self, name: str, base_url: str, api_key: str, agent: str) -> None:
        self.name = name
        self._site = Site(base_url, (("authorization", f"Bearer {api_key}"),), agent)

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:
        del translated  # a reply is the same either way
        return self._site.post("/toy/talk", call.body, client_headers)

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        del call, client_headers  # nobody counts there
        return None

    async def models(self) -> Listing | None:
        return None

    def build_passthrough(self, request: Request) -> Outgoing | None:
        del request  # it has no other endpoints
        return None


def _open(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(ToyUpstream(name, table.base_url, table.api_key, agent))


KIND = UpstreamKind(
    name="toyland",
    dialects=(NAME,),
    open=_open,
    base_url="https://toy.example",
    variables={"api_key": "TOY_API_KEY"},
    found_as="toyland",
)
