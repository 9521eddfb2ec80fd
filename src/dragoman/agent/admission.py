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

from dragoman.agent.approvals import ApprovalRequest, Decision, is_yes, topic_of
from dragoman.agent.equipment import AgentConfig
from dragoman.agent.history import SUMMARY, UNTRUSTED_SUMMARY
from dragoman.agent.limits import Limits
from dragoman.agent.model import wrap_errors
from dragoman.agent.runtime import Runtime
from dragoman.agent.steps import ApprovalAsked
from dragoman.core.parts import AnyPart, Opaque, Text, ToolCall, ToolResult
from dragoman.core.request import Message
from dragoman.http.addresses import Destination, LinkRefused, Location, parse_location
from dragoman.tools import Execution, Handler, Registry
from dragoman.tools.handler import qualify_name
from dragoman.tools.results import build_refusal

_MAX_HARMLESS_INT = 1_000_000
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s<>\"'`|]+")
_TRAILING_PUNCTUATION = ".,;:!?)]}*_"
"""What stands behind an address in a sentence, and is mostly not part of it."""
_NO_CALLS_LEFT = "{name} was not run: all {limit} calls of this run are made. Answer with what you have."
_DENIED = "{name} was not run: that was not approved. Do not try it again; go on without it."
_NOT_APPROVED = "{name} was not run: it needs approval ({reason}), and {nobody}. Go on without it."


