"""What Code Assist's clients ask beside answers: who they are, what they may use, how it is set.

Accounts, projects and tiers are the upstreams' business and configured there. A client is told that all is set up, so
that it goes on to ask its questions; the project it names is taken as it is.
"""

from collections.abc import Callable
from typing import Any, cast

from dragoman.core.problems import Problem
from dragoman.gateway.catalogue import Catalogue
from dragoman.wire.json import Malformed, decode, encode

_PROJECT = "dragoman"
_TIER = {"id": "standard-tier", "name": "Dragoman", "description": "Answered by the gateway's upstreams"}
_ONBOARDED = "type.googleapis.com/google.internal.cloud.code.v1internal.OnboardUserResponse"
_RESET = "2100-01-01T00:00:00Z"
_IGNORED_CALLS = frozenset({"recordCodeAssistMetrics", "recordClientEvent", "recordTrajectoryAnalytics"})
"""Reports to Google about how its program is used: nobody here wants them, and their senders need only thanks."""


async def handle_call(method: str, body: bytes, catalogue: Catalogue, allows: Callable[[str], bool]) -> bytes:
    """Answer a call; the client may use the models that `allows` lets pass."""
    asked = _decode_body(body)
    project: Any = asked.get("cloudaicompanionProject") or asked.get("project") or _PROJECT
    match method:
        case "loadCodeAssist":
            tiers = [{**_TIER, "isDefault": True, "userDefinedCloudaicompanionProject": False}]
            return encode({"currentTier": _TIER, "allowedTiers": tiers, "cloudaicompanionProject": project})
        case "onboardUser" | "operation":
            return encode(_build_onboarding(project))
        case "retrieveUserQuota":
            bucket = {"tokenType": "REQUESTS", "remainingFraction": 1, "resetTime": _RESET}
            # Only here is it worth asking upstreams: a client waits for all of this before its first question.
            return encode(
                {"buckets": [{**bucket, "modelId": name} for name in await catalogue.list_entries() if allows(name)]}
            )
        case "listExperiments":
            return encode({"experimentIds": list[int](), "flags": list[Any]()})
        case "fetchAdminControls":
            return encode({"adminControlsApplicable": False})
        case "getCodeAssistGlobalUserSetting" | "setCodeAssistGlobalUserSetting":
            return encode({"cloudaicompanionProject": project, "freeTierDataCollectionOptin": False})
        case _ if method in _IGNORED_CALLS:
            return b"{}"
        case _:
            raise Problem("not_found", f"there is no /v1internal:{method} here", code="unknown_url")


def _build_onboarding(project: str) -> dict[str, Any]:
    response = {"@type": _ONBOARDED, "cloudaicompanionProject": {"id": project, "name": project}}
    return {"name": "operations/onboarded", "done": True, "response": response}


def _decode_body(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        asked = decode(body)
    except Malformed as error:
        raise Problem("invalid_request", error.message, where=error.where) from None
    return cast("dict[str, Any]", asked) if isinstance(asked, dict) else {}
