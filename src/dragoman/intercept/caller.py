"""Answer a caller: hand its prompt to the client, and tell it what the model says to that.

One caller at a time has a session. One who lost the answer and asks the same again is told what there is of it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from dragoman.core.events import Event
from dragoman.core.problems import Problem
from dragoman.core.request import Request
from dragoman.intercept.asking import Wish, matched, result_parts
from dragoman.intercept.captured import Group
from dragoman.intercept.program import Program
from dragoman.intercept.sessions import Session
from dragoman.intercept.turns import CallerTurn


class Caller:
    """Answers callers, and keeps the clients that are started for them."""

    def __init__(self) -> None:
        self._running: dict[Session, asyncio.Task[None]] = {}

    async def close(self) -> None:
        """End all clients."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def answer(
        self, session: Session, wish: Wish, request: Request, dialect: str, url: str
    ) -> AsyncGenerator[Event]:
        """Iterate what a caller is told; a `Problem` is raised for what it may not ask."""
        turn = self._turn(session, wish, request, dialect, url)
        seconds = session.table.result_timeout if wish.results else session.table.timeout
        late = Problem("timeout", f"the client {session.name.entry} did not ask within {seconds:g} seconds")
        async with aclosing(turn.follow(seconds, late)) as events:
            async for event in events:
                yield event

    def _turn(self, session: Session, wish: Wish, request: Request, dialect: str, url: str) -> CallerTurn:
        """Return the turn that answers a wish, begun unless the same was asked before and not heard to its end."""
        turn = session.turn
        if turn is not None and turn.is_followed:
            words = f"somebody else waits for the session {session.name.session!r} of {session.name.entry}"
            raise Problem("conflict", words)
        if turn is not None and not turn.is_delivered and turn.digest == wish.digest:
            return turn
        return self._begun(session, wish, request, dialect, url)

    def _begun(self, session: Session, wish: Wish, request: Request, dialect: str, url: str) -> CallerTurn:
        if wish.results:
            group = _waiting(session, wish)
            group.results = result_parts(matched(wish.results, group), group, request, dialect)
        else:
            _require_free(session)
        if wish.tools is not None:
            session.tools = wish.tools
            session.undo = wish.undo or session.undo
        turn = session.turn = CallerTurn(wish.digest)
        if session.table.command:
            before = self._running.get(session)
            prompt = wish.prompt if wish.prompt.strip() else session.table.prompt
            task = asyncio.create_task(self._run(session, turn, prompt, url, before))
            self._running[session] = task
            task.add_done_callback(lambda done: self._forget(session, done))
        return turn

    async def _run(
        self, session: Session, turn: CallerTurn, prompt: str, url: str, before: asyncio.Task[None] | None
    ) -> None:
        """Run the client for one turn, after the run before it has ended."""
        table = session.table
        try:
            if before is not None:
                await asyncio.wait([before], timeout=table.timeout)
                before.cancel()
            # A client that has got its answer is given as much time again to end by itself.
            async with asyncio.timeout(2 * table.result_timeout):
                status = await Program(table, url).run(prompt)
        except Problem as problem:
            turn.fail(problem)
        except TimeoutError:
            turn.fail(Problem("timeout", f"the client {session.name.entry} did not end"))
        else:
            # It may have left before the model's answer was whole: that is heard to its end all the same.
            await turn.settled()
            words = f"the client {session.name.entry} ended ({status}) without an answer"
            turn.fail(turn.problem or Problem("internal", words, status=502))

    def _forget(self, session: Session, done: asyncio.Task[None]) -> None:
        if self._running.get(session) is done:
            del self._running[session]


def _waiting(session: Session, wish: Wish) -> Group:
    """Return the group that results are for; the ids of calls that nobody waits for are named."""
    pending = session.pending
    if pending is not None:
        return pending
    ids = ", ".join(repr(result.call_id or result.name) for result in wish.results)
    known = {call.id: group for group in session.groups.values() for call in group.known}
    groups = [known[result.call_id] for result in wish.results if result.call_id in known]
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


def _require_free(session: Session) -> None:
    """Raise the `Problem` of calls that wait for results, while something else is asked."""
    pending = session.pending
    if pending is not None:
        ids = ", ".join(repr(call.id) for call in pending.known)
        words = f"the calls {ids} wait for their results: give these first"
        raise Problem("invalid_request", words, code="invalid_tool_call")
