"""Google's Vertex AI: Gemini and Claude by project and location, with Google's credentials."""

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.anthropic import COUNTED
from dragoman.upstreams.google_tokens import GoogleAccount, google_account
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing, publisher_rows
from dragoman.upstreams.upstream import FixedPlace, Place, Site, generating, in_path, only
from dragoman.wire.json import decode_object, encode
from dragoman.wire.splice import removed, spliced

_REGIONS = frozenset({"us", "eu"})
_COUNTED = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
_TOOL_CONFIG = ("toolConfig", "tool_config")
_STUDIO_ONLY = ("includeServerSideToolInvocations", "include_server_side_tool_invocations")
_CLAUDE_VERSION = encode("vertex-2023-10-16")
_VARIABLES = {"project": "GOOGLE_CLOUD_PROJECT", "location": "GOOGLE_CLOUD_LOCATION"}


def base_url_of(location: str) -> str:
    """Return the server for a location: a region, a multi-region or the whole world."""
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


class Vertex:
    """What Gemini and Claude have in common there."""

    form = ""
    others = False
    publisher = ""

    def __init__(self, name: str, base_url: str, account: GoogleAccount, agent: str) -> None:
        self.name = name
        self._place = f"/projects/{in_path(account.project)}/locations/{in_path(account.location)}/publishers"
        self._tokens = account.tokens
        self.site = Site(base_url or base_url_of(account.location), (), agent)

    async def models(self) -> Listing | None:
        path = f"/v1beta1/publishers/{self.publisher}/models?pageSize=1000"
        return Listing(self.site.get(path, (await self._bearer(),)), publisher_rows)

    def elsewhere(self, request: Request) -> Outgoing | None:
        del request  # its other endpoints are not for clients of models
        return None

    async def _post(self, path: str, body: bytes, passed: Headers) -> Outgoing:
        return self.site.post(path, body, (await self._bearer(), *passed))

    async def _bearer(self) -> tuple[str, str]:
        return "authorization", f"Bearer {await self._tokens.token()}"


class VertexGemini(Vertex):
    """Gemini there. The older version of its API has no ids on calls."""

    dialect = "gemini"
    publisher = "google"

    async def generate(self, call: Call, passed: Headers, *, translated: bool = False) -> Outgoing:
        verb = generating(call, translated=translated)
        return await self._post(self._path(call, verb), _known_here(call.body), passed)

    async def count(self, call: Call, passed: Headers) -> Outgoing | None:
        return await self._post(self._path(call, "countTokens"), only(call.body, _COUNTED), passed)

    def _path(self, call: Call, verb: str) -> str:
        return f"/v1beta1{self._place}/google/models/{in_path(call.model.removeprefix('models/'))}:{verb}"


class VertexAnthropic(Vertex):
    """Claude there: the model stands in the path, the version of the API in the body."""

    dialect = "messages"
    publisher = "anthropic"

    async def generate(self, call: Call, passed: Headers, *, translated: bool = False) -> Outgoing:  # noqa: ARG002
        verb = "streamRawPredict" if call.stream else "rawPredict"
        if not call.model:
            raise Problem("invalid_request", "a model must be named", where="/model")
        path = f"/v1{self._place}/anthropic/models/{in_path(call.model)}:{verb}"
        body = spliced(removed(call.body, "model"), "anthropic_version", _CLAUDE_VERSION)
        return await self._post(path, body, _without_version(passed))

    async def count(self, call: Call, passed: Headers) -> Outgoing | None:
        path = f"/v1{self._place}/anthropic/models/count-tokens:rawPredict"
        body = spliced(only(call.body, COUNTED), "anthropic_version", _CLAUDE_VERSION)
        return await self._post(path, body, _without_version(passed))


def _known_here(body: bytes) -> bytes:
    """Leave out AI Studio's word for having its own tools beside a client's: here nobody knows it, or needs it."""
    if not any(word.encode() in body for word in _STUDIO_ONLY):
        return body
    members = decode_object(body)
    for name in _TOOL_CONFIG:
        if name in members:
            config = bytes(members[name])
            for word in _STUDIO_ONLY:
                config = removed(config, word)
            body = spliced(body, name, config)
    return body


def _without_version(headers: Headers) -> Headers:
    return tuple(header for header in headers if header[0] != "anthropic-version")


def _open_gemini(name: str, table: UpstreamTable, agent: str, _send: Send) -> Place:
    return FixedPlace(VertexGemini(name, table.base_url, google_account(name, table), agent))


def _open_anthropic(name: str, table: UpstreamTable, agent: str, _send: Send) -> Place:
    return FixedPlace(VertexAnthropic(name, table.base_url, google_account(name, table), agent))


GEMINI_KIND = UpstreamKind(
    name="vertex-gemini",
    dialects=(VertexGemini.dialect,),
    open=_open_gemini,
    variables=_VARIABLES,
    found_as="vertex",
    client_variables=("GOOGLE_VERTEX_BASE_URL",),
    client_urls=lambda table: (base_url_of(table.location),),
)
ANTHROPIC_KIND = UpstreamKind(
    name="vertex-anthropic",
    dialects=(VertexAnthropic.dialect,),
    open=_open_anthropic,
    variables=_VARIABLES,
    found_as="vertex-claude",
    links=False,
)
