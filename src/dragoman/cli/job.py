"""One translation as the command does it, alone or as a line of a batch."""

from typing import Literal, Protocol

from msgspec import Struct

from dragoman.cli import neutral
from dragoman.cli.recognise import dialect_of
from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.stream import Collector
from dragoman.dialects.record import Call
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.context import NO_CONTEXT, Context
from dragoman.interpreter.ledger import refuse
from dragoman.interpreter.repair import named_parts, named_reply, named_request
from dragoman.interpreter.response import translate_response
from dragoman.interpreter.stream import StreamTranslator
from dragoman.interpreter.translate import translate_error, translate_request

CODE_ASSIST = "code-assist"
CORE = "core"


class Job(Struct, frozen=True, kw_only=True):
    """What to translate."""

    operation: Literal["request", "response", "error"]
    source: str
    target: str
    body: bytes
    model: str = ""
    status: int = 500
    strict: bool = False
    stream: bool = False
    request: bytes | None = None


class Done(Struct, frozen=True, kw_only=True):
    """The translation. `status` and `headers` are an error's, `model` and `stream` a request's."""

    body: bytes
    losses: tuple[Loss, ...] = ()
    model: str = ""
    stream: bool = False
    status: int | None = None
    headers: dict[str, str] = {}


def target_of(name: str) -> tuple[str, str]:
    """Return the dialect and the form of its envelope that a target's name means."""
    return ("gemini", "code_assist") if name == CODE_ASSIST else (name, "")


def perform(job: Job) -> Done:
    """Do one translation."""
    if job.target == CORE:
        return _neutral(job)
    match job.operation:
        case "request":
            return _request(job)
        case "response":
            target, _ = target_of(job.target)
            rendered = translate_response(
                job.body, job.source, target, context_of(job.source, job.target, job.model, job.request)
            )
            if job.strict:
                refuse(rendered.losses, "reply")
            return Done(body=rendered.body, losses=rendered.losses)
        case "error":
            target, _ = target_of(job.target)
            reply = translate_error(job.status, {}, job.body, job.source, target)
            if job.strict:
                refuse(reply.losses, "error")
            return Done(body=reply.body, losses=reply.losses, status=reply.status, headers=reply.headers)


def _request(job: Job) -> Done:
    target, form = target_of(job.target)
    # Chat and the others name the model in the body; only a dialect that does not is told it here.
    call = Call(job.body, job.model, job.stream)
    translation = translate_request(call, job.source, target, model=job.model, strict=job.strict, form=form)
    call = translation.call
    return Done(body=call.body, losses=translation.losses, model=call.model, stream=call.stream)


def context_of(source: str, target: str, model: str, request: bytes | None) -> Context:
    """Return what a reply answers: the client's request, in the client's dialect (`target`).

    A request that is surely in another dialect is the upstream's own: it says nothing about the client.
    """
    client, form = target_of(target)
    if request is None or dialect_of(request) not in (None, client):
        return Context(form=form) if form else NO_CONTEXT
    translation = translate_request(Call(request, model), client, source, model=model)
    parsed = translation.request or dialect_named(client).parse_request(Call(request, model))
    return Context(parsed, translation.undo, form)


def _neutral(job: Job) -> Done:
    dialect = dialect_named(job.source)
    match job.operation:
        case "request":
            view = neutral.view(named_request(dialect.parse_request(Call(job.body, job.model, job.stream))))
        case "response":
            view = neutral.view(named_reply(dialect.parse_response(job.body)))
        case "error":
            view = neutral.view_problem(dialect.parse_error(job.status, {}, job.body))
    return Done(body=neutral.encode(view))


class Stream(Protocol):
    """A stream being translated."""

    def feed(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    @property
    def losses(self) -> tuple[Loss, ...]: ...


def open_stream(source: str, target: str, model: str = "", request: bytes | None = None) -> Stream:
    """Begin to translate a stream."""
    if target == CORE:
        return _NeutralStream(source)
    client, _ = target_of(target)
    return StreamTranslator(source, client, context_of(source, target, model, request))


class _NeutralStream:
    """Collect a stream and show the reply it tells, with its problem if it failed."""

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
            view = neutral.view(named_reply(self._collector.response()))
        except Problem as problem:
            parts = named_parts(self._collector.parts, self._collector.reply_id)
            view = {"parts": neutral.view(parts), "problem": neutral.view_problem(problem)}
        return neutral.encode(view)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return ()
