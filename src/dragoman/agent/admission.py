"""Decide which of a model's calls are run; the others get a result with the reason.

Calls are decided one after the other, so that a durable engine replays the same decisions in the same order; all
approval requests are emitted before the first is waited for. Results of the current turn do not count yet: the model
wrote all calls of a turn before it saw any of their results.

Egress: the author of an untrusted result may have dictated the next call. From then on, also in later runs over the
same history, a tool that can send data out needs approval, unless everything it sends goes to a listed destination or
to an address that the user wrote. Guards: a tool that is called with invalid arguments again and again, and a call that
keeps returning the same result, are stopped until something else happens in between.
"""

import inspect
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec import Struct, structs

from dragoman.agent.config import AgentConfig, ApprovalRequest, Decision, is_yes, topic_of
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
"""Characters that follow a URL in a sentence and are mostly not part of it."""
_NO_CALLS_LEFT = "{name} was not run: all {limit} calls of this run are made. Answer with what you have."
_DENIED = "{name} was not run: that was not approved. Do not try it again; go on without it."
_NOT_APPROVED = "{name} was not run: it needs approval ({reason}), and {nobody}. Go on without it."


def has_untrusted(messages: Sequence[Message], registry: Registry) -> bool:
    """Check whether a history may contain text from an untrusted author.

    Results of client tools count, because the gateway does not know what those tools read.
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
    """Check whether the model read something with a vendor's own search or fetch, which shows up in its reply."""
    return any(isinstance(part, Opaque) or (isinstance(part, Text) and part.citations) for part in parts)


def collect_user_texts(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the texts written by the user and the system; summaries are left out, because a model wrote them."""
    return tuple(
        part.text
        for message in messages
        if message.role != "assistant"
        for part in message.parts
        if isinstance(part, Text) and not part.text.startswith((SUMMARY, UNTRUSTED_SUMMARY))
    )


class EgressPolicy:
    """Decides which calls may send data where."""

    def __init__(self, destinations: Iterable[Destination], user_texts: Sequence[str]) -> None:
        self._destinations = tuple(destinations)
        self._user_texts = user_texts

    def find_approval_reason(self, call: ToolCall, handler: Handler) -> str:
        """Return why a call needs approval before it sends data out, as text for the user; "" if it does not."""
        before = "something untrusted was read before"
        arguments = _decode_arguments(call)
        if not handler.destination or arguments is None:
            return f"{handler.name} can send data out, and {before}"
        destinations = _as_string_list(arguments.get(handler.destination))
        if destinations and all(self._is_allowed_destination(destination) for destination in destinations):
            return ""
        if self.has_only_user_addresses(call, handler):
            return ""
        named = ", ".join(map(_format_destination, destinations)) or "an unknown destination"
        return f"{handler.name} would send data to {named}, and {before}"

    def has_only_user_addresses(self, call: ToolCall, handler: Handler) -> bool:
        """Check whether all that a call sends are addresses that the user wrote."""
        arguments = _decode_arguments(call) if handler.destination else None
        destinations = _as_string_list(arguments.get(handler.destination)) if arguments is not None else []
        if arguments is None or not destinations:
            return False
        others = [value for name, value in arguments.items() if name != handler.destination]
        return all(map(_is_harmless_value, others)) and all(map(self._is_user_address, destinations))

    def _is_user_address(self, destination: str) -> bool:
        return any(destination in _find_addresses(text) for text in self._user_texts)

    def _is_allowed_destination(self, destination: str) -> bool:
        location = _parse_location(destination)
        return location is not None and any(listed.matches(location) for listed in self._destinations)


def _decode_arguments(call: ToolCall) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", msgspec.json.decode(call.arguments, type=dict))
    except (ValueError, RecursionError):
        return None


def _find_addresses(text: str) -> set[str]:
    """Return the complete URLs in a text; a part of a URL does not count, because choosing it can leak data."""
    found = _ADDRESS.findall(text)
    return {*found, *(address.rstrip(_TRAILING_PUNCTUATION) for address in found)}


def _parse_location(url: str) -> Location | None:
    """Return the destination of a URL; None if it is ambiguous."""
    try:
        location = parse_location(url) if url.isprintable() else None
    except LinkRefused:
        return None
    return location and structs.replace(location, host=location.host.rstrip("."))


def host_of(url: str) -> str:
    """Return the host of a URL, with a non-default port; "" if it is ambiguous."""
    location = _parse_location(url)
    return location.authority if location is not None else ""


def _as_string_list(value: Any) -> list[str]:
    """Return one string or a list of strings as a list; an empty list for any other value."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)] if all(isinstance(each, str) for each in values) else []


def _is_harmless_value(value: Any) -> bool:
    """Check whether a value is too small to leak data: None, a boolean or a small integer."""
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) <= _MAX_HARMLESS_INT)


