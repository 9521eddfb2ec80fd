"""What the simulator's model is asked and answers, in terms of no vendor, and the signatures that it issues."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error
from typing import Any, Literal

from msgspec import Struct, field

ToolKind = Literal["function", "custom", "search", "other"]
ChoiceMode = Literal["auto", "none", "required", "validated"]
AnswerEnd = Literal["stop", "length", "calls", "filtered", "malformed_call"]


class Tool(Struct, frozen=True, kw_only=True):
    """A tool the model may use. `search` is run by the model itself."""

    name: str
    description: str = ""
    schema: dict[str, Any] = field(default_factory=dict[str, Any])
    kind: ToolKind = "function"


class Choice(Struct, frozen=True, kw_only=True):
    """How free the model is; `names` are the only tools it may call, empty means all."""

    mode: ChoiceMode = "auto"
    names: tuple[str, ...] = ()
    parallel: bool = True


class Call(Struct, frozen=True, kw_only=True):
    """A call of a tool: arguments as a JSON object, or as text for a custom tool."""

    id: str
    name: str
    arguments: dict[str, Any] | str


class Result(Struct, frozen=True, kw_only=True):
    """What a tool answered, as text."""

    call_id: str
    name: str
    text: str
    failed: bool = False


class Turn(Struct, frozen=True, kw_only=True):
    """One turn of the conversation."""

    role: Literal["system", "user", "assistant"]
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    media: tuple[str, ...] = ()
    """Media types of what was shown: the model cannot see it, and says so."""


class Ask(Struct, frozen=True, kw_only=True):
    """Everything the model looks at."""

    model: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    choice: Choice = Choice()
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    """The answer must be JSON of this schema; `{}` is any object."""
    thinks: bool = False
    """The model thinks before it answers, and the API shows or signs that."""
    seed: int = 0
    candidates: int = 1


class Source(Struct, frozen=True, kw_only=True):
    """A document the model found and quotes; `quote` stands in its answer word for word."""

    url: str
    title: str
    quote: str


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens; `input` includes `cached`, `output` includes `thought`."""

    input: int
    output: int
    cached: int = 0
    thought: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """What the model says. Text comes before calls."""

    text: str = ""
    refusal: str = ""
    """What it says instead of an answer, if a script says so: Google has no word for it, and shows it as text."""
    thought: str = ""
    calls: tuple[Call, ...] = ()
    end: AnswerEnd = "stop"
    stopped_by: str = ""
    """The stop sequence that was met."""
    query: str = ""
    """What it searched for, if it searched."""
    sources: tuple[Source, ...] = ()
    usage: Usage = Usage(input=0, output=0)


Verdict = Literal["genuine", "altered", "moved", "foreign"]
_MARK = b"dragoman-sim/1"
_NUMBER = 8
_DIGEST = 16


class Signer:
    """Issues and judges; two simulators with the same seed know each other's signatures."""

    def __init__(self, seed: int = 0) -> None:
        self._key = hashlib.sha256(_MARK + str(seed).encode()).digest()

    def issue(self, content: str, occasion: str) -> str:
        """Sign `content`; the same content on another `occasion` (a reply's id and place) gets another token."""
        number = hashlib.sha256(occasion.encode()).digest()[:_NUMBER]
        token = _MARK + number + self._digest(number, b"") + self._digest(number, content.encode())
        return b64encode(token).decode()

    def judge(self, token: str, content: str) -> Verdict:
        """Tell what became of a token."""
        try:
            raw = b64decode(token, validate=True)
        except (Error, ValueError):
            return "altered" if b64encode(_MARK).decode()[:-4] in token else "foreign"
        if not raw.startswith(_MARK):
            return "foreign"
        number = raw[len(_MARK) :][:_NUMBER]
        rest = raw[len(_MARK) + _NUMBER :]
        own, signed = rest[:_DIGEST], rest[_DIGEST:]
        if len(signed) != _DIGEST or not hmac.compare_digest(own, self._digest(number, b"")):
            return "altered"
        return "genuine" if hmac.compare_digest(signed, self._digest(number, content.encode())) else "moved"

    def _digest(self, number: bytes, content: bytes) -> bytes:
        return hmac.new(self._key, number + content, hashlib.sha256).digest()[:_DIGEST]
