"""Which of a model's calls are run: before a turn's calls begin, each is let in or gets its refusal.

Rules: calls are looked at one after the other, so that an engine finds the same questions in the same order; all that
need somebody's word are told before the first is waited for. What was read in this turn does not count yet: the calls
of a turn were written before any of their results.
"""

import inspect
from collections.abc import Iterable, Sequence

from msgspec import Struct

from dragoman.agent.approvals import Decision, Wish, is_yes, topic_of
from dragoman.agent.egress import Border, brings_untrusted, is_untrusted, users_words
from dragoman.agent.equipment import Equipment
from dragoman.agent.guards import Guards, fingerprint
from dragoman.agent.mistakes import mistakes_of
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import ApprovalAsked
from dragoman.core.parts import AnyPart, ToolCall
from dragoman.core.request import Message
from dragoman.tools import Execution
from dragoman.tools.execution import refused

_ALL_CALLED = "{name} was not run: all {limit} calls of this run are made. Answer with what you have."
_DENIED = "{name} was not run: that was not approved. Do not try it again; go on without it."
_NOBODY = "{name} was not run: it needs approval ({reason}), and {nobody}. Go on without it."


class KeyedCall(Struct, frozen=True):
    """A call, and a name for it that no other call of the run has."""

    call: ToolCall
    key: str


class Admission:
    """The door of one run."""

    def __init__(self, equipment: Equipment, history: Sequence[Message], runtime: Runtime, run: str) -> None:
        self._equipment, self._runtime, self._run = equipment, runtime, run
        self._guards = Guards(equipment.limits)
        self._border = Border(equipment.destinations, users_words(history))
        self.untrusted = is_untrusted(history, equipment.executor.registry)
        """Whether anything read so far may have been written by anybody."""
        self._let_in = 0
        self.exhausted = False
        """Whether a call was refused because there were too many."""
        self.circling = False
        """Whether the last turn brought nothing but calls that were made before."""

    def learn(self, parts: Iterable[AnyPart], calls: Iterable[KeyedCall], executions: Iterable[Execution]) -> None:
        """Take in what a turn said and what became of its calls."""
        self.untrusted = self.untrusted or brings_untrusted(parts)
        for keyed, execution in zip(calls, executions, strict=True):
            self._guards.learn(keyed.call, execution)
            handler = execution.handler
            self.untrusted = self.untrusted or (execution.ran and handler is not None and handler.untrusted)

    def is_unswayed(self, call: ToolCall) -> bool:
        """Tell whether no stranger can have had a word in a call of this turn."""
        handler = self._equipment.executor.registry.find(call)
        return not self.untrusted or (handler is not None and self._border.is_users(call, handler))

    async def refusals(self, calls: Sequence[KeyedCall]) -> dict[str, Execution]:
        """Return the refusals of a turn's calls by their keys; all others may be run."""
        told: dict[str, Execution] = {}
        asked: list[tuple[KeyedCall, str]] = []
        self.circling = bool(calls)
        beside: dict[bytes, int] = {}
        for keyed in calls:
            call = keyed.call
            same = beside[digest] = beside.get(digest := fingerprint(call), 0) + 1
            repeated = self._guards.repeated(call, same - 1)
            self.circling = self.circling and bool(repeated)
            if words := repeated or self._guards.withdrawn(call) or self._too_many(call):
                told[keyed.key] = refused(call, None, "skipped", words)
                continue
            decision, reason = await self._decided(keyed)
            if decision == "deny":
                told[keyed.key] = refused(call, None, "denied", _DENIED.format(name=call.name))
            elif decision == "ask":
                asked.append((keyed, reason))
        return told | await self._answers(asked)

    def _too_many(self, call: ToolCall) -> str:
        limit = self._equipment.limits.calls
        if limit is not None and self._let_in >= limit:
            self.exhausted = True
            return _ALL_CALLED.format(name=call.name, limit=limit)
        self._let_in += 1
        return ""

    async def _decided(self, keyed: KeyedCall) -> tuple[Decision, str]:
        """Return the decision about a call, and for "ask" the reason."""
        call, executor = keyed.call, self._equipment.executor
        handler = executor.registry.find(call)
        if handler is None:
            return "allow", ""  # the executor says which tools there are
        egress = self._border.objection(call, handler) if self.untrusted and handler.sends_out else ""
        wish = Wish(run=self._run, call=call, handler=handler, egress=egress)
        decision = await self._policy(keyed, wish)
        if decision == "deny":
            return "deny", ""
        if decision == "allow" and not egress:
            return "allow", ""
        if not executor.fits(call):
            return "allow", ""  # it is not run as it is, and nobody is bothered with it
        return "ask", egress or f"{handler.name} is run only with approval"

    async def _policy(self, keyed: KeyedCall, wish: Wish) -> Decision:
        approve = self._equipment.approve
        if approve is None:
            return "allow"

        async def decide() -> Decision:
            with mistakes_of("the policy of approvals"):
                decision = approve(wish)
                return await decision if inspect.isawaitable(decision) else decision

        # What a policy says may change with the time of day: it is asked once.
        return await self._runtime.step(f"approve:{keyed.key}", decide)

    async def _answers(self, asked: Sequence[tuple[KeyedCall, str]]) -> dict[str, Execution]:
        """Ask for somebody's word about calls; return the refusals of those that did not get it."""
        seconds = self._equipment.limits.approval
        if seconds > 0:
            for keyed, reason in asked:
                topic = topic_of(keyed.key)
                await self._runtime.emit(ApprovalAsked(run=self._run, topic=topic, call=keyed.call, reason=reason))
        told: dict[str, Execution] = {}
        for keyed, reason in asked:
            words = await self._answer(keyed, reason, seconds)
            if words:
                told[keyed.key] = refused(keyed.call, None, "denied", words)
        return told

    async def _answer(self, keyed: KeyedCall, reason: str, seconds: float) -> str:
        """Return why a call is not run; "" if somebody said that it may be."""
        name, nobody = keyed.call.name, "there is nobody to ask"
        if seconds > 0:
            try:
                answer = await self._runtime.wait(topic_of(keyed.key), seconds)
            except TimeoutError:
                nobody = f"nobody answered within {seconds:g} seconds"
            else:
                return "" if is_yes(answer) else _DENIED.format(name=name)
        return _NOBODY.format(name=name, reason=reason, nobody=nobody)
