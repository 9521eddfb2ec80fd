"""Code Assist: Gemini requests in an envelope, for licensed Google accounts. Each account has its own project.

The project is looked up once: the account's project, or the one that Google creates when the account is set up. If the
account may not use the service, the error has Google's reasons. The user provides the OAuth client; none is built in.
"""

import asyncio
from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.google_tokens import GoogleAccount, build_google_account, describe_credentials
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing
from dragoman.upstreams.upstream import FixedUpstream, Site, UpstreamSelector, choose_gemini_verb
from dragoman.wire import json
from dragoman.wire.splice import set_member

BASE_URL = "https://cloudcode-pa.googleapis.com"
_METADATA = {"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"}
_POLLS = 24
_POLL_SECONDS = 5.0


class CodeAssist:
    """Gemini behind the Code Assist API."""

    dialect = "gemini"
    form = "code_assist"
    has_passthrough = False

    def __init__(self, name: str, base_url: str, account: GoogleAccount, agent: str, send: Send) -> None:
        self.name = name
        self._account = account
        self.site = Site(base_url or BASE_URL, (), agent)
        self._send = send
        self._project: str | None = None
        self._lock = asyncio.Lock()

    async def generate(self, call: Call, client_headers: Headers, *, translated: bool = False) -> Outgoing:
        verb = choose_gemini_verb(call, translated=translated)
        project = await self._find_project()
        return await self._post(verb, set_member(call.body, "project", json.encode(project)), client_headers)

    async def count(self, call: Call, client_headers: Headers) -> Outgoing | None:
        inner = json.decode_object(json.decode_object(call.body)["request"])
        counted = {"model": f"models/{call.model}", "contents": inner["contents"]}
        return await self._post("countTokens", json.encode({"request": counted}), client_headers)

    async def models(self) -> Listing | None:
        return None

    def build_passthrough(self, request: Request) -> Outgoing | None:
        del request  # its other endpoints are not for API clients
        return None

    async def _post(self, verb: str, body: bytes, client_headers: Headers = ()) -> Outgoing:
        return self.site.post(f"/v1internal:{verb}", body, (await self._account.bearer(), *client_headers))

    async def _find_project(self) -> str:
        if self._project is None:
            async with self._lock:
                if self._project is None:
                    self._project = await self._discover_project()
        return self._project

    async def _discover_project(self) -> str:
        """Return the project of the account; create one if the account may have one and has none."""
        configured = {"cloudaicompanionProject": self._account.project} if self._account.project else {}
        request = json.encode({**configured, "metadata": _METADATA})
        loaded = await self._send(await self._post("loadCodeAssist", request))
        if loaded.get("currentTier"):
            project = self._account.project or loaded.get("cloudaicompanionProject")
            if not project:
                raise self._build_error("its licence needs a Google Cloud project; set `project` of the upstream")
            return project
        tier = next((tier for tier in loaded.get("allowedTiers") or () if tier.get("isDefault")), None)
        if tier is None:
            reasons = [str(tier.get("reasonMessage") or "") for tier in loaded.get("ineligibleTiers") or ()]
            raise self._build_error("; ".join(filter(None, reasons)) or "no tier is available to it")
        setup = {"tierId": tier.get("id"), **configured, "metadata": _METADATA}
        operation = await self._send(await self._post("onboardUser", json.encode(setup)))
        return await self._wait_for_setup(operation)

    async def _wait_for_setup(self, operation: dict[str, Any]) -> str:
        for _ in range(_POLLS):
            if operation.get("done"):
                response: dict[str, Any] = operation.get("response") or {}
                project: dict[str, Any] = response.get("cloudaicompanionProject") or {}
                return project.get("id") or self._account.project
            await asyncio.sleep(_POLL_SECONDS)
            operation = await self._send(
                self.site.get(f"/v1internal/{operation.get('name')}", (await self._account.bearer(),))
            )
        raise self._build_error("the account setup did not finish in time")

    def _build_error(self, reason: str) -> Problem:
        message = f"the Google account of upstream {self.name!r} cannot use Code Assist: {reason}"
        return Problem("internal", message, status=502, code="credentials")


def _open(name: str, table: UpstreamTable, agent: str, send: Send) -> UpstreamSelector:
    return FixedUpstream(CodeAssist(name, table.base_url, build_google_account(name, table), agent, send))


KIND = UpstreamKind(
    name="code-assist",
    dialects=(CodeAssist.dialect,),
    open=_open,
    base_url=BASE_URL,
    describe_credentials=describe_credentials,
    client_variables=("CODE_ASSIST_ENDPOINT",),
    client_urls=lambda _table: (BASE_URL,),
)
