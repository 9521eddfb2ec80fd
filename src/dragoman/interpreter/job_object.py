"""Translations as JSON objects: a line of `dragoman translate --batch`, or the body of `POST /v1/translate`.

In: `{"op", "from", "to", "model"?, "status"?, "stream"?, "body" | "sse", "request"?, "strict"?}`.
Out: `{"result", "sse"?, "model"?, "stream"?, "status"?, "headers"?, "losses"}`.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.core.losses import Strict
from dragoman.core.problems import Problem
from dragoman.dialects.documents import CORE, DOCUMENTS, list_targets
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.job import TranslationJob, open_stream, perform
from dragoman.interpreter.loss_report import reject_losses
from dragoman.wire import json


class JobObject(Struct, rename={"operation": "op", "source": "from", "target": "to"}):
    """A document and how to translate it."""

    operation: str
    source: str
    target: str
    id: Any = None
    model: str | None = None
    status: int | None = None
    stream: bool = False
    strict: Strict = False
    body: Raw | UnsetType = UNSET
    sse: str | UnsetType = UNSET
    request: Raw | UnsetType = UNSET


_DECODER = msgspec.json.Decoder(JobObject)


def read_job(body: bytes) -> JobObject:
    """Parse a translation; raises `json.Malformed`."""
    return json.decode_with(_DECODER, body)


def translate_object(work: JobObject, *, strict: Strict = False) -> dict[str, Any]:
    """Translate the document of an object and return the result; raises `Problem`. The stricter `strict` counts."""
    _check(work)
    strict = "all" if "all" in (strict, work.strict) else strict or work.strict
    if work.operation == "stream":
        return _translate_stream(work, strict)
    if isinstance(work.body, UnsetType):
        raise Problem("invalid_request", "`body` is required", where="/body")
    job = TranslationJob(
        operation=work.operation,  # pyright: ignore[reportArgumentType]  checked above
        source=work.source,
        target=work.target,
        body=_body_bytes(work.body),
        model=work.model or "",
        status=work.status or 500,
        strict=strict,
        stream=work.stream,
        request=None if isinstance(work.request, UnsetType) else bytes(work.request),
    )
    done = perform(job)
    result: dict[str, Any] = {
        "result": Raw(done.body) if json.is_json(done.body) else done.body.decode("utf-8", "replace")
    }
    if work.operation == "request" and work.target != CORE:
        result |= {"model": done.model, "stream": done.stream}
    if done.status is not None:
        result |= {"status": done.status, "headers": done.headers}
    return result | {"losses": done.losses}


def _check(work: JobObject) -> None:
    for name, value, known in (
        ("op", work.operation, DOCUMENTS),
        ("from", work.source, DIALECTS),
        ("to", work.target, list_targets(DIALECTS)),
    ):
        if value not in known:
            raise Problem(
                "invalid_request", f"unknown {name} {value!r}; use one of {', '.join(known)}", where=f"/{name}"
            )


def _body_bytes(body: Raw) -> bytes:
    """Return the document of an object; a document that is not JSON (an HTML error page) is passed as a JSON string."""
    raw = bytes(body)
    return json.decode(raw).encode() if raw.startswith(b'"') else raw


def _translate_stream(work: JobObject, strict: Strict) -> dict[str, Any]:
    if isinstance(work.sse, UnsetType):
        raise Problem("invalid_request", "`sse` is required: the text of the stream", where="/sse")
    request = None if isinstance(work.request, UnsetType) else bytes(work.request)
    stream = open_stream(work.source, work.target, work.model or "", request)
    output = stream.feed(work.sse.encode("utf-8", "surrogatepass")) + stream.close()
    if work.target == CORE:
        return {"result": Raw(output), "losses": ()}
    if strict:
        reject_losses(stream.losses, "stream", strict=strict)
    return {"result": None, "sse": output.decode(), "losses": stream.losses}