def has_untrusted(messages: Sequence[Message], registry: Registry) -> bool:
    """Tell whether anything in a history may have been written by anybody.

    Results of tools that are not ours count: what a client's tool read, nobody here knows.
    """
    names = {
        part.id: qualify_name(part.namespace, part.name)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    for message in messages:
        if message.role == "assistant" and has_untrusted_parts(message.parts):
            return True
        for part in message.parts:
            if isinstance(part, Text) and part.text.startswith(UNTRUSTED_SUMMARY):
                return True
            if isinstance(part, ToolResult):
                handler = registry.get(names.get(part.call_id, part.name))
                if handler is None or handler.untrusted:
                    return True
    return False


def has_untrusted_parts(parts: Iterable[AnyPart]) -> bool:
    """Tell whether a model read something by itself: a vendor's own search and fetch stand in what it says."""
    return any(isinstance(part, Opaque) or (isinstance(part, Text) and part.citations) for part in parts)


def collect_user_texts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return what the user and the system said themselves; a summary is a model's."""
    return tuple(
        part.text
        for message in messages
        if message.role != "assistant"
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith((SUMMARY, UNTRUSTED_SUMMARY))
    )


class EgressPolicy:
    """What may go where."""

    def __init__(self, destinations: Iterable[Destination], user_texts: Sequence[str]) -> None:
        self._destinations = tuple(destinations)
        self._user_texts = user_texts

    def find_objection(self, call: ToolCall, handler: Handler) -> str:
        """Say why a call must not leave unasked, in words for a person; "" if it may."""
        before = "something untrusted was read before"
        arguments = _decode_arguments(call)
        if not handler.destination or arguments is None:
            return f"{handler.name} can send data out, and {before}"
        places = _as_string_list(arguments.get(handler.destination))
        if places and all(self._is_allowed_destination(place) for place in places):
            return ""
        if self.has_only_user_addresses(call, handler):
            return ""
        named = ", ".join(map(_format_place, places)) or "a place unknown"
        return f"{handler.name} would send data to {named}, and {before}"

    def has_only_user_addresses(self, call: ToolCall, handler: Handler) -> bool:
        """Tell whether a call says nothing but addresses that the user wrote."""
        arguments = _decode_arguments(call) if handler.destination else None
        places = _as_string_list(arguments.get(handler.destination)) if arguments is not None else []
        if arguments is None or not places:
            return False
        others = [value for name, value in arguments.items() if name != handler.destination]
        return all(map(_is_harmless_value, others)) and all(map(self._is_user_address, places))

    def _is_user_address(self, place: str) -> bool:
        return any(place in _find_addresses(text) for text in self._user_texts)

    def _is_allowed_destination(self, place: str) -> bool:
        location = _parse_location(place)
        return location is not None and any(listed.matches(location) for listed in self._destinations)


def _decode_arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", msgspec.json.decode(call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None


def _find_addresses(text: str) -> set[str]:
    """Return the addresses in a text, whole: a part of one is another, and which part is chosen says something."""
    found = _ADDRESS.findall(text)
    return {*found, *(address.rstrip(_TRAILING_PUNCTUATION) for address in found)}


def _parse_location(url: str) -> Location | None:
    """Return where a URL leads; None unless that is beyond doubt."""
    try:
        location = parse_location(url) if url.isprintable() else None
    except LinkRefused:
        return None
    return location and structs.replace(location, host=location.host.rstrip("."))


def host_of(url: str) -> str:
    """Return the host a URL leads to, with the port if that is not the usual one; "" unless it is beyond doubt."""
    location = _parse_location(url)
    return location.authority if location is not None else ""


def _as_string_list(value: Any) -> list[str]:
    """Return one address or several; none if anything else is among them."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)] if all(isinstance(each, str) for each in values) else []


def _is_harmless_value(value: Any) -> bool:
    """Tell whether a value can carry nothing worth hiding: a switch, a small number."""
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _MAX_HARMLESS_INT)


def _format_place(place: str) -> str:
    return repr(host_of(place) or place[:100])


class CallGuard:
    """What is known of the calls of one run."""

    def __init__(self, limits: Limits) -> None:
        self._repairs = limits.repairs
        self._identical = limits.identical
        self._invalid_counts: dict[str, int] = {}
        """How often in a row a tool was called with arguments that do not fit."""
        self._last_results: dict[bytes, tuple[bytes, int]] = {}
        """The last result of each call, and how often in a row it was the same."""

    def check_repairs(self, call: ToolCall) -> str:
        """Say why a tool is not run any more; "" if it is."""
        count = self._invalid_counts.get(qualify_name(call.namespace, call.name), 0)
        if self._repairs is None or count <= self._repairs:
            return ""
        return f"{call.name} was not run: {count} calls of it in a row had arguments that do not fit. Go on without it."

    def check_repetition(self, call: ToolCall, same_in_turn: int = 0) -> str:
        """Say why a call would bring nothing new, `beside` others of this turn that are the same; "" if it may."""
        _, count = self._last_results.get(fingerprint_call(call), (b"", 0))
        if self._identical is None or count + same_in_turn < self._identical:
            return ""
        times = f"{count} times" if count else f"{same_in_turn} times in this turn"
        return (
            f"{call.name} was not run: the same call was made {times}, with the same result. "
            "Use that result, or do something else."
        )

    def record_result(self, call: ToolCall, execution: Execution) -> None:
        """Take in what became of a call."""
        name = qualify_name(call.namespace, call.name)
        if execution.outcome in ("invalid", "unknown"):
            self._invalid_counts[name] = self._invalid_counts.get(name, 0) + 1
        elif execution.has_run:
            self._invalid_counts.pop(name, None)
        if execution.has_run:
            call_digest, result_digest = fingerprint_call(call), _digest(repr(execution.result.content))
            before, count = self._last_results.get(call_digest, (b"", 0))
            self._last_results[call_digest] = (result_digest, count + 1 if before == result_digest else 1)


def fingerprint_call(call: ToolCall) -> bytes:
    """Return the same bytes for calls that say the same, however their arguments are written."""
    try:
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments or "{}"), order="deterministic").decode()
    except (ValueError, RecursionError):
        arguments = call.arguments
    return _digest(f"{qualify_name(call.namespace, call.name)}\n{arguments}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class KeyedCall(Struct, frozen=True):
    """A call, and a name for it that no other call of the run has."""

    call: ToolCall
    key: str


class Admission:
    """The door of one run."""

    def __init__(self, config: AgentConfig, history: Sequence[Message], runtime: Runtime, run: str) -> None:
        self._config, self._runtime, self._run = config, runtime, run
        self._call_guard = CallGuard(config.limits)
        self._egress_policy = EgressPolicy(config.destinations, collect_user_texts(history))
        self.untrusted = has_untrusted(history, config.executor.registry)
        """Whether anything read so far may have been written by anybody."""
        self._admitted = 0
        self.is_exhausted = False
        """Whether a call was refused because there were too many."""
        self.is_repeating = False
        """Whether the last turn brought nothing but calls that were made before."""

    def record_turn(
        self, parts: Iterable[AnyPart], calls: Iterable[KeyedCall], executions: Iterable[Execution]
    ) -> None:
        """Take in what a turn said and what became of its calls."""
        self.untrusted = self.untrusted or has_untrusted_parts(parts)
        for keyed, execution in zip(calls, executions, strict=True):
            self._call_guard.record_result(keyed.call, execution)
            handler = execution.handler
            self.untrusted = self.untrusted or (execution.has_run and handler is not None and handler.untrusted)

    def is_untainted(self, call: ToolCall) -> bool:
        """Tell whether no stranger can have had a word in a call of this turn."""
        handler = self._config.executor.registry.find(call)
        return not self.untrusted or (
            handler is not None and self._egress_policy.has_only_user_addresses(call, handler)
        )

    async def find_refusals(self, calls: Sequence[KeyedCall]) -> dict[str, Execution]:
        """Return the refusals of a turn's calls by their keys; all others may be run."""
        told: dict[str, Execution] = {}
        asked: list[tuple[KeyedCall, str]] = []
        self.is_repeating = bool(calls)
        beside: dict[bytes, int] = {}
        for keyed in calls:
            call = keyed.call
            same = beside[digest] = beside.get(digest := fingerprint_call(call), 0) + 1
            repeated = self._call_guard.check_repetition(call, same - 1)
            self.is_repeating = self.is_repeating and bool(repeated)
            if words := repeated or self._call_guard.check_repairs(call) or self._check_call_limit(call):
                told[keyed.key] = build_refusal(call, None, "skipped", words)
                continue
            decision, reason = await self._decide(keyed)
            if decision == "deny":
                told[keyed.key] = build_refusal(call, None, "denied", _DENIED.format(name=call.name))
            elif decision == "ask":
                asked.append((keyed, reason))
        return told | await self._await_approvals(asked)

    def _check_call_limit(self, call: ToolCall) -> str:
        limit = self._config.limits.calls
        if limit is not None and self._admitted >= limit:
            self.is_exhausted = True
            return _NO_CALLS_LEFT.format(name=call.name, limit=limit)
        self._admitted += 1
        return ""

    async def _decide(self, keyed: KeyedCall) -> tuple[Decision, str]:
        """Return the decision about a call, and for "ask" the reason."""
        call, executor = keyed.call, self._config.executor
        handler = executor.registry.find(call)
        if handler is None:
            return "allow", ""  # the executor says which tools there are
        egress = self._egress_policy.find_objection(call, handler) if self.untrusted and handler.sends_out else ""
        wish = ApprovalRequest(run=self._run, call=call, handler=handler, egress_reason=egress)
        decision = await self._ask_policy(keyed, wish)
        if decision == "deny":
            return "deny", ""
        if decision == "allow" and not egress:
            return "allow", ""
        if not executor.can_run(call):
            return "allow", ""  # it is not run as it is, and nobody is bothered with it
        return "ask", egress or f"{handler.name} is run only with approval"

    async def _ask_policy(self, keyed: KeyedCall, request: ApprovalRequest) -> Decision:
        approve = self._config.approve
        if approve is None:
            return "allow"

        async def decide() -> Decision:
            with wrap_errors("the policy of approvals"):
                decision = approve(request)
                return await decision if inspect.isawaitable(decision) else decision

        # What a policy says may change with the time of day: it is asked once.
        return await self._runtime.step(f"approve:{keyed.key}", decide)

    async def _await_approvals(self, pending: Sequence[tuple[KeyedCall, str]]) -> dict[str, Execution]:
        """Ask for somebody's word about calls; return the refusals of those that did not get it."""
        seconds = self._config.limits.approval
        if seconds > 0:
            for keyed, reason in pending:
                topic = topic_of(keyed.key)
                await self._runtime.emit(ApprovalAsked(run=self._run, topic=topic, call=keyed.call, reason=reason))
        told: dict[str, Execution] = {}
        for keyed, reason in pending:
            words = await self._await_approval(keyed, reason, seconds)
            if words:
                told[keyed.key] = build_refusal(keyed.call, None, "denied", words)
        return told

    async def _await_approval(self, keyed: KeyedCall, reason: str, seconds: float) -> str:
        """Return why a call is not run; "" if somebody said that it may be."""
        name, nobody = keyed.call.name, "there is nobody to ask"
        if seconds > 0:
            try:
                answer = await self._runtime.wait(topic_of(keyed.key), seconds)
            except TimeoutError:
                nobody = f"nobody answered within {seconds:g} seconds"
            else:
                return "" if is_yes(answer) else _DENIED.format(name=name)
        return _NOT_APPROVED.format(name=name, reason=reason, nobody=nobody)
