"""Answer a caller: pass its prompt to the client, and send the caller what the model replies.

A caller's request may be in any dialect, with its complete history each time: new is what follows the last assistant
message. Tools stay until the caller sends others. A session serves one caller request at a time; a caller that repeats
a request before it got the end gets the same answer from its start. The client process is started with its configured
environment and a few inherited variables; the prompt replaces `{prompt}` in its command, or is written to its standard
input.
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
from dragoman.core.losses import Loss, Strict
from dragoman.core.parts import AnyPart, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.intercept.document import ObjectFields, items_of
from dragoman.intercept.history_rules import result_of
from dragoman.intercept.plan import CallerTools, CapturedToolCall, Group, digest_of
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
    """The new content of a caller's request."""

    digest: bytes
    prompt: str = ""
    results: tuple[ToolResult, ...] = ()
    tools: CallerTools | None = None
    """None if the request has no tools field: then the earlier tools stay."""
    undo: Undo | None = None
    losses: tuple[Loss, ...] = ()


def parse_caller_request(request: Request, document: bytes, dialect: str, *, strict: Strict = False) -> CallerRequest:
    """Extract the prompt, the results and the tools of a caller's request; `document` is its original body."""
    new = _find_new_parts(request.messages)
    prompt = "\n\n".join(part.text for part in new if isinstance(part, Text))
    results = tuple(part for part in new if isinstance(part, ToolResult))
    others = [part for part in new if not isinstance(part, Text | ToolResult)]
    if others:
        message = f"only text can be passed to the client, not {type(others[0]).__name__.lower()}"
        raise Problem("unsupported", message, where=others[0].where)
    if not prompt.strip() and not results:
        raise Problem("invalid_request", "the request has neither a prompt nor a tool result")
    parsed = CallerRequest(digest=digest_of(document), prompt=prompt, results=results)
    if not request.tools and not _has_tools_field(document):
        return parsed
    options = TranslationOptions(source=dialect, document=document, strict=strict)
    tools_request = Request(
        model=request.model, messages=(_FILLER_MESSAGE,), tools=request.tools, tool_choice=request.tool_choice
    )
    translated = translate_core_request(tools_request, DIALECT, request.model, options)
    return structs.replace(
        parsed, tools=_parse_tools(translated.call.body), undo=translated.undo, losses=translated.losses
    )


def _find_new_parts(messages: Sequence[Message]) -> list[AnyPart]:
    last = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=-1)
    return [part for message in messages[last + 1 :] if message.role == "user" for part in message.parts]


def _has_tools_field(document: bytes) -> bool:
    """Check whether a request has a `tools` field: an empty list means no tools, a missing field no change."""
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
    """Return one result for each call of a group, in the order of the calls; raise a `Problem` for any mismatch."""
    found: dict[str, ToolResult] = {}
    for result in results:
        call_id = result.call_id or _find_by_name(result, group, found)
        if call_id not in {call.id for call in group.caller_calls}:
            message = f"no call {result.call_id or result.name!r} is waiting for a result"
            raise Problem("invalid_request", message, where=result.where, code="invalid_tool_call")
        found[call_id] = structs.replace(result, call_id=call_id)
    missing = [call.id for call in group.caller_calls if call.id not in found]
    if missing:
        message = f"no result for {', '.join(map(repr, missing))}; send the results of all calls of a turn together"
        raise Problem("invalid_request", message, code="invalid_tool_call")
    return tuple(found[call.id] for call in group.caller_calls)


def _find_by_name(result: ToolResult, group: Group, found: dict[str, ToolResult]) -> str:
    named = (call.id for call in group.caller_calls if call.name == result.name and call.id not in found)
    return next(named, "")


def render_result_parts(
    results: Sequence[ToolResult], group: Group, request: Request, dialect: str
) -> tuple[bytes, ...]:
    """Render each result as parts of a Gemini turn; the media of a result follow it as separate parts."""
    unsigned = tuple(structs.replace(call, signature=None, extras=None) for call in group.caller_calls)
    results_request = Request(
        model=request.model,
        messages=(
            _FILLER_MESSAGE,
            Message(role="assistant", parts=unsigned),
            Message(role="user", parts=tuple(results)),
        ),
        tools=request.tools,
    )
    body = translate_core_request(results_request, DIALECT, request.model, TranslationOptions(source=dialect)).call.body
    last = items_of(ObjectFields(body).get("contents") or b"[]")[-1]
    rendered: list[list[bytes]] = []
    for part in items_of(ObjectFields(last).get("parts") or b"[]"):
        if result_of(part) is not None:
            rendered.append([_rename_result(part, group.calls[len(rendered)])])
        elif rendered:
            rendered[-1].append(part)
    return tuple(b",".join(parts) for parts in rendered)


