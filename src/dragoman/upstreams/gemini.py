"""The Gemini API (AI Studio)."""

import re

from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing, gemini_rows
from dragoman.upstreams.upstream import FixedUpstream, Site, UpstreamSelector, choose_gemini_verb, quote_path_segment
from dragoman.wire.json import encode
from dragoman.wire.splice import set_member

BASE_URL = "https://generativelanguage.googleapis.com"
_VERSIONED = re.compile(r"(?P<base>.*)(?P<version>/v1(?:beta|beta1|alpha)?)")
_DEFAULT_VERSION = "/v1beta"


class Gemini:
    """A server with `/v1beta/models/MODEL:generateContent` below its base URL; the URL may name another version."""

    form = ""
    has_passthrough = True
    dialect = "gemini"

    def __init__(self, name: str, base_url: str, api_key: str, agent: str) -> None:
        self.name = name
        base = (base_url or BASE_URL).rstrip("/")
        versioned = _VERSIONED.fullmatch(base)
        self._version = versioned["version"] if versioned else _DEFAULT_VERSION
        keys: Headers = (("x-goog-api-key", api_key),) if api_key else ()
        self.site = Site(versioned["base"] if versioned else base, keys, agent)

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:
        verb = choose_gemini_verb(call, translated=translated)
        return self.site.post(self._path(call, verb), call.body, client_headers)

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        model_name = encode(f"models/{call.model.removeprefix('models/')}")
        body = b'{"generateContentRequest":' + set_member(call.body, "model", model_name) + b"}"
        return self.site.post(self._path(call, "countTokens"), body, client_headers)

    async def models(self) -> Listing | None:
        return Listing(self.site.get(f"{self._version}/models?pageSize=1000"), gemini_rows)

    def build_passthrough(self, request: Request) -> Outgoing | None:
        return self.site.send(request, request.target)

    def _path(self, call: Call, verb: str) -> str:
        return f"{self._version}/models/{quote_path_segment(call.model.removeprefix('models/'))}:{verb}"


def _open(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(Gemini(name, table.base_url, table.api_key, agent))


KIND = UpstreamKind(
    name="gemini",
    dialects=(Gemini.dialect,),
    open=_open,
    base_url=BASE_URL,
    variables={"api_key": "GEMINI_API_KEY", "base_url": "GOOGLE_GEMINI_BASE_URL"},
    found_as="gemini",
    client_variables=("GOOGLE_GEMINI_BASE_URL",),
    client_urls=lambda _table: (BASE_URL,),
)
