"""Perform one translation of a document, for `dragoman translate` and `POST /v1/translate`.

The core view prints core values as plain JSON: parts, sources and tools have their kind in `type`, and defaults are
omitted. The dialect of a request is detected by fields that only one dialect has.
"""

import re
from typing import Any, Literal, Protocol, assert_never, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.core.losses import Loss, Strict
from dragoman.core.parts import Inline, Link, Part, Plain, Stored
from dragoman.core.problems import Problem
from dragoman.core.request import NativeTool, Tool
from dragoman.core.stream import Collector
from dragoman.dialects import FORMS
from dragoman.dialects.documents import CORE
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.errors import translate_error
from dragoman.interpreter.loss_report import list_leaves, reject_losses
from dragoman.interpreter.pairing import identify_parts, identify_reply, identify_request
from dragoman.interpreter.reply_adapter import NO_CONTEXT, Context
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_request
from dragoman.wire import json
from dragoman.wire.pointer import split

_HIDDEN = {"where", "spelling"}
_SHOWN_WITH_TYPE = (Part, Inline, Link, Plain, Stored, Tool, NativeTool)
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def view(value: Any) -> Any:
    """Convert a core value to plain JSON values."""
    match value:
        case Struct():
            return _view_struct(value)
        case tuple() | list() | frozenset():
            return [view(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {name: view(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case bytes():
            return Raw(value) if json.is_json(value) else value.decode("utf-8", "replace")
        case _:
            return value


def _view_struct(value: Struct) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if isinstance(value, _SHOWN_WITH_TYPE):
        shown["type"] = _WORD_START.sub("_", type(value).__name__).lower()
    for field in msgspec.structs.fields(value):
        if field.name in _HIDDEN:
            continue
        item = getattr(value, field.name)
        if item is None or (not field.required and item == field.default):
            continue
        shown[field.name] = view(item)
    return shown


def view_problem(problem: Problem) -> dict[str, Any]:
    """Convert a problem to plain JSON values, without empty fields."""
    shown = {
        "kind": problem.kind,
        "message": problem.message,
        "status": problem.status,
        "where": problem.where,
        "code": problem.code,
        "retry_after": problem.retry_after,
    }
    return {name: value for name, value in shown.items() if value not in (None, "")}


def encode(value: Any) -> bytes:
    """Encode a view as JSON."""
    return json.encode(value)


def dialect_of(body: bytes) -> str | None:
    """Return the name of the dialect of a request body, or None if it is not certain.

    Dialects differ in the name of the field with the messages; dialects that share that name differ in other fields.
    """
    document: Any = json.peek(body)
    sharing: dict[str, list[Dialect]] = {}
    for dialect in DIALECTS.values():
        sharing.setdefault(dialect.history, []).append(dialect)
    # Dialects that were registered later are tried first, as for paths.
    for history, dialects in reversed(sharing.items()):
        if len(dialects) == 1:
            if any(_has(document, pointer) for pointer in dialects[0].pointers["messages"]):
                return dialects[0].name
        elif _has(document, f"/{history}") and isinstance(document[history], list):
            return _find_dialect_by_fields(document, history, dialects)
    return None


def _has(document: Any, pointer: str) -> bool:
    """Return whether a document has a value, including null, at a pointer."""
    for token in split(pointer):
        if not isinstance(document, dict) or token not in document:
            return False
        document = cast("dict[str, Any]", document)[token]
    return True


def _find_dialect_by_fields(document: dict[str, Any], history: str, dialects: list[Dialect]) -> str | None:
    """Return the dialect, of several with the same messages field, whose own fields the document uses; else None."""
    in_tools = _tool_members(document.get("tools"))
    for dialect in dialects:
        if not dialect.api.request_fields.isdisjoint(document) or not dialect.api.tool_fields.isdisjoint(in_tools):
            return dialect.name
    for message in document[history]:
        for dialect in dialects:
            if dialect.api.is_message is not None and dialect.api.is_message(message):
                return dialect.name
    return None


def _tool_members(tools: Any) -> set[str]:
    """Return the names of all fields that occur in the tools."""
    listed = cast("list[Any]", tools) if isinstance(tools, list) else []
    return {name for tool in listed if isinstance(tool, dict) for name in cast("dict[str, Any]", tool)}


class TranslationJob(Struct, frozen=True, kw_only=True):
    """A document to translate and how."""

    operation: Literal["request", "response", "error"]
    source: str
    target: str
    body: bytes
    model: str = ""
    status: int = 500
    strict: Strict = False
    by_leaf: bool = False
    """List every leaf of a dropped value."""
    stream: bool = False
    request: bytes | None = None


class JobResult(Struct, frozen=True, kw_only=True):
    """A translated document. `status` and `headers` are set for an error, `model` and `stream` for a request."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    model: str = ""
    stream: bool = False
    status: int | None = None
    headers: dict[str, str] = {}


def target_of(name: str) -> tuple[str, str]:
    """Return the dialect and the envelope form of a target name."""
    return FORMS.get(name, (name, ""))


def perform(job: TranslationJob) -> JobResult:
    """Translate one document."""
    if job.target == CORE:
        return _perform_neutral(job)
    match job.operation:
        case "request":
            return _perform_request(job)
        case "response":
            target, _ = target_of(job.target)
            rendered = translate_response(
                job.body, job.source, target, context_of(job.source, job.target, job.model, job.request)
            )
            if job.strict:
                reject_losses(rendered.losses, "reply", strict=job.strict)
            return JobResult(body=rendered.body, losses=_list_losses(rendered.losses, job))
        case "error":
            target, _ = target_of(job.target)
            reply = translate_error(job.status, {}, job.body, job.source, target)
            if job.strict:
                reject_losses(reply.losses, "error", strict=job.strict)
            return JobResult(body=reply.body, losses=reply.losses, status=reply.status, headers=reply.headers)
        case _:
            assert_never(job.operation)


def _perform_request(job: TranslationJob) -> JobResult:
    target, form = target_of(job.target)
    # Most dialects have the model in the body; this one is used only by a dialect that does not (Gemini).
    call = Call(job.body, job.model, job.stream)
    translation = translate_request(call, job.source, target, model=job.model, strict=job.strict, form=form)
    call = translation.call
    losses = _list_losses(translation.losses, job)
    return JobResult(body=call.body, losses=losses, model=call.model, stream=call.stream)


def _list_losses(losses: tuple[Loss, ...], job: TranslationJob) -> tuple[Loss, ...]:
    return list_leaves(losses, job.body) if job.by_leaf else losses


def context_of(source: str, target: str, model: str, request: bytes | None) -> Context:
    """Return the context of a reply, from the client's request in the client's dialect (`target`).

    A request that is certainly in another dialect is the upstream's request and is ignored.
    """
    client, form = target_of(target)
    if request is None or dialect_of(request) not in (None, client):
        return Context(form=form) if form else NO_CONTEXT
    translation = translate_request(Call(request, model), client, source, model=model)
    parsed = translation.request or dialect_named(client).parse_request(Call(request, model))
    return Context(parsed, translation.undo, form)


def _perform_neutral(job: TranslationJob) -> JobResult:
    dialect = dialect_named(job.source)
    match job.operation:
        case "request":
            shown = view(identify_request(dialect.parse_request(Call(job.body, job.model, job.stream))))
        case "response":
            shown = view(identify_reply(dialect.parse_response(job.body)))
        case "error":
            shown = view_problem(dialect.parse_error(job.status, {}, job.body))
        case _:
            assert_never(job.operation)
    return JobResult(body=encode(shown))


class TranslatingStream(Protocol):
    """A stream translator: feed it chunks and write what it returns."""

    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    @property
    def losses(self) -> tuple[Loss, ...]: ...


def open_stream(
    source: str, target: str, model: str = "", request: bytes | None = None, *, by_leaf: bool = False
) -> TranslatingStream:
    """Return a translator for a stream; with `by_leaf` its losses list every leaf of a dropped value."""
    if target == CORE:
        return _NeutralStream(source)
    client, _ = target_of(target)
    context = context_of(source, target, model, request)
    return StreamTranslator(source, client, msgspec.structs.replace(context, by_leaf=by_leaf))


class _NeutralStream:
    """Collects a stream and returns the whole reply as core values at the end, with the problem if it failed."""

    def __init__(self, source: str) -> None:
        self._decoder = dialect_named(source).decoder()
        self._collector = Collector()

    def feed(self, chunk: bytes) -> bytes:
        for event in self._decoder.feed(chunk):
            self._collector.feed(event)
        return b""

    def close(self) -> bytes:
        for event in self._decoder.close():
            self._collector.feed(event)
        try:
            shown = view(identify_reply(self._collector.response()))
        except Problem as problem:
            parts = identify_parts(self._collector.parts, self._collector.reply_id)
            shown = {"parts": view(parts), "problem": view_problem(problem)}
        return encode(shown)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return ()
