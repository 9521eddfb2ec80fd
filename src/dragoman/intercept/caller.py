"""Answer a caller: give its prompt to the client, and send it what the model says to that.

A caller's request may be in any dialect, with its whole history each time: what is new is behind the last thing that
the model said. Tools stay until others are given. One caller at a time has a session; a caller that sends the same
request again gets what there is of the answer. The client is started with what is configured for it and nothing else of
ours; the prompt replaces `{prompt}` in its command, or is written to its standard input.
"""

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from msgspec import Struct, structs

from dragoman.core.events import Event
from dragoman.core.losses import Loss
from dragoman.core.parts import AnyPart, Text, ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.intercept.captured import CapturedToolCall, Group, digest_of
from dragoman.intercept.document import ObjectFields, items_of
from dragoman.intercept.history_rules import result_of
from dragoman.intercept.plan import CallerTools
from dragoman.intercept.sessions import InterceptSession
from dragoman.intercept.settings import DIALECT, PROMPT, URL, InterceptTable
from dragoman.intercept.turns import CallerTurn
from dragoman.interpreter.core_request import TranslationOptions, translate_core_request
from dragoman.interpreter.undo import Undo
from dragoman.tasks import TaskSet
from dragoman.wire import json

_FILLER_MESSAGE = Message(role="user", parts=(Text(text="go on"),))
_INHERITED_VARIABLES = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
)
_GRACE = 2.0


class CallerRequest(Struct, frozen=True, kw_only=True):
    """What a caller wishes."""

    digest: bytes
    prompt: str = ""
    results: tuple[ToolResult, ...] = ()
    tools: CallerTools | None = None
    """None where it brings none: those before hold."""
    undo: Undo | None = None
    losses: tuple[Loss, ...] = ()


def parse_caller_request(request: Request, document: bytes, dialect: str, *, strict: bool = False) -> CallerRequest:
    """Read what a caller wishes of a request, and of the document it was read from."""
    said = _find_new_parts(request.messages)
    prompt = "\n\n".join(part.text for part in said if isinstance(part, Text))
    results = tuple(part for part in said if isinstance(part, ToolResult))
    others = [part for part in said if not isinstance(part, Text | ToolResult)]
    if others:
        words = f"only text can be handed to the client, not {type(others[0]).__name__.lower()}"
        raise Problem("unsupported", words, where=others[0].where)
    if not prompt.strip() and not results:
        raise Problem("invalid_request", "there is neither a prompt for the client nor a result")
    wish = CallerRequest(digest=digest_of(document), prompt=prompt, results=results)
    if not request.tools and not _has_tools_field(document):
        return wish
    wording = TranslationOptions(source=dialect, document=document, strict=strict)
    asked = Request(
        model=request.model, messages=(_FILLER_MESSAGE,), tools=request.tools, tool_choice=request.tool_choice
    )
    said_there = translate_core_request(asked, DIALECT, request.model, wording)
    return structs.replace(
        wish, tools=_parse_tools(said_there.call.body), undo=said_there.undo, losses=said_there.losses
    )


def _find_new_parts(messages: Sequence[Message]) -> list[AnyPart]:
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return [part for message in messages[last + 1 :] if message.role == "user" for part in message.parts]


def _has_tools_field(document: bytes) -> bool:
    """Tell whether a request says that there are no tools, rather than nothing of them."""
    return json.is_object(document) and "tools" in json.decode_object(document)


def _parse_tools(body: bytes) -> CallerTools:
    fields = ObjectFields(body)
    raw, config = fields.get("tools"), fields.get("toolConfig")
    objects = tuple(tool for tool in (items_of(raw) if raw is not None else ()) if not _is_empty(tool))
    functions = [one for tool in objects for one in items_of(ObjectFields(tool).get("functionDeclarations") or b"[]")]
    names = frozenset(str(json.decode(function)["name"]) for function in functions)
    return CallerTools(
        objects=objects,
        names=names,
        config=ObjectFields(config).get("functionCallingConfig") if config is not None else None,
    )


def _is_empty(tool: bytes) -> bool:
    return all(bytes(raw) in {b"[]", b"null"} for raw in json.decode_object(tool).values())


