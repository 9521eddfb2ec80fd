"""Code Assist's envelope, and the calls its clients make before the first request.

A client whose project begins with `new` is not on board yet, and is told which tiers there are; any other is.
"""

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw, Struct

from dragoman.simulator.apis.gemini.proto import Fields, Message, Reader, members_of
from dragoman.simulator.apis.gemini.shape import RULES
from dragoman.simulator.rule import Violation

_PROJECT = "simulated-project"
_TIER = {"id": "standard-tier", "name": "Gemini Code Assist", "description": "A simulator, not a subscription"}
_FREE = {"id": "free-tier", "name": "Gemini Code Assist for individuals", "isDefault": False}
_UNHEEDED = ("includeServerSideToolInvocations", "include_server_side_tool_invocations")
_ONBOARDED = "type.googleapis.com/google.internal.cloud.code.v1internal.OnboardUserResponse"


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
    cloudaicompanionProject: str = ""  # noqa: N815  Google's name


_READER = Reader(Envelope, vertex=True)


def unwrapped(body: bytes) -> tuple[str, bytes] | Violation:
    """Take a request out of its envelope: the model's name, and the request itself.

    Only a request to count tokens names its model within.
    """
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


def load_code_assist(body: bytes) -> bytes:
    """Answer `loadCodeAssist`: which tier the user is on, and with which project."""
    project = _project(body)
    if project.startswith("new"):
        tiers = [{**_TIER, "isDefault": True, "userDefinedCloudaicompanionProject": True}, _FREE]
        return msgspec.json.encode({"allowedTiers": tiers})
    return msgspec.json.encode({"currentTier": _TIER, "cloudaicompanionProject": project or _PROJECT})


def onboard_user(body: bytes) -> bytes:
    """Answer `onboardUser`: an operation that is done at once."""
    project = _project(body) or _PROJECT
    response = {"@type": _ONBOARDED, "cloudaicompanionProject": {"id": project, "name": project}}
    name = f"operations/{sha256(body).hexdigest()[:16]}"
    return msgspec.json.encode({"name": name, "done": True, "response": response})


def _project(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Asked).cloudaicompanionProject
    except msgspec.MsgspecError:
        return ""
