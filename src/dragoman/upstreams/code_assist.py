"""Code Assist: Gemini in an envelope, for accounts with a licence, which has its own project for each of them.

The project is found out once: the account's, or the one its set-up makes. An account that may not use the service gets
the reasons Google gives. Which OAuth client is asked with is the user's own choice; we bring none.
"""

import asyncio
from typing import Any

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.http.client import Outgoing
from dragoman.http.message import Headers, Request
from dragoman.upstreams.google_tokens import GoogleAccount, build_google_account
from dragoman.upstreams.kind import Send, UpstreamKind, UpstreamTable
from dragoman.upstreams.model_list import Listing
from dragoman.upstreams.upstream import FixedPlace, Place, Site, choose_gemini_verb
from dragoman.wire import json
from dragoman.wire.splice import set_member

BASE_URL = "https://cloudcode-pa.googleapis.com"
_METADATA = {"ideType": "IDE_UNSPECIFIED", "platform": "PLATFORM_UNSPECIFIED", "pluginType": "GEMINI"}
_POLLS = 24
_BETWEEN_POLLS = 5.0


class CodeAssist:
    """Gemini as Code Assist has it."""

    dialect = "gemini"
    form = "code_assist"
    others = False

    def __init__(self, name: str, base_url: str, account: GoogleAccount, agent: str, send: Send) -> None:
        self.name = name
        self._tokens = account.tokens
        self.site = Site(base_url or BASE_URL, (), agent)
        self._send = send
        self._configured_project = account.project
        self._project: str | None = None
        self._lock = asyncio.Lock()

    async def generate(self, call: Call, passed: Headers, *, translated: bool = False) -> Outgoing:
        verb = choose_gemini_verb(call, translated=translated)
        project = await self._find_project()
        return await self._post(verb, set_member(call.body, "project", json.encode(project)), passed)

    async def count(self, call: Call, passed: Headers) -> Outgoing | None:
        inner = json.decode_object(json.decode_object(call.body)["request"])
        asked = {"model": f"models/{call.model}", "contents": inner["contents"]}
        return await self._post("countTokens", json.encode({"request": asked}), passed)

    async def models(self) -> Listing | None:
        return None

    def elsewhere(self, request: Request) -> Outgoing | None:
        del request  # its other endpoints are not for clients of models
        return None

    async def _post(self, verb: str, body: bytes, passed: Headers = ()) -> Outgoing:
        return self.site.post(f"/v1internal:{verb}", body, (await self._build_bearer(), *passed))

    async def _build_bearer(self) -> tuple[str, str]:
        return "authorization", f"Bearer {await self._tokens.token()}"

    async def _find_project(self) -> str:
        if self._project is None:
            async with self._lock:
                if self._project is None:
                    self._project = await self._discover_project()
        return self._project

    async def _discover_project(self) -> str:
        """Ask which project the account has, and have one set up where it may and has none."""
        known = {"cloudaicompanionProject": self._configured_project} if self._configured_project else {}
        loaded = await self._send(await self._post("loadCodeAssist", json.encode({**known, "metadata": _METADATA})))
        if loaded.get("currentTier"):
            project = self._configured_project or loaded.get("cloudaicompanionProject")
            if not project:
                raise self._build_error("its licence needs a Google Cloud project: set `project`")
            return project
        tier = next((tier for tier in loaded.get("allowedTiers") or () if tier.get("isDefault")), None)
        if tier is None:
            reasons = [str(tier.get("reasonMessage") or "") for tier in loaded.get("ineligibleTiers") or ()]
            raise self._build_error("; ".join(filter(None, reasons)) or "no tier is open to it")
        asked = {"tierId": tier.get("id"), **known, "metadata": _METADATA}
        operation = await self._send(await self._post("onboardUser", json.encode(asked)))
        return await self._wait_for_setup(operation)

    async def _wait_for_setup(self, operation: dict[str, Any]) -> str:
        for _ in range(_POLLS):
            if operation.get("done"):
                made: dict[str, Any] = operation.get("response") or {}
                project: dict[str, Any] = made.get("cloudaicompanionProject") or {}
                return project.get("id") or self._configured_project
            await asyncio.sleep(_BETWEEN_POLLS)
            operation = await self._send(
                self.site.get(f"/v1internal/{operation.get('name')}", (await self._build_bearer(),))
            )
        raise self._build_error("its set-up did not end")

    def _build_error(self, reason: str) -> Problem:
        words = f"the account of the upstream {self.name} cannot use Code Assist: {reason}"
        return Problem("internal", words, status=502, code="credentials")


def _open(name: str, table: UpstreamTable, agent: str, send: Send) -> Place:
    return FixedPlace(CodeAssist(name, table.base_url, build_google_account(name, table), agent, send))


KIND = UpstreamKind(
    name="code-assist",
    dialects=(CodeAssist.dialect,),
    open=_open,
    base_url=BASE_URL,
    client_variables=("CODE_ASSIST_ENDPOINT",),
    client_urls=lambda _table: (BASE_URL,),
)
