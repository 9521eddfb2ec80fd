"""`dragoman translate --batch`: one JSON object a line in, one a line out; an invalid line does not stop the rest.

In: `{"id", "op", "from", "to", "model"?, "status"?, "stream"?, "body" | "sse", "request"?, "strict"?}`.
Out: `{"id", "ok": true, "result", "sse"?, "losses"}` or `{"id", "ok": false, "problem": {"kind", "message", "where"}}`.
"""

import re
from typing import Any, BinaryIO

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.cli.choices import CORE, OPERATIONS, targets_of
from dragoman.cli.job import TranslationJob, open_stream, perform
from dragoman.core.losses import Strict
from dragoman.core.problems import Problem
from dragoman.dialects.registry import DIALECTS
from dragoman.wire import json

_SCALAR = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]++)'
_MEMBERS_BEFORE = rb'(?:"\w*+"\s*+:\s*+%b\s*+,\s*+)*?' % _SCALAR
_EARLY_ID = re.compile(rb'\s*+\{\s*+%b"id"\s*+:\s*+(?P<id>%b)\s*+[,}]' % (_MEMBERS_BEFORE, _SCALAR))
_ID_SEARCH_LIMIT = 4096
_LINE_BREAKS = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "\x85\u2028\u2029"}
"""Characters that JSON allows in a string and that some readers take for the end of a line, and their escapes."""


class Line(Struct, rename={"operation": "op", "source": "from", "target": "to"}):
    """One line of input: a document and how to translate it."""

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


_LINE = msgspec.json.Decoder(Line)


def run_batch(lines: BinaryIO, results: BinaryIO, *, strict: Strict) -> int:
    """Translate each line and return exit code 0; the error of a line is in its result."""
    for line in lines:
        if line.strip():
            results.write(encode_line(run_line(line, strict=strict)) + b"\n")
            results.flush()
    return 0


def encode_line(result: dict[str, Any]) -> bytes:
    """Encode a result as one line, whatever line breaks its documents have between or inside their strings."""
    line = json.one_line(json.encode(result))
    if not line.isascii():
        for character, escape in _LINE_BREAKS.items():
            line = line.replace(character, escape)
    return line


def run_line(line: bytes, *, strict: Strict = False) -> dict[str, Any]:
    """Translate one line and return its result object."""
    identifier: Any = None
    try:
        work = json.decode_with(_LINE, line)
        identifier = work.id
        return {"id": identifier, "ok": True, **_translate_line(work, strict=strict or work.strict)}
    except json.Malformed as error:
        return _build_failure(
            _find_line_id(line, identifier), Problem("invalid_request", error.message, where=error.where)
        )
    except Problem as problem:
        return _build_failure(identifier, problem)
    except Exception as error:  # noqa: BLE001  a bug must not stop the other lines, and is reported in the result
        return _build_failure(identifier, Problem("internal", f"{type(error).__name__}: {error}"))


def _find_line_id(line: bytes, identifier: Any) -> Any:
    """Return the id of an invalid line, even of one that is not JSON if the id is near its start; else None."""
    if identifier is not None:
        return identifier
    if json.is_object(line):
        raw = json.decode_object(line).get("id")
        return json.decode(raw) if raw is not None else None
    found = _EARLY_ID.match(line[:_ID_SEARCH_LIMIT])
    return json.peek(found["id"]) if found is not None else None


def _build_failure(identifier: Any, problem: Problem) -> dict[str, Any]:
    shown = {"kind": problem.kind, "message": problem.message, "where": problem.where}
    return {"id": identifier, "ok": False, "problem": shown}


def _translate_line(work: Line, *, strict: Strict) -> dict[str, Any]:
    _check(work)
    if work.operation == "stream":
        return _translate_stream(work)
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


def _check(work: Line) -> None:
    for name, value, known in (
        ("op", work.operation, OPERATIONS),
        ("from", work.source, DIALECTS),
        ("to", work.target, targets_of(DIALECTS)),
    ):
        if value not in known:
            raise Problem(
                "invalid_request", f"unknown {name} {value!r}; use one of {', '.join(known)}", where=f"/{name}"
            )


def _body_bytes(body: Raw) -> bytes:
    """Return the document of a line; a document that is not JSON (an HTML error page) is passed as a JSON string."""
    raw = bytes(body)
    return json.decode(raw).encode() if raw.startswith(b'"') else raw


def _translate_stream(work: Line) -> dict[str, Any]:
    if isinstance(work.sse, UnsetType):
        raise Problem("invalid_request", "`sse` is required: the text of the stream", where="/sse")
    request = None if isinstance(work.request, UnsetType) else bytes(work.request)
    stream = open_stream(work.source, work.target, work.model or "", request)
    output = stream.feed(work.sse.encode("utf-8", "surrogatepass")) + stream.close()
    if work.target == CORE:
        return {"result": Raw(output), "losses": ()}
    return {"result": None, "sse": output.decode(), "losses": stream.losses}