def match_results(results: Sequence[ToolResult], group: Group) -> tuple[ToolResult, ...]:
    """Return one result for each call of a group, in the order of the calls; a `Problem` names what does not fit."""
    found: dict[str, ToolResult] = {}
    for result in results:
        call_id = result.call_id or _find_by_name(result, group, found)
        if call_id not in {call.id for call in group.caller_calls}:
            words = f"no call {result.call_id or result.name!r} waits for a result"
            raise Problem("invalid_request", words, where=result.where, code="invalid_tool_call")
        found[call_id] = structs.replace(result, call_id=call_id)
    missing = [call.id for call in group.caller_calls if call.id not in found]
    if missing:
        words = f"no result was given for {', '.join(map(repr, missing))}: all calls of a turn are answered together"
        raise Problem("invalid_request", words, code="invalid_tool_call")
    return tuple(found[call.id] for call in group.caller_calls)


def _find_by_name(result: ToolResult, group: Group, found: dict[str, ToolResult]) -> str:
    named = (call.id for call in group.caller_calls if call.name == result.name and call.id not in found)
    return next(named, "")


def render_result_parts(
    results: Sequence[ToolResult], group: Group, request: Request, dialect: str
) -> tuple[bytes, ...]:
    """Return what stands for each result in a turn of Gemini's; media may stand beside a result, right behind it."""
    said = Message(role="assistant", parts=tuple(_drop_signature(call) for call in group.caller_calls))
    asked = Request(
        model=request.model,
        messages=(_FILLER_MESSAGE, said, Message(role="user", parts=tuple(results))),
        tools=request.tools,
    )
    body = translate_core_request(asked, DIALECT, request.model, TranslationOptions(source=dialect)).call.body
    last = items_of(ObjectFields(body).get("contents") or b"[]")[-1]
    gathered: list[list[bytes]] = []
    for part in items_of(ObjectFields(last).get("parts") or b"[]"):
        if result_of(part) is not None:
            gathered.append([_rename_result(part, group.calls[len(gathered)])])
        elif gathered:
            gathered[-1].append(part)
    return tuple(b",".join(parts) for parts in gathered)


def _drop_signature(call: ToolCall) -> ToolCall:
    return structs.replace(call, signature=None, extras=None)


def _rename_result(part: bytes, call: CapturedToolCall) -> bytes:
    """Let a result name its call as the model knows it."""
    fields = ObjectFields(part)
    result = ObjectFields(fields.get("functionResponse") or b"{}")
    result.set("name", json.encode(call.name))
    if call.given:
        result.set("id", json.encode(call.given))
    else:
        result.remove("id")
    fields.set("functionResponse", result.raw)
    return fields.raw


class ClientProgram:
    """One run of a client."""

    def __init__(self, table: InterceptTable, url: str) -> None:
        self._table = table
        self._url = url
        self._takes_input = not any(PROMPT in word for word in table.command)

    async def run(self, prompt: str) -> int:
        """Run the client to its end; return what it says of that. It is ended when nobody waits for it any more."""
        with tempfile.TemporaryDirectory(prefix="dragoman-client-", ignore_cleanup_errors=True) as folder:
            process = await self._start(prompt, self._table.cwd or folder)
            try:
                await process.communicate(prompt.encode() if self._takes_input else None)
                return process.returncode or 0
            finally:
                await _terminate(process)

    async def _start(self, prompt: str, folder: str) -> Process:
        words = [_fill_prompt(word.replace(URL, self._url), prompt) for word in self._table.command]
        given = {name: value.replace(URL, self._url) for name, value in self._table.env.items()}
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=PIPE if self._takes_input else DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env={name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ} | given,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            told = f"the client {self._table.command[0]!r} cannot be started: {error}"
            raise Problem("internal", told, status=502) from None


def _fill_prompt(word: str, prompt: str) -> str:
    """Return a word with the prompt in it; a prompt that looks like an option must not be one for the client."""
    is_option = word.startswith(PROMPT) and prompt.startswith("-")
    return word.replace(PROMPT, f" {prompt}" if is_option else prompt)


