"""Helpers to adapt values for one target and to inspect the losses."""

import json

from msgspec import structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger

NEWEST = {"chat": "gpt-5.6", "responses": "gpt-5.6", "messages": "claude-opus-5-5", "gemini": "gemini-3.8-pro"}


def adaptation_for(dialect, model="", *, source="chat", document=None, **changes):
    """One request of `source` on its way to `model` behind `dialect`, whose row may be changed for the test."""
    traits = traits_for(dialect, model)
    traits = structs.replace(traits, **changes) if changes else traits
    source_dialect = dialect_named(source)
    ledger = Ledger(source_dialect.pointers, encode(document) if document is not None else b"")
    return Adaptation(traits, ledger, source_dialect.issuer, can_force=traits.forced_choice)


def loss_pointers(result):
    """Return kind and pointer of every loss in an adaptation, a ledger or a tuple of losses."""
    ledger = getattr(result, "ledger", result)
    return [(loss.kind, loss.where) for loss in (ledger.losses() if isinstance(ledger, Ledger) else ledger)]


def encode(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def build_message(role, *parts, **more):
    """A message of texts and other parts."""
    return Message(role=role, parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts), **more)


def build_request(*messages, **more):
    return Request(model="m", messages=messages, **more)


def exactly(value):
    """All of a value, with the places and spellings that equality does not look at."""
    return repr(value)


class _AnyWord(frozenset):
    def __contains__(self, word):
        return True


def _write_nothing(response, request):
    raise Problem("internal", "this dialect is never written")


def nobodys_dialect(issuer="nobody"):
    """The dialect of replies that have no document and no words of their own."""
    plain = dialect_named("chat")
    return structs.replace(plain, issuer=issuer, mapped_finishes=_AnyWord(), build_response=_write_nothing)
