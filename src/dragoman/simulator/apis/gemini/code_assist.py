"""Code Assist's envelope, and the calls its clients make before the first request.

A client whose project begins with `new` is not on board yet, and is told which tiers there are; any other is. To come
on board takes no time, but for a project that begins with `new-slow`: there the operation has to be asked for again.
"""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.apis.gemini.proto import Fields, Message, Reader, members_of
from dragoman.simulator.apis.gemini.shape import RULES, not_json
from dragoman.simulator.catalogue import GEMINI
from dragoman.simulator.rule import Violation

_PROJECT = "simulated-project"
_TIER = {"id": "standard-tier", "name": "Gemini Code Assist", "description": "A simulator, not a subscription"}
_FREE = {"id": "free-tier", "name": "Gemini Code Assist for individuals", "isDefault": False}
_UNHEEDED = ("includeServerSideToolInvocations", "include_server_side_tool_invocations")
_ONBOARDED = "type.googleapis.com/google.internal.cloud.code.v1internal.OnboardUserResponse"
_OPERATION = "operations/onboard."
_RESET = "2030-01-01T00:00:00Z"


class Envelope(Message):
    """What stands around a request; the last four are Antigravity's."""

    model: str | None = None
    project: str | None = None
    user_prompt_id: str | None = None
    request: Fields | None = None
    enabled_credit_types: list[str] | None = None
    request_id: str | None = None
    request_type: str | None = None
    user_agent: str | None = None


class _Reply(Struct):
    responseId: str = ""  # noqa: N815  Google's name


class _Asked(Struct):
    cloudaicompanionProject: str | None = None  # noqa: N815  Google's name
    freeTierDataCollectionOptin: bool | None = None  # noqa: N815  Google's name


class _Count(Struct):
    totalTokens: int  # noqa: N815  Google's name


_READER = Reader(Envelope, "vertex")


def unwrapped(body: bytes) -> tuple[str, bytes] | Violation:
    """Take a request out of its envelope: the model's name, and the request itself.

    Only a request to count tokens names its model within.
    """
    try:
        return _opened(body)
    except RecursionError as error:
        return not_json(error)


def _opened(body: bytes) -> tuple[str, bytes] | Violation:
    envelope = _READER.read(body, RULES)
    if isinstance(envelope, Violation):
        return envelope
    if envelope.request is None:
        return Violation("Request contains an invalid argument.", "/request", rule=f"{RULES}.envelope")
    request = dict(envelope.request)
    for name in ("session_id", "sessionId"):
        session: Any = request.pop(name, None)
        if session is not None and not isinstance(session, str):
            words = f"Invalid value at 'request.session_id' (TYPE_STRING), {msgspec.json.encode(session).decode()}"
            return Violation(words, f"/request/{name}", rule=f"{RULES}.type")
    for name in ("tool_config", "toolConfig"):
        # Known here, but not heeded (wire/gemini.md section 11); Vertex, whose request it is else, does not know it.
        config = members_of(request.get(name))
        if config is not None:
            request[name] = {key: config[key] for key in config if key not in _UNHEEDED}
    inner = request.pop("model", None)
    if inner is not None and envelope.model is not None:
        words = "Invalid JSON payload received. Unknown name \"model\" at 'request': Cannot find field."
        return Violation(words, "/request/model", rule=f"{RULES}.unknown-field")
    model = envelope.model or (inner if isinstance(inner, str) else "")
    return model.removeprefix("models/"), msgspec.json.encode(request)


def wrapped(reply: bytes) -> bytes:
    """Put a reply, or the chunk of a stream, into its envelope; every chunk of a stream has the same trace."""
    trace = sha256(msgspec.json.decode(reply, type=_Reply).responseId.encode()).hexdigest()[:16]
    return msgspec.json.encode({"response": Raw(reply.strip()), "traceId": trace})


def counted(count: bytes) -> bytes:
    """Leave of a count of tokens what Code Assist tells: how many there are."""
    return msgspec.json.encode(msgspec.json.decode(count, type=_Count))


def told(action: str, operation: str, body: bytes) -> bytes | Violation:
    """Answer a call that is not for an answer of the model; an operation is asked for by its name."""
    asked = _asked(body or b"{}")
    if isinstance(asked, Violation):
        return asked
    project = asked.cloudaicompanionProject or ""
    match action:
        case "loadCodeAssist":
            return _load_code_assist(project)
        case "onboardUser":
            return _onboard_user(project or _PROJECT)
        case "operation":
            return _onboarded(operation.removeprefix("operations/").removeprefix("onboard."))
        case "retrieveUserQuota":
            bucket = {"tokenType": "REQUESTS", "remainingFraction": 1, "resetTime": _RESET}
            return msgspec.json.encode({"buckets": [{**bucket, "modelId": name} for name in GEMINI]})
        case "listExperiments":
            return msgspec.json.encode({"experimentIds": list[int](), "flags": list[Any]()})
        case "fetchAdminControls":
            return msgspec.json.encode({"adminControlsApplicable": False})
        case "getCodeAssistGlobalUserSetting" | "setCodeAssistGlobalUserSetting":
            setting = {"freeTierDataCollectionOptin": bool(asked.freeTierDataCollectionOptin)}
            return msgspec.json.encode({"cloudaicompanionProject": project or _PROJECT, **setting})
        case _:
            return b"{}"


def _load_code_assist(project: str) -> bytes:
    """Tell which tier the user is on, and with which project."""
    if project.startswith("new"):
        tiers = [{**_TIER, "isDefault": True, "userDefinedCloudaicompanionProject": True}, _FREE]
        return msgspec.json.encode({"allowedTiers": tiers})
    return msgspec.json.encode({"currentTier": _TIER, "cloudaicompanionProject": project or _PROJECT})


def _onboard_user(project: str) -> bytes:
    """Tell of an operation, mostly one that is done at once."""
    if project.startswith("new-slow"):
        return msgspec.json.encode({"name": _OPERATION + project, "done": False})
    return _onboarded(project)


def _onboarded(project: str) -> bytes:
    response = {"@type": _ONBOARDED, "cloudaicompanionProject": {"id": project, "name": project}}
    return msgspec.json.encode({"name": _OPERATION + project, "done": True, "response": response})


def _asked(body: bytes) -> _Asked | Violation:
    """Read what a call is about; of its other members nobody has told what they may be."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return not_json(error)
    if members_of(document) is None:
        words = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        return Violation(words, rule=f"{RULES}.type")
    try:
        return msgspec.convert(document, _Asked)
    except msgspec.ValidationError as error:
        return Violation(f"Invalid value: {error}", rule=f"{RULES}.type")
