"""What a caller wishes of a client's session: tools for the model, a prompt for the client, results of calls.

Read from a request of any dialect. A caller may send its whole history each time: what is new in it stands behind the
last thing that the model said. Tools hold until others are given.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.intercept.captured import Captured, Group
from dragoman.intercept.digest import digest_of
from dragoman.intercept.document import Fields, items_of
from dragoman.intercept.plan import Tools
from dragoman.intercept.rules.contents import result_of
from dragoman.interpreter.fitting import Undo
from dragoman.interpreter.neutral import Wish as Wording
from dragoman.interpreter.neutral import say_request
from dragoman.wire import json

_GEMINI = "gemini"
_ANYTHING = Message(role="user", parts=(Text(text="go on"),))


class Wish(Struct, frozen=True, kw_only=True):
    """What a caller wishes."""

    digest: bytes
    prompt: str = ""
    results: tuple[ToolResult, ...] = ()
    tools: Tools | None = None
    """None where it brings none: those before hold."""
    undo: Undo | None = None
    losses: tuple[Loss, ...] = ()


def wish_of(request: Request, document: bytes, dialect: str, *, strict: bool = False) -> Wish:
    """Read what a caller wishes of a request, and of the document it was read from."""
    said = _new(request.messages)
    prompt = "\n\n".join(part.text for part in said if isinstance(part, Text))
    results = tuple(part for part in said if isinstance(part, ToolResult))
    others = [part for part in said if not isinstance(part, Text | ToolResult)]
    if others:
        words = f"only text can be handed to the client, not {type(others[0]).__name__.lower()}"
        raise Problem("unsupported", words, where=others[0].where)
    if not prompt.strip() and not results:
        raise Problem("invalid_request", "there is neither a prompt for the client nor a result")
    wish = Wish(digest=digest_of(document), prompt=prompt, results=results)
    if not request.tools and not _says_tools(document):
        return wish
    wording = Wording(source=dialect, document=document, strict=strict)
    asked = Request(model=request.model, messages=(_ANYTHING,), tools=request.tools, tool_choice=request.tool_choice)
    said_there = say_request(asked, _GEMINI, request.model, wording)
    return structs.replace(wish, tools=_tools(said_there.call.body), undo=said_there.undo, losses=said_there.losses)


def _new(messages: Sequence[Message]) -> list[AnyPart]:
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return [part for message in messages[last + 1 :] if message.role == "user" for part in message.parts]


def _says_tools(document: bytes) -> bool:
    """Tell whether a request says that there are no tools, rather than nothing of them."""
    return json.is_object(document) and "tools" in json.decode_object(document)


def _tools(body: bytes) -> Tools:
    fields = Fields(body)
    raw, config = fields.get("tools"), fields.get("toolConfig")
    objects = tuple(tool for tool in (items_of(raw) if raw is not None else ()) if not _is_empty(tool))
    functions = [one for tool in objects for one in items_of(Fields(tool).get("functionDeclarations") or b"[]")]
    names = frozenset(str(json.decode(function)["name"]) for function in functions)
    return Tools(
        objects=objects,
        names=names,
        config=Fields(config).get("functionCallingConfig") if config is not None else None,
    )


def _is_empty(tool: bytes) -> bool:
    return all(bytes(raw) in {b"[]", b"null"} for raw in json.decode_object(tool).values())


def matched(results: Sequence[ToolResult], group: Group) -> tuple[ToolResult, ...]:
    """Return one result for each call of a group, in the order of the calls; a `Problem` names what does not fit."""
    found: dict[str, ToolResult] = {}
    for result in results:
        call_id = result.call_id or _by_name(result, group, found)
        if call_id not in {call.id for call in group.known}:
            words = f"no call {result.call_id or result.name!r} waits for a result"
            raise Problem("invalid_request", words, where=result.where, code="invalid_tool_call")
        found[call_id] = structs.replace(result, call_id=call_id)
    missing = [call.id for call in group.known if call.id not in found]
    if missing:
        words = f"no result was given for {', '.join(map(repr, missing))}: all calls of a turn are answered together"
        raise Problem("invalid_request", words, code="invalid_tool_call")
    return tuple(found[call.id] for call in group.known)


def _by_name(result: ToolResult, group: Group, found: dict[str, ToolResult]) -> str:
    named = (call.id for call in group.known if call.name == result.name and call.id not in found)
    return next(named, "")


def result_parts(results: Sequence[ToolResult], group: Group, request: Request, dialect: str) -> tuple[bytes, ...]:
    """Return what stands for each result in a turn of Gemini's; media may stand beside a result, right behind it."""
    said = Message(role="assistant", parts=tuple(_unsigned(call) for call in group.known))
    asked = Request(
        model=request.model,
        messages=(_ANYTHING, said, Message(role="user", parts=tuple(results))),
        tools=request.tools,
    )
    body = say_request(asked, _GEMINI, request.model, Wording(source=dialect)).call.body
    last = items_of(Fields(body).get("contents") or b"[]")[-1]
    gathered: list[list[bytes]] = []
    for part in items_of(Fields(last).get("parts") or b"[]"):
        if result_of(part) is not None:
            gathered.append([_named(part, group.calls[len(gathered)])])
        elif gathered:
            gathered[-1].append(part)
    return tuple(b",".join(parts) for parts in gathered)


def _unsigned(call: ToolCall) -> ToolCall:
    return structs.replace(call, signature=None, extras=None)


def _named(part: bytes, call: Captured) -> bytes:
    """Let a result name its call as the model knows it."""
    fields = Fields(part)
    result = Fields(fields.get("functionResponse") or b"{}")
    result.set("name", json.encode(call.name))
    if call.given:
        result.set("id", json.encode(call.given))
    else:
        result.remove("id")
    fields.set("functionResponse", result.raw)
    return fields.raw
