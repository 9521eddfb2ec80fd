"""Guards against a model that goes in circles: wrong arguments again and again, the same call with the same result.

Rules: a guard is told what became of every call, and says in words for the model why one would lead nowhere. Something
else in between sets it free: arguments that fit, another result.
"""

from hashlib import blake2b

import msgspec

from dragoman.agent.limits import Limits
from dragoman.core.parts import ToolCall
from dragoman.tools import Execution
from dragoman.tools.handler import joined


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