def _rename_result(part: bytes, call: CapturedToolCall) -> bytes:
    """Set the name and the id of the call as the model knows them."""
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
    """Runs the client program once."""

    def __init__(self, table: InterceptTable, url: str) -> None:
        self._table = table
        self._url = url
        self._takes_input = not any(PROMPT in word for word in table.command)

    async def run(self, prompt: str) -> int:
        """Run the client and return its exit status; the process is terminated if this task is cancelled."""
        with tempfile.TemporaryDirectory(prefix="dragoman-client-", ignore_cleanup_errors=True) as folder:
            process = await self._start(prompt, self._table.cwd or folder)
            try:
                await process.communicate(prompt.encode() if self._takes_input else None)
                return process.returncode or 0
            finally:
                await _terminate(process)

    async def _start(self, prompt: str, folder: str) -> Process:
        command = [_fill_prompt(word.replace(URL, self._url), prompt) for word in self._table.command]
        configured = {name: value.replace(URL, self._url) for name, value in self._table.env.items()}
        try:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE if self._takes_input else DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env={name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ} | configured,
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            message = f"the client {self._table.command[0]!r} cannot be started: {error}"
            raise Problem("internal", message, status=502) from None


def _fill_prompt(word: str, prompt: str) -> str:
    """Return an argument with the prompt filled in; a prompt that looks like an option must not become one."""
    is_option = word.startswith(PROMPT) and prompt.startswith("-")
    return word.replace(PROMPT, f" {prompt}" if is_option else prompt)


async def _terminate(process: Process) -> None:
    """Terminate a running client and all its child processes."""
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
    """Answers callers, and manages the client processes started for them."""

    def __init__(self) -> None:
        self._running: dict[InterceptSession, asyncio.Task[None]] = {}
        self._tasks = TaskSet()

    async def close(self) -> None:
        """Stop all clients."""
        await self._tasks.stop()

    async def answer(
        self, session: InterceptSession, caller_request: CallerRequest, request: Request, dialect: str, url: str
    ) -> AsyncGenerator[Event]:
        """Yield the events for a caller; raise a `Problem` if its request is not allowed now."""
        turn = self._find_turn(session, caller_request, request, dialect, url)
        seconds = session.table.result_timeout if caller_request.results else session.table.timeout
        late = Problem("timeout", f"the client {session.name.entry} sent no request within {seconds:g} seconds")
        async with aclosing(turn.follow(seconds, late)) as events:
            async for event in events:
                yield event

    def _find_turn(
        self, session: InterceptSession, caller_request: CallerRequest, request: Request, dialect: str, url: str
    ) -> CallerTurn:
        """Return the turn for a caller's request: the current one if it is the same request, else a new one."""
        turn = session.turn
        if turn is not None and turn.is_followed:
            message = f"another request is active in the session {session.name.session!r} of {session.name.entry}"
            raise Problem("conflict", message)
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
        """Run the client for one turn, after its previous run has ended."""
        table = session.table
        try:
            if before is not None:
                await asyncio.wait([before], timeout=table.timeout)
                before.cancel()
            # A client that has its answer gets the same time again to exit by itself.
            async with asyncio.timeout(2 * table.result_timeout):
                status = await ClientProgram(table, url).run(prompt)
        except Problem as problem:
            turn.fail(problem)
        except TimeoutError:
            turn.fail(Problem("timeout", f"the client {session.name.entry} did not exit in time"))
        else:
            # The client may exit before the model's reply is complete: the reply is still read to its end.
            await turn.wait_until_idle()
            message = f"the client {session.name.entry} exited (status {status}) without an answer"
            turn.fail(turn.problem or Problem("internal", message, status=502))

    def _forget(self, session: InterceptSession, done: asyncio.Task[None]) -> None:
        if self._running.get(session) is done:
            del self._running[session]


def _find_waiting_group(session: InterceptSession, caller_request: CallerRequest) -> Group:
    """Return the group that the results belong to; raise a `Problem` with the ids if there is none."""
    pending = session.pending_group
    if pending is not None:
        return pending
    ids = ", ".join(repr(result.call_id or result.name) for result in caller_request.results)
    known = {call.id: group for group in session.groups.values() for call in group.caller_calls}
    groups = [known[result.call_id] for result in caller_request.results if result.call_id in known]
    if groups and groups[0].is_answered and not groups[0].used:
        # No client request has used these results yet, so the caller may send them again.
        return groups[0]
    if groups and groups[0].is_given_up:
        message = f"the calls {ids} have expired: no results within {session.table.result_timeout:g} seconds"
    elif groups:
        message = f"the calls {ids} already have results"
    else:
        message = f"no call {ids} is waiting for a result"
    raise Problem("invalid_request", message, code="invalid_tool_call")


def _require_no_pending(session: InterceptSession) -> None:
    """Raise a `Problem` if calls wait for results, while the caller sends something else."""
    pending = session.pending_group
    if pending is not None:
        ids = ", ".join(repr(call.id) for call in pending.caller_calls)
        message = f"the calls {ids} are waiting for results; send these first"
        raise Problem("invalid_request", message, code="invalid_tool_call")
