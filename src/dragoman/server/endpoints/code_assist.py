"""Code Assist's calls for accounts, quotas and settings, which its clients send before they generate.

Accounts, projects and tiers are configured for the upstreams. The response to a client always is that the account is
set up, so that it continues with its prompts; the project that it names is returned unchanged.
"""

from collections.abc import Callable
from typing import Any

from dragoman.core.problems import Problem
from dragoman.gateway.catalogue import Catalogue
from dragoman.wire.json import Malformed, as_object, decode, encode

_PROJECT = "dragoman"
_TIER = {"id": "standard-tier", "name": "Dragoman", "description": "Answered by the gateway's upstreams"}
_ONBOARDED = "type.googleapis.com/google.internal.cloud.code.v1internal.OnboardUserResponse"
_RESET = "2100-01-01T00:00:00Z"
_SEARCH_MODEL = "gemini-3-flash-preview"
"""What Gemini CLI requests for its web search and fetch. If the quota has no preview model, it requests another one
without the search tool, and so searches nothing."""
_IGNORED_CALLS = frozenset({"recordCodeAssistMetrics", "recordClientEvent", "recordTrajectoryAnalytics"})
"""Telemetry for Google, which is discarded; the clients need only a successful response."""


async def handle_call(method: str, body: bytes, catalogue: Catalogue, allows: Callable[[str], bool]) -> bytes:
    """Return the JSON response of a call; `allows` selects the models that the client may use."""
    fields = _decode_body(body)
    project: Any = fields.get("cloudaicompanionProject") or fields.get("project") or _PROJECT
    match method:
        case "loadCodeAssist":
            tiers = [{**_TIER, "isDefault": True, "userDefinedCloudaicompanionProject": False}]
            return encode({"currentTier": _TIER, "allowedTiers": tiers, "cloudaicompanionProject": project})
        case "onboardUser" | "operation":
            return encode(_build_onboarding(project))
        case "retrieveUserQuota":
            bucket = {"tokenType": "REQUESTS", "remainingFraction": 1, "resetTime": _RESET}
            # Only this call lists the upstreams' models: a client waits for all calls before its first prompt.
            names = dict.fromkeys(await catalogue.list_entries())
            if catalogue.serves(_SEARCH_MODEL):
                names[_SEARCH_MODEL] = None
            return encode({"buckets": [{**bucket, "modelId": name} for name in names if allows(name)]})
        case "listExperiments":
            return encode({"experimentIds": list[int](), "flags": list[Any]()})
        case "fetchAdminControls":
            return encode({"adminControlsApplicable": False})
        case "getCodeAssistGlobalUserSetting" | "setCodeAssistGlobalUserSetting":
            return encode({"cloudaicompanionProject": project, "freeTierDataCollectionOptin": False})
        case _ if method in _IGNORED_CALLS:
            return b"{}"
        case _:
            raise Problem("not_found", f"/v1internal:{method} does not exist", code="unknown_url")


def _build_onboarding(project: str) -> dict[str, Any]:
    response = {"@type": _ONBOARDED, "cloudaicompanionProject": {"id": project, "name": project}}
    return {"name": "operations/onboarded", "done": True, "response": response}


def _decode_body(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        decoded = decode(body)
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    return as_object(decoded)
