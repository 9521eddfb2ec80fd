"""Vertex AI: Gemini and Claude by Google Cloud project and location, with Google credentials."""

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.anthropic import COUNTED_MEMBERS
from dragoman.upstreams.google_tokens import GoogleAccount, build_google_account, describe_credentials
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing, publisher_rows
from dragoman.upstreams.upstream import (
    FixedUpstream,
    Site,
    UpstreamSelector,
    choose_gemini_verb,
    quote_path_segment,
    select_members,
)
from dragoman.wire.json import decode_object, encode
from dragoman.wire.splice import remove_member, set_member

_REGIONS = frozenset({"us", "eu"})
_COUNTED_MEMBERS = frozenset({"contents", "systemInstruction", "tools", "generationConfig"})
_TOOL_CONFIG = ("toolConfig", "tool_config")
_STUDIO_ONLY = ("includeServerSideToolInvocations", "include_server_side_tool_invocations")
_CLAUDE_VERSION = encode("vertex-2023-10-16")
_VARIABLES = {"project": "GOOGLE_CLOUD_PROJECT", "location": "GOOGLE_CLOUD_LOCATION"}


def base_url_of(location: str) -> str:
    """Return the server for a location: a region, a multi-region or `global`."""
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in _REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


class Vertex:
    """The common part of Gemini and Claude on Vertex AI."""

    form = ""
    has_passthrough = False
    publisher = ""

    def __init__(self, name: str, base_url: str, account: GoogleAccount, agent: str) -> None:
        self.name = name
        project, location = quote_path_segment(account.project), quote_path_segment(account.location)
        self._publishers_path = f"/projects/{project}/locations/{location}/publishers"
        self._account = account
        # The variable of Anthropic's SDK ends in the version, that of Google's does not.
        self.site = Site((base_url or base_url_of(account.location)).rstrip("/").removesuffix("/v1"), (), agent)

    async def models(self) -> Listing | None:
        path = f"/v1beta1/publishers/{self.publisher}/models?pageSize=1000"
        return Listing(self.site.get(path, (await self._account.bearer(),)), publisher_rows)

    def build_passthrough(self, request: Request) -> Outgoing | None:
        del request  # its other endpoints are not for API clients
        return None

    async def _post(self, path: str, body: bytes, client_headers: Headers) -> Outgoing:
        return self.site.post(path, body, (await self._account.bearer(), *client_headers))


class VertexGemini(Vertex):
    """Gemini on Vertex AI. It uses v1beta1, because v1 has no ids on function calls."""

    dialect = "gemini"
    publisher = "google"

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:
        verb = choose_gemini_verb(call, translated=translated)
        return await self._post(self._path(call, verb), _drop_studio_fields(call.body), client_headers)

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        return await self._post(
            self._path(call, "countTokens"), select_members(call.body, _COUNTED_MEMBERS), client_headers
        )

    def _path(self, call: Call, verb: str) -> str:
        model = quote_path_segment(call.model.removeprefix("models/"))
        return f"/v1beta1{self._publishers_path}/google/models/{model}:{verb}"


class VertexAnthropic(Vertex):
    """Claude on Vertex AI: the model is in the path, the API version in the body."""

    dialect = "messages"
    publisher = "anthropic"

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:  # noqa: ARG002
        verb = "streamRawPredict" if call.stream else "rawPredict"
        if not call.model:
            raise Problem("invalid_request", "`model` is required", where="/model")
        path = f"/v1{self._publishers_path}/anthropic/models/{quote_path_segment(call.model)}:{verb}"
        body = set_member(remove_member(call.body, "model"), "anthropic_version", _CLAUDE_VERSION)
        return await self._post(path, body, _drop_version(client_headers))

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        path = f"/v1{self._publishers_path}/anthropic/models/count-tokens:rawPredict"
        body = set_member(select_members(call.body, COUNTED_MEMBERS), "anthropic_version", _CLAUDE_VERSION)
        return await self._post(path, body, _drop_version(client_headers))


def _drop_studio_fields(body: bytes) -> bytes:
    """Remove AI Studio's setting for combining built-in and client tools: Vertex AI does not know or need it."""
    if not any(field.encode() in body for field in _STUDIO_ONLY):
        return body
    members = decode_object(body)
    for name in _TOOL_CONFIG:
        if name in members:
            config = bytes(members[name])
            for field in _STUDIO_ONLY:
                config = remove_member(config, field)
            body = set_member(body, name, config)
    return body


def _drop_version(headers: Headers) -> Headers:
    return tuple(header for header in headers if header[0] != "anthropic-version")


def _open_gemini(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(VertexGemini(name, table.base_url, build_google_account(name, table), agent))


def _open_anthropic(name: str, table: UpstreamTable, agent: str, _send: Send) -> UpstreamSelector:
    return FixedUpstream(VertexAnthropic(name, table.base_url, build_google_account(name, table), agent))


GEMINI_KIND = UpstreamKind(
    name="vertex-gemini",
    dialects=(VertexGemini.dialect,),
    open=_open_gemini,
    variables={**_VARIABLES, "base_url": "GOOGLE_VERTEX_BASE_URL"},
    found_as="vertex",
    describe_credentials=describe_credentials,
    client_variables=("GOOGLE_VERTEX_BASE_URL",),
    client_urls=lambda table: (base_url_of(table.location),),
)
ANTHROPIC_KIND = UpstreamKind(
    name="vertex-anthropic",
    dialects=(VertexAnthropic.dialect,),
    open=_open_anthropic,
    variables={**_VARIABLES, "base_url": "ANTHROPIC_VERTEX_BASE_URL"},
    found_as="vertex-claude",
    describe_credentials=describe_credentials,
    links=False,
)
