"""What a request asks the gateway to remember, or to go on from."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from dragoman.core.problems import Problem
from dragoman.wire import json

_LONGEST_NAME = 256
_HEADERS = frozenset({"x-dragoman-conversation", "x-stainless-retry-count", "idempotency-key"})


class Wanted(Struct, frozen=True, kw_only=True):
    """Which conversation a request belongs to."""

    owner: str = ""
    conversation: str = ""
    previous: str = ""
    """The answer it goes on from."""
    is_named: bool = False
    """The answer can be asked for by its id."""
    may_repeat: bool = False
    """The client may send the whole history again."""
    attempt: str = ""
    """What the client calls this attempt, the same for each time it sends it."""
    is_repeated: bool = False
    """The client says that it has sent the same before."""
    is_background: bool = False
    """Nobody waits for the answer: it is asked for later."""
    is_told: bool = False
    """The answer says which conversation it belongs to."""

    @property
    def keeps(self) -> bool:
        """Whether the answer is to be kept."""
        return self.is_named or bool(self.conversation)


_NOTHING = Wanted()


def asked_by_headers(said: Mapping[str, str]) -> Wanted:
    """Read what the headers ask for."""
    if _HEADERS.isdisjoint(said):
        return _NOTHING
    count = said.get("x-stainless-retry-count", "0")
    return Wanted(
        conversation=checked_name(said.get("x-dragoman-conversation", ""), "x-dragoman-conversation"),
        may_repeat=True,
        attempt=said.get("idempotency-key", ""),
        is_repeated=bool(count.strip("0")),
    )


def asked_by_body(members: Mapping[str, Raw], headers: Wanted) -> Wanted:
    """Read what a Responses request asks for; what its body names goes before the header."""
    conversation = named_conversation(members.get("conversation"))
    previous = _text(members, "previous_response_id")
    if previous and (conversation or headers.conversation):
        words = "'conversation' and 'previous_response_id' cannot be used together"
        raise Problem("invalid_request", words, where="/previous_response_id", code="mutually_exclusive_parameters")
    is_named, is_background = _flag(members, "store", usual=True), _flag(members, "background", usual=False)
    if is_background and not is_named:
        raise Problem("invalid_request", "a background response must be stored", where="/background")
    return Wanted(
        conversation=conversation or headers.conversation,
        previous=previous,
        is_named=is_named,
        is_background=is_background,
        may_repeat=bool(headers.conversation) and not conversation,
        attempt=headers.attempt,
        is_repeated=headers.is_repeated,
    )


def checked_name(name: str, where: str) -> str:
    """Return a name a client chose for a conversation, or refuse it."""
    if len(name) > _LONGEST_NAME:
        words = f"the name of a conversation has {_LONGEST_NAME} characters at most"
        raise Problem("invalid_request", words, where=where)
    if not name.isprintable():
        words = "the name of a conversation has printable characters only, no control characters"
        raise Problem("invalid_request", words, where=where)
    return name


def named_conversation(raw: Raw | None) -> str:
    """Return the conversation a body names, by its id alone or in an object; "" for none."""
    said = json.decode(raw) if raw is not None else None
    match said:
        case None:
            return ""
        case str() | {"id": str()}:
            return checked_name(said if isinstance(said, str) else str(said["id"]), "/conversation")
        case _:
            raise Problem("invalid_request", "a conversation is named by its id", where="/conversation")


def _flag(members: Mapping[str, Raw], name: str, *, usual: bool) -> bool:
    raw = members.get(name)
    said = json.decode(raw) if raw is not None else None
    if said is not None and not isinstance(said, bool):
        raise Problem("invalid_request", f"{name} must be true or false", where=f"/{name}")
    return usual if said is None else said


def _text(members: Mapping[str, Raw], name: str) -> str:
    raw = members.get(name)
    said = json.decode(raw) if raw is not None else None
    if said is not None and not isinstance(said, str):
        raise Problem("invalid_request", f"{name} must be a string", where=f"/{name}")
    return said or ""
