"""Decide which of a model's calls are run; the others get a result that says why not.

Calls are decided one after the other, so that an engine replays the same questions in the same order; all calls that
need approval are reported before the first is waited for. What is read in this turn does not count yet: the calls of a
turn were written before any of their results.

Egress: whoever wrote an untrusted result may have written the next call. From then on, also in later runs over the same
history, a tool that can send data out needs approval, unless all it sends goes to a listed destination or to an address
that the user wrote. Guards: wrong arguments again and again, or the same call with the same result, are stopped until
something else happens in between.
"""

import inspect
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.agent.approvals import Decision, Wish, is_yes, topic_of
from dragoman.agent.equipment import Equipment
from dragoman.agent.history import SUMMARY, UNTRUSTED_SUMMARY
from dragoman.agent.limits import Limits
from dragoman.agent.model import mistakes_of
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import ApprovalAsked
from dragoman.core.parts import AnyPart, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.http.addresses import Destination, Location, Refused, location_of
from dragoman.tools import Execution, Handler, Registry
from dragoman.tools.handler import joined
from dragoman.tools.results import refused

_SMALL = 1_000_000
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`|]+")
_BEHIND = ".,;:!?)]}*_"
"""What stands behind an address in a sentence, and is mostly not part of it."""
_ALL_CALLED = "{name} was not run: all {limit} calls of this run are made. Answer with what you have."
_DENIED = "{name} was not run: that was not approved. Do not try it again; go on without it."
_NOBODY = "{name} was not run: it needs approval ({reason}), and {nobody}. Go on without it."


def is_untrusted(messages: Sequence[Message], registry: Registry) -> bool:
    """Tell whether anything in a history may have been written by anybody.

    Results of tools that are not ours count: what a client's tool read, nobody here knows.
    """
    names = {
        part.id: joined(part.namespace, part.name)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    for message in messages:
        if message.role == "assistant" and brings_untrusted(message.parts):
            return True
        for part in message.parts:
            if isinstance(part, Text) and part.text.startswith(UNTRUSTED_SUMMARY):
                return True
            if isinstance(part, ToolResult):
                handler = registry.get(names.get(part.call_id, part.name))
                if handler is None or handler.untrusted:
                    return True
    return False


def brings_untrusted(parts: Iterable[AnyPart]) -> bool:
    """Tell whether a model read something by itself: a vendor's own search and fetch stand in what it says."""
    return any(isinstance(part, Opaque) or (isinstance(part, Text) and part.citations) for part in parts)


def users_words(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what the user and the system said themselves; a summary is a model's."""
    return tuple(
        part.text
        for message in messages
        if message.role != "assistant"
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith((SUMMARY, UNTRUSTED_SUMMARY))
    )


class Border:
    """What may go where."""

    def __init__(self, destinations: Iterable[Destination], words: Sequence[str]) -> None:
        self._destinations = tuple(destinations)
        self._words = words

    def objection(self, call: ToolCall, handler: Handler) -> str:
        """Say why a call must not leave unasked, in words for a person; "" if it may."""
        before = "something untrusted was read before"
        arguments = _arguments(call)
        if not handler.destination or arguments is None:
            return f"{handler.name} can send data out, and {before}"
        places = _texts(arguments.get(handler.destination))
        if places and all(self._is_listed(place) for place in places):
            return ""
        if self.is_users(call, handler):
            return ""
        return f"{handler.name} would send data to {', '.join(map(_shown, places)) or 'a place unknown'}, and {before}"

    def is_users(self, call: ToolCall, handler: Handler) -> bool:
        """Tell whether a call says nothing but addresses that the user wrote."""
        arguments = _arguments(call) if handler.destination else None
        places = _texts(arguments.get(handler.destination)) if arguments is not None else []
        if arguments is None or not places:
            return False
        others = [value for name, value in arguments.items() if name != handler.destination]
        return all(map(_says_nothing, others)) and all(map(self._is_written, places))

    def _is_written(self, place: str) -> bool:
        return any(place in _addresses(text) for text in self._words)

    def _is_listed(self, place: str) -> bool:
        location = _location(place)
        return location is not None and any(listed.takes(location) for listed in self._destinations)


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", msgspec.json.decode(call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None


def _addresses(text: str) -> set[str]:
    """Return the addresses in a text, whole: a part of one is another, and which part is chosen says something."""
    found = _ADDRESS.findall(text)
    return {*found, *(address.rstrip(_BEHIND) for address in found)}


def _location(url: str) -> Location | None:
    """Return where a URL leads; None unless that is beyond doubt."""
    try:
        location = location_of(url) if url.isprintable() else None
    except Refused:
        return None
    return location and structs.replace(location, host=location.host.rstrip("."))


def host_of(url: str) -> str:
    """Return the host a URL leads to, with the port if that is not the usual one; "" unless it is beyond doubt."""
    location = _location(url)
    return location.authority if location is not None else ""


def _texts(value: Any) -> list[str]:
    """Return one address or several; none if anything else is among them."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)] if all(isinstance(each, str) for each in values) else []


def _says_nothing(value: Any) -> bool:
    """Tell whether a value can carry nothing worth hiding: a switch, a small number."""
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _SMALL)


def _shown(place: str) -> str:
    return repr(host_of(place) or place[:100])


class Guards:
    """What is known of the calls of one run."""

    def __init__(self, limits: Limits) -> None:
        self._repairs = limits.repairs
        self._identical = limits.identical
        self._invalid: dict[str, int] = {}
        """How often in a row a tool was called with arguments that do not fit."""
        self._seen: dict[bytes, tuple[bytes, int]] = {}
        """The last result of each call, and how often in a row it was the same."""

    def withdrawn(self, call: ToolCall) -> str:
        """Say why a tool is not run any more; "" if it is."""
        count = self._invalid.get(joined(call.namespace, call.name), 0)
        if self._repairs is None or count <= self._repairs:
            return ""
        return f"{call.name} was not run: {count} calls of it in a row had arguments that do not fit. Go on without it."

    def repeated(self, call: ToolCall, beside: int = 0) -> str:
        """Say why a call would bring nothing new, `beside` others of this turn that are the same; "" if it may."""
        _, count = self._seen.get(fingerprint(call), (b"", 0))
        if self._identical is None or count + beside < self._identical:
            return ""
        times = f"{count} times" if count else f"{beside} times in this turn"
        return (
            f"{call.name} was not run: the same call was made {times}, with the same result. "
            "Use that result, or do something else."
        )

    def learn(self, call: ToolCall, execution: Execution) -> None:
        """Take in what became of a call."""
        name = joined(call.namespace, call.name)
        if execution.outcome in ("invalid", "unknown"):
            self._invalid[name] = self._invalid.get(name, 0) + 1
        elif execution.ran:
            self._invalid.pop(name, None)
        if execution.ran:
            call_digest, result_digest = fingerprint(call), _digest(repr(execution.result.content))
            before, count = self._seen.get(call_digest, (b"", 0))
            self._seen[call_digest] = (result_digest, count + 1 if before == result_digest else 1)


def fingerprint(call: ToolCall) -> bytes:
    """Return the same bytes for calls that say the same, however their arguments are written."""
    try:
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments or "{}"), order="deterministic").decode()
    except (ValueError, RecursionError):
        arguments = call.arguments
    return _digest(f"{joined(call.namespace, call.name)}\n{arguments}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


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
