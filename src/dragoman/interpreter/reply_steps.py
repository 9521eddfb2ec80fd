"""Steps of adapting a reply to the client's dialect, shared by whole replies and streams."""

from dragoman.core.parts import AnyPart, Media, Reasoning, Signature, Text, ToolCall
from dragoman.core.problems import Problem
from dragoman.core.response import Finish
from dragoman.dialects.record import Dialect, Holds
from dragoman.interpreter.aliases import call_id_stem, minted_id, plain_id
from dragoman.interpreter.carry import UNSIGNED, sealed
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json

_SIGNED_WORDS: dict[type[AnyPart], str] = {ToolCall: "call", Reasoning: "reasoning", Text: "text", Media: "text"}
"""What `Holds.signatures` calls the parts that may be signed."""


class CallIds:
    """The ids of a reply's calls at the client, each unlike all others."""

    __slots__ = ("_client", "_ledger", "_reply_id", "_salt", "_stem", "_taken")

    def __init__(self, client: Dialect, reply_id: str, salt: str, ledger: Ledger) -> None:
        self._client = client
        self._reply_id = reply_id
        self._salt = salt
        self._ledger = ledger
        self._stem = ""
        self._taken: set[str] = set()

    def of(self, call: ToolCall, number: int) -> str:
        """Return the id of the call of that number; report what of its name the client cannot be told."""
        client, call_id = self._client, call.id
        if not call_id:
            self._stem = self._stem or client.call_prefix + call_id_stem(self._reply_id, self._salt)
            call_id = f"{self._stem}{number:04x}"
        if client.holds.plain_ids:
            call_id = plain_id(call_id)
        if call_id in self._taken:
            words = f"another call has the id {call.id!r}: this one gets its own"
            self._ledger.field_approximated("call.id", words, call)
            call_id = minted_id(client.call_prefix, self._reply_id, self._salt, number, call_id)
        self._taken.add(call_id)
        if call.namespace and not client.holds.namespaces:
            self._ledger.field_dropped("call.namespace", "the client's dialect has no namespaces", call)
        return call_id


def held_signature(signature: Signature, kind: type[AnyPart], client: Dialect, *, redacted: bool) -> Signature | None:
    """Return a signature as a part of the client's holds it, another vendor's in an envelope; None if it cannot."""
    holds, word = client.holds, _SIGNED_WORDS.get(kind, "")
    if word not in holds.signatures:
        return None
    if signature.issuer == client.issuer or (word == "call" and signature.issuer in holds.call_issuers):
        return signature
    if word == "call" and not holds.any_issuer:
        return None
    return sealed(signature, "redacted" if redacted else "self", client.issuer)


def is_carried(holds: Holds) -> bool:
    """Tell whether reasoning before a call carries the signature that the call itself cannot hold."""
    return "call" not in holds.signatures and "reasoning" in holds.signatures


def unsigned_mark(issuer: str, client: Dialect) -> Signature | None:
    """Return what marks unsigned reasoning of `issuer`: it must not be taken for the client's own vendor's."""
    if issuer == client.issuer or "reasoning" not in client.holds.signatures:
        return None
    return sealed(UNSIGNED, "self", client.issuer)


def drop_signature(signature: Signature, part: AnyPart, ledger: Ledger, *, redacted: bool) -> None:
    """Report a signature that the client's dialect has no place for."""
    why = f"the client's dialect cannot hold {signature.issuer}'s signature here"
    ledger.field_dropped("part.redacted" if redacted else "part.signature", why, part)


def report_order(part: AnyPart, holds: Holds, ledger: Ledger) -> None:
    """Report a part that came after a call, where the client's dialect puts it before."""
    if not holds.order:
        ledger.approximated(part.where, "the client's dialect cannot say that it came after a call")


def adapt_finish(  # noqa: PLR0913  what decides it, by name
    finish: Finish,
    source: Dialect | None,
    client: Dialect,
    ledger: Ledger,
    *,
    lost_call: bool = False,
    sequence: bool = False,
    blocked: bytes = b"",
) -> Finish:
    """Return a finish that the client's dialect has a word for; raise the `Problem` of any other.

    A call may have been lost; a field may say that a stop `sequence` was hit, or that the prompt was `blocked`.
    """
    reason, holds = finish.reason, client.holds
    if (finish.sequence is not None and not holds.stop_sequence) or (finish.sequence is None and sequence):
        ledger.field_dropped("finish.sequence", "the client's dialect cannot say what ended the reply")
    if lost_call and reason == "tool_calls":
        reason = "malformed_call"
    if reason == "paused" and reason not in holds.finishes:
        ledger.field_approximated("finish.reason", "the model paused; told as a reply cut by length")
        reason = "length"
    elif (
        finish.raw
        and source is not None
        and finish.raw not in source.finish_words
        and json.encode(finish.raw) not in blocked
    ):
        # The vendor's word says more than the core's reason.
        ledger.field_approximated("finish.reason", f"{finish.raw!r} is told as {reason!r}")
    if reason not in holds.finishes:
        raise _unsayable_finish(reason, finish.raw)
    return finish if reason == finish.reason else Finish(reason, finish.raw)


def _unsayable_finish(reason: str, raw: str) -> Problem:
    """Return the error that stands for an end the client's dialect has no word for."""
    word = raw or reason
    if reason == "malformed_call":
        return Problem(
            "malformed_reply", f"the model made a malformed tool call ({word})", code="malformed_function_call"
        )
    return Problem("malformed_reply", f"the model stopped for an unknown reason ({word})", code="unknown_finish")
