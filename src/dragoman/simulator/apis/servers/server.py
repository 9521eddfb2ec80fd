"""What distinguishes a Chat-compatible server from OpenAI's Chat Completions: the fields of one row."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

from msgspec import Struct

from dragoman.simulator.apis.api import ApiRejection
from dragoman.simulator.apis.chat.body import ChatCompletionsRequest
from dragoman.simulator.apis.conversation import Call, TokenSigner
from dragoman.simulator.apis.rule import Json, Rule

QUIRKS = "wire/provider_quirks.md section 1.1"
REFUSED = "wire/provider_quirks.md section 1.3"
"""Sources of most rules."""


class ServerRequest(ChatCompletionsRequest, frozen=True, kw_only=True):
    """A request whose fields are valid, with the signer of earlier replies."""

    signer: TokenSigner


class Server(Struct, frozen=True, kw_only=True):
    """One server."""

    name: str
    members: Json
    """The declarations of its own fields of a request."""
    rules: tuple[Rule[ServerRequest], ...]
    thinks: Callable[[ServerRequest], bool]
    build_error: Callable[[ApiRejection, str], Json]
    """Returns the error object, given the message."""
    reasoning: str = "reasoning_content"
    """The field of a message with the thinking."""
    signs_reasoning: bool = False
    """A message also has `reasoning_details`, with a signature."""
    build_call_id: Callable[[Call, "CallPlace"], str]
    streams_whole_calls: bool = False
    """A call is one delta of a stream."""
    repeats_role: bool = False
    """Every delta of text and thinking has the role."""
    repeats_empty_id: bool = False
    """Later deltas of a call have an empty id."""
    usage_chunk: Literal["finish", "alone"] = "finish"
    """Where the usage of a stream is: in the chunk with the finish reason, or in one without choices if requested."""
    stop_if_named: bool = False
    """The finish reason is `stop` if `tool_choice` names a tool."""
    sends_error_end: bool = False
    """An error in a stream is followed by `[DONE]`."""
    checks_pairs: bool = True
    """Reject calls without results, and results without calls."""
    comment: bytes = b""
    """What comes before the first event of a stream."""
    reply_members: Json = {}
    """Other fields of a reply and of each chunk."""
    choice_members: Callable[[str], Json] = lambda _: {}
    """Returns other fields of a choice, given the finish reason."""
    usage_members: Callable[[int, int], Json] = lambda _input, _cached: {}
    """Returns other fields of the usage, given the numbers of prompt and cached tokens."""


class CallPlace(Struct, frozen=True):
    """Where a call is: its position in the reply, the number of calls before the reply, and the reply's id."""

    position: int
    earlier: int
    reply: str
    streamed: bool


def build_openai_error(rejection: ApiRejection, message: str) -> dict[str, Any]:
    """Return an error of OpenAI's form."""
    kind = "invalid_request_error" if rejection.status < 500 else "server_error"
    return {"message": message, "type": kind, "param": None, "code": kind}


def hash_call(call: Call, place: CallPlace) -> str:
    """Return 64 hexadecimal digits for the id of a call."""
    return hashlib.sha256(f"{place.reply} {place.position} {call.id}".encode()).hexdigest()


def find_calling_turns(request: ServerRequest) -> Iterator[tuple[int, Json]]:
    """Yield the assistant messages with calls, and their indexes."""
    for at, message in enumerate(request.list("messages")):
        if message["role"] == "assistant" and message.get("tool_calls"):
            yield at, message
