"""Vendor-neutral requests and answers of the simulator's model, and the signatures it issues."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import Any, Literal

from msgspec import Struct, field

ToolKind = Literal["function", "custom", "search", "other"]
ChoiceMode = Literal["auto", "none", "required", "validated"]
AnswerEnd = Literal["stop", "length", "calls", "filtered", "malformed_call"]


class RequestTool(Struct, frozen=True, kw_only=True):
    """A tool the model may use. The model runs `search` itself."""

    name: str
    description: str = ""
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    kind: ToolKind = "function"


class RequestToolChoice(Struct, frozen=True, kw_only=True):
    """The tool choice; `names` are the only tools the model may call, empty means all."""

    mode: ChoiceMode = "auto"
    names: tuple[str, ...] = ()
    parallel: bool = True


class Call(Struct, frozen=True, kw_only=True):
    """A tool call: arguments as a JSON object, or as text for a custom tool."""

    id: str
    name: str
    arguments: dict[str, Any] | str


class RequestResult(Struct, frozen=True, kw_only=True):
    """A tool result, as text."""

    call_id: str
    name: str
    text: str
    failed: bool = False


class RequestTurn(Struct, frozen=True, kw_only=True):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[RequestResult, ...] = ()
    media: tuple[str, ...] = ()
    """Media types of the attachments: the model cannot see them, and says so."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """Everything the model uses of a request."""

    model: str
    turns: tuple[RequestTurn, ...]
    tools: tuple[RequestTool, ...] = ()
    choice: RequestToolChoice = RequestToolChoice()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    """The answer must be JSON of this schema; `{}` allows any object."""
    thinks: bool = False
    """The model thinks before it answers, and the API shows or signs the thinking."""
    seed: int = 0
    candidates: int = 1


Ask = ModelRequest
"""Its former name."""


class AnswerSource(Struct, frozen=True, kw_only=True):
    """A document the model found and quotes; `quote` occurs verbatim in its answer."""

    url: str
    title: str
    quote: str


class AnswerUsage(Struct, frozen=True, kw_only=True):
    """Token counts; `input` includes `cached`, `output` includes `thought`."""

    input: int
    output: int
    cached: int = 0
    thought: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """The model's answer. Text comes before calls."""

    text: str = ""
    refusal: str = ""
    """A refusal instead of an answer, set by scripts only. Google has no field for it, so it is rendered as text."""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    end: AnswerEnd = "stop"
    stopped_by: str = ""
    """The stop sequence that was met."""
    query: str = ""
    """The query of a web search, if the model searched."""
    sources: tuple[AnswerSource, ...] = ()
    usage: AnswerUsage = AnswerUsage(input=0, output=0)


Verdict = Literal["genuine", "altered", "moved", "foreign"]
_TOKEN_PREFIX = b"dragoman-sim/1"
_NONCE_SIZE = 8
_DIGEST_SIZE = 16


class TokenSigner:
    """Issues and verifies signatures; simulators with the same seed accept each other's signatures."""

    def __init__(self, seed: int = 0) -> None:
        self._key = hashlib.sha256(_TOKEN_PREFIX + str(seed).encode()).digest()

    def issue(self, content: str, nonce: str) -> str:
        """Sign `content`; the same content with another `nonce` (a reply's id and position) gets another token."""
        number = hashlib.sha256(nonce.encode()).digest()[:_NONCE_SIZE]
        token = _TOKEN_PREFIX + number + self._digest(number, b"") + self._digest(number, content.encode())
        return b64encode(token).decode()

    def judge(self, token: str, content: str) -> Verdict:
        """Verify a token.

        The verdict is "genuine", "altered", "moved" (signs other content) or "foreign" (not issued by the simulator).
        """
        try:
            raw = b64decode(token, validate=True)
        except (Error, ValueError):
            return "altered" if b64encode(_TOKEN_PREFIX).decode()[:-4] in token else "foreign"
        if not raw.startswith(_TOKEN_PREFIX):
            return "foreign"
        number = raw[len(_TOKEN_PREFIX) :][:_NONCE_SIZE]
        rest = raw[len(_TOKEN_PREFIX) + _NONCE_SIZE :]
        own, signed = rest[:_DIGEST_SIZE], rest[_DIGEST_SIZE:]
        if len(signed) != _DIGEST_SIZE or not hmac.compare_digest(own, self._digest(number, b"")):
            return "altered"
        return "genuine" if hmac.compare_digest(signed, self._digest(number, content.encode())) else "moved"

    def _digest(self, number: bytes, content: bytes) -> bytes:
        return hmac.new(self._key, number + content, hashlib.sha256).digest()[:_DIGEST_SIZE]