def _format_destination(destination: str) -> str:
    return repr(host_of(destination) or destination[:100])


class CallGuard:
    """Counts invalid and repeated calls of one run."""

    def __init__(self, limits: Limits) -> None:
        self._repairs = limits.repairs
        self._identical = limits.identical
        self._invalid_counts: dict[str, int] = {}
        """How often in a row each tool was called with invalid arguments."""
        self._last_results: dict[bytes, tuple[bytes, int]] = {}
        """The digest of the last result of each call, and how often in a row it was the same."""

    def check_repairs(self, call: ToolCall) -> str:
        """Return why a tool is no longer run after too many invalid calls; "" if it is run."""
        count = self._invalid_counts.get(qualify_name(call.namespace, call.name), 0)
        if self._repairs is None or count <= self._repairs:
            return ""
        return f"{call.name} was not run: {count} calls of it in a row had arguments that do not fit. Go on without it."

    def check_repetition(self, call: ToolCall, same_in_turn: int = 0) -> str:
        """Return why a repeated call is not run, counting `same_in_turn` equal calls of this turn; "" if it is run."""
        _, count = self._last_results.get(fingerprint_call(call), (b"", 0))
        if self._identical is None or count + same_in_turn < self._identical:
            return ""
        times = f"{count} times" if count else f"{same_in_turn} times in this turn"
        return (
            f"{call.name} was not run: the same call was made {times}, with the same result. "
            "Use that result, or do something else."
        )

    def record_result(self, call: ToolCall, execution: Execution) -> None:
        """Count the result of a call."""
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
    """Return a digest of a call that does not depend on how its arguments are formatted."""
    try:
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments or "{}"), order="deterministic").decode()
    except (ValueError, RecursionError):
        arguments = call.arguments
    return _digest(f"{qualify_name(call.namespace, call.name)}\n{arguments}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class KeyedCall(Struct, frozen=True):
    """A call with a key that is unique in the run."""

    call: ToolCall
    key: str


class Admission:
    """Decides for one run which calls are run."""

    def __init__(self, config: AgentConfig, history: Sequence[Message], runtime: Runtime, run: str) -> None:
        self._config, self._runtime, self._run = config, runtime, run
        self._call_guard = CallGuard(config.limits)
        self._egress_policy = EgressPolicy(config.destinations, collect_user_texts(history))
        self.untrusted = has_untrusted(history, config.executor.registry)
        """Whether anything read so far may come from an untrusted author."""
        self._admitted = 0
        self.is_exhausted = False
        """Whether a call was refused because the limit of calls was reached."""
        self.is_repeating = False
        """Whether all calls of the last turn repeated earlier calls."""

    def record_turn(
        self, parts: Iterable[AnyPart], calls: Iterable[KeyedCall], executions: Iterable[Execution]
    ) -> None:
        """Record the parts of a turn and the results of its calls."""
        self.untrusted = self.untrusted or has_untrusted_parts(parts)
        for keyed, execution in zip(calls, executions, strict=True):
            self._call_guard.record_result(keyed.call, execution)
            handler = execution.handler
            self.untrusted = self.untrusted or (execution.has_run and handler is not None and handler.untrusted)

    def is_untainted(self, call: ToolCall) -> bool:
        """Check whether untrusted text cannot have influenced a call of this turn."""
        handler = self._config.executor.registry.find(call)
        return not self.untrusted or (
            handler is not None and self._egress_policy.has_only_user_addresses(call, handler)
        )

    async def find_refusals(self, calls: Sequence[KeyedCall]) -> dict[str, Execution]:
        """Return the refusals of a turn's calls by their keys; all other calls may be run."""
        refusals: dict[str, Execution] = {}
        pending: list[tuple[KeyedCall, str]] = []
        self.is_repeating = bool(calls)
        seen: dict[bytes, int] = {}
        for keyed in calls:
            call = keyed.call
            same = seen[digest] = seen.get(digest := fingerprint_call(call), 0) + 1
            repeated = self._call_guard.check_repetition(call, same - 1)
            self.is_repeating = self.is_repeating and bool(repeated)
            if text := repeated or self._call_guard.check_repairs(call) or self._check_call_limit(call):
                refusals[keyed.key] = build_refusal(call, None, "skipped", text)
                continue
            decision, reason = await self._decide(keyed)
            if decision == "deny":
                refusals[keyed.key] = build_refusal(call, None, "denied", _DENIED.format(name=call.name))
            elif decision == "ask":
                pending.append((keyed, reason))
        return refusals | await self._await_approvals(pending)

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
            return "allow", ""  # the executor's error result lists the known tools
        egress = self._egress_policy.find_approval_reason(call, handler) if self.untrusted and handler.sends_out else ""
        request = ApprovalRequest(run=self._run, call=call, handler=handler, egress_reason=egress)
        decision = await self._ask_policy(keyed, request)
        if decision == "deny":
            return "deny", ""
        if decision == "allow" and not egress:
            return "allow", ""
        if not executor.can_run(call):
            return "allow", ""  # it fails before it runs, so the user need not be asked
        return "ask", egress or f"{handler.name} is run only with approval"

    async def _ask_policy(self, keyed: KeyedCall, request: ApprovalRequest) -> Decision:
        approve = self._config.approve
        if approve is None:
            return "allow"

        async def decide() -> Decision:
            with wrap_errors("the approval policy"):
                decision = approve(request)
                return await decision if inspect.isawaitable(decision) else decision

        # A policy's decision may change over time, so a step records it.
        return await self._runtime.step(f"approve:{keyed.key}", decide)

    async def _await_approvals(self, pending: Sequence[tuple[KeyedCall, str]]) -> dict[str, Execution]:
        """Request approval for calls; return the refusals of those that are not approved."""
        seconds = self._config.limits.approval
        if seconds > 0:
            for keyed, reason in pending:
                topic = topic_of(keyed.key)
                await self._runtime.emit(ApprovalAsked(run=self._run, topic=topic, call=keyed.call, reason=reason))
        refusals: dict[str, Execution] = {}
        for keyed, reason in pending:
            text = await self._await_approval(keyed, reason, seconds)
            if text:
                refusals[keyed.key] = build_refusal(keyed.call, None, "denied", text)
        return refusals

    async def _await_approval(self, keyed: KeyedCall, reason: str, seconds: float) -> str:
        """Return why a call is not run; "" if it is approved."""
        name, nobody = keyed.call.name, "there is nobody to ask"
        if seconds > 0:
            try:
                answer = await self._runtime.wait(topic_of(keyed.key), seconds)
            except TimeoutError:
                nobody = f"nobody answered within {seconds:g} seconds"
            else:
                return "" if is_yes(answer) else _DENIED.format(name=name)
        return _NOT_APPROVED.format(name=name, reason=reason, nobody=nobody)
