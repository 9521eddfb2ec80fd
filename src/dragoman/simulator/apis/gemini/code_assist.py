"""Code Assist's envelope, and the setup calls its clients make before the first request.

A client whose project begins with `new` is not onboarded yet, and gets the list of tiers; any other is. Onboarding is
immediate, except for a project that begins with `new-slow`: there the client has to poll the operation.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.apis.gemini.proto import NOT_MESSAGE, STRUCT, ProtoMessage, build_json_violation
from dragoman.simulator.apis.rule import Json, Violation

_PROJECT = "simulated-project"
_TIER = {"id": "standard-tier", "name": "Gemini Code Assist", "description": "A simulator, not a subscription"}
_FREE = {"id": "free-tier", "name": "Gemini Code Assist for individuals", "isDefault": False}
_IGNORED_FIELDS = ("includeServerSideToolInvocations", "include_server_side_tool_invocations")
_ONBOARD_TYPE = "type.googleapis.com/google.internal.cloud.code.v1internal.OnboardUserResponse"
_OPERATION = "operations/onboard."
_RESET = "2030-01-01T00:00:00Z"


_ENVELOPE = ProtoMessage(
    "Envelope",
    {
        "model": str,
        "project": str,
        "userPromptId": str,
        "request": STRUCT,
        "enabledCreditTypes": [str],
        "requestId": str,
        "requestType": str,
        "userAgent": str,
    },
)
"""The envelope of a request; the last four fields are Antigravity's."""


class _ResponseIdField(Struct):
    responseId: str = ""  # noqa: N815  Google's name


class _SetupRequest(Struct):
    cloudaicompanionProject: str | None = None  # noqa: N815  Google's name
    freeTierDataCollectionOptin: bool | None = None  # noqa: N815  Google's name


class _Count(Struct):
    totalTokens: int  # noqa: N815  Google's name


def unwrap_request(body: bytes) -> tuple[str, bytes] | Violation:
    """Return the model's name and the request inside an envelope.

    Only a token-count request names its model inside the request.
    """
    try:
        return _parse_envelope(body)
    except RecursionError as error:
        return build_json_violation(error)


def _parse_envelope(body: bytes) -> tuple[str, bytes] | Violation:
    envelope = _ENVELOPE.read(body, "vertex")
    if isinstance(envelope, Violation):
        return envelope
    if "request" not in envelope:
        return Violation("Request contains an invalid argument.", "/request", rule="gemini.envelope")
    request: Json = dict(envelope["request"])
    for name in ("session_id", "sessionId"):
        session: Any = request.pop(name, None)
        if session is not None and not isinstance(session, str):
            message = f"Invalid value at 'request.session_id' (TYPE_STRING), {msgspec.json.encode(session).decode()}"
            return Violation(message, f"/request/{name}", rule="gemini.type")
    for name in ("tool_config", "toolConfig"):
        # Code Assist accepts and ignores it (wire/gemini.md section 11); Vertex, which gets the request, rejects it.
        config = request.get(name)
        if isinstance(config, dict):
            request[name] = {key: value for key, value in cast("Json", config).items() if key not in _IGNORED_FIELDS}
    model, inner = envelope.get("model"), request.pop("model", None)
    if inner is not None and model is not None:
        message = "Invalid JSON payload received. Unknown name \"model\" at 'request': Cannot find field."
        return Violation(message, "/request/model", rule="gemini.unknown-field")
    named = model or (inner if isinstance(inner, str) else "")
    return named.removeprefix("models/"), msgspec.json.encode(request)


def wrap_reply(reply: bytes) -> bytes:
    """Wrap a reply, or a chunk of a stream, in an envelope; all chunks of a stream have the same trace id."""
    trace = sha256(msgspec.json.decode(reply, type=_ResponseIdField).responseId.encode()).hexdigest()[:16]
    return msgspec.json.encode({"response": Raw(reply.strip()), "traceId": trace})


def reduce_count(count: bytes) -> bytes:
    """Reduce a token count to the only field that Code Assist returns."""
    return msgspec.json.encode(msgspec.json.decode(count, type=_Count))


def handle_setup_call(action: str, operation: str, body: bytes, models: Iterable[str] = ()) -> bytes | Violation:
    """Answer a setup call; `operation` is the operation to poll, `models` are those the quota is reported for."""
    setup = _parse_setup_request(body or b"{}")
    if isinstance(setup, Violation):
        return setup
    project = setup.cloudaicompanionProject or ""
    match action:
        case "loadCodeAssist":
            return _load_code_assist(project)
        case "onboardUser":
            return _onboard_user(project or _PROJECT)
        case "operation":
            return _render_onboarded(operation.removeprefix("operations/").removeprefix("onboard."))
        case "retrieveUserQuota":
            bucket = {"tokenType": "REQUESTS", "remainingFraction": 1, "resetTime": _RESET}
            return msgspec.json.encode({"buckets": [{**bucket, "modelId": name} for name in models]})
        case "listExperiments":
            return msgspec.json.encode({"experimentIds": list[int](), "flags": list[Any]()})
        case "fetchAdminControls":
            return msgspec.json.encode({"adminControlsApplicable": False})
        case "getCodeAssistGlobalUserSetting" | "setCodeAssistGlobalUserSetting":
            setting = {"freeTierDataCollectionOptin": bool(setup.freeTierDataCollectionOptin)}
            return msgspec.json.encode({"cloudaicompanionProject": project or _PROJECT, **setting})
        case _:
            return b"{}"


def _load_code_assist(project: str) -> bytes:
    """Return the user's tier and project, or the list of tiers."""
    if project.startswith("new"):
        tiers = [{**_TIER, "isDefault": True, "userDefinedCloudaicompanionProject": True}, _FREE]
        return msgspec.json.encode({"allowedTiers": tiers})
    return msgspec.json.encode({"currentTier": _TIER, "cloudaicompanionProject": project or _PROJECT})


def _onboard_user(project: str) -> bytes:
    """Return an operation, in most cases a completed one."""
    if project.startswith("new-slow"):
        return msgspec.json.encode({"name": _OPERATION + project, "done": False})
    return _render_onboarded(project)


def _render_onboarded(project: str) -> bytes:
    response = {"@type": _ONBOARD_TYPE, "cloudaicompanionProject": {"id": project, "name": project}}
    return msgspec.json.encode({"name": _OPERATION + project, "done": True, "response": response})


def _parse_setup_request(body: bytes) -> _SetupRequest | Violation:
    """Parse a setup call; unknown fields are accepted because they are not documented."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return build_json_violation(error)
    if not isinstance(document, dict):
        return NOT_MESSAGE
    try:
        return msgspec.convert(document, _SetupRequest)
    except msgspec.ValidationError as error:
        return Violation(f"Invalid value: {error}", rule="gemini.type")