async def _terminate(process: Process) -> None:
    """End a client that still runs, with all that it has started."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 15)
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


class CallerHandler:
    """Answers callers, and keeps the clients that are started for them."""

    def __init__(self) -> None:
        self._running: dict[InterceptSession, asyncio.Task[None]] = {}
        self._tasks = TaskSet()

    async def close(self) -> None:
        """End all clients."""
        await self._tasks.stop()

    async def answer(
        self, session: InterceptSession, caller_request: CallerRequest, request: Request, dialect: str, url: str
    ) -> AsyncGenerator[Event]:
        """Iterate what a caller is told; a `Problem` is raised for what it may not ask."""
        turn = self._find_turn(session, caller_request, request, dialect, url)
        seconds = session.table.result_timeout if caller_request.results else session.table.timeout
        late = Problem("timeout", f"the client {session.name.entry} did not ask within {seconds:g} seconds")
        async with aclosing(turn.follow(seconds, late)) as events:
            async for event in events:
                yield event

    def _find_turn(
        self, session: InterceptSession, caller_request: CallerRequest, request: Request, dialect: str, url: str
    ) -> CallerTurn:
        """Return the turn that answers a wish, begun unless the same was asked before and not heard to its end."""
        turn = session.turn
        if turn is not None and turn.is_followed:
            words = f"somebody else waits for the session {session.name.session!r} of {session.name.entry}"
            raise Problem("conflict", words)
        if turn is not None and not turn.is_delivered and turn.digest == caller_request.digest:
            return turn
        return self._begin_turn(session, caller_request, request, dialect, url)

    def _begin_turn(
        self, session: InterceptSession, caller_request: CallerRequest, request: Request, dialect: str, url: str
    ) -> CallerTurn:
        if caller_request.results:
            group = _find_waiting_group(session, caller_request)
            group.results = render_result_parts(match_results(caller_request.results, group), group, request, dialect)
        else:
            _require_no_pending(session)
        if caller_request.tools is not None:
            session.tools = caller_request.tools
            session.undo = caller_request.undo or session.undo
        turn = session.turn = CallerTurn(caller_request.digest)
        if session.table.command:
            before = self._running.get(session)
            prompt = caller_request.prompt if caller_request.prompt.strip() else session.table.prompt
            task = self._tasks.start(self._run(session, turn, prompt, url, before), f"client {session.name.entry}")
            self._running[session] = task
            task.add_done_callback(lambda done: self._forget(session, done))
        return turn

    async def _run(
        self, session: InterceptSession, turn: CallerTurn, prompt: str, url: str, before: asyncio.Task[None] | None
    ) -> None:
        """Run the client for one turn, after the run before it has ended."""
        table = session.table
        try:
            if before is not None:
                await asyncio.wait([before], timeout=table.timeout)
                before.cancel()
            # A client that has got its answer is given as much time again to end by itself.
            async with asyncio.timeout(2 * table.result_timeout):
                status = await ClientProgram(table, url).run(prompt)
        except Problem as problem:
            turn.fail(problem)
        except TimeoutError:
            turn.fail(Problem("timeout", f"the client {session.name.entry} did not end"))
        else:
            # It may have left before the model's answer was whole: that is heard to its end all the same.
            await turn.wait_until_idle()
            words = f"the client {session.name.entry} ended ({status}) without an answer"
            turn.fail(turn.problem or Problem("internal", words, status=502))

    def _forget(self, session: InterceptSession, done: asyncio.Task[None]) -> None:
        if self._running.get(session) is done:
            del self._running[session]


def _find_waiting_group(session: InterceptSession, caller_request: CallerRequest) -> Group:
    """Return the group that results are for; the ids of calls that nobody waits for are named."""
    pending = session.pending_group
    if pending is not None:
        return pending
    ids = ", ".join(repr(result.call_id or result.name) for result in caller_request.results)
    known = {call.id: group for group in session.groups.values() for call in group.caller_calls}
    groups = [known[result.call_id] for result in caller_request.results if result.call_id in known]
    if groups and groups[0].is_answered and not groups[0].used:
        # No client has fetched them: who gave them waits once more.
        return groups[0]
    if groups and groups[0].is_given_up:
        words = f"the calls {ids} were given up: no results came within {session.table.result_timeout:g} seconds"
    elif groups:
        words = f"the calls {ids} have their results already"
    else:
        words = f"no call {ids} waits for a result"
    raise Problem("invalid_request", words, code="invalid_tool_call")


def _require_no_pending(session: InterceptSession) -> None:
    """Raise the `Problem` of calls that wait for results, while something else is asked."""
    pending = session.pending_group
    if pending is not None:
        ids = ", ".join(repr(call.id) for call in pending.caller_calls)
        words = f"the calls {ids} wait for their results: give these first"
        raise Problem("invalid_request", words, code="invalid_tool_call")
