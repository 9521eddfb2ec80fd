"""`dragoman translate --batch`: one JSON object a line in, one a line out; an invalid line does not stop the rest.

In: `{"id", "op", "from", "to", "model"?, "status"?, "stream"?, "body" | "sse", "request"?, "strict"?}`.
Out: `{"id", "ok": true, "result", "sse"?, "losses"}` or `{"id", "ok": false, "problem": {"kind", "message", "where"}}`.
"""

import re
from typing import Any, BinaryIO

from dragoman.core.losses import Strict
from dragoman.core.problems import Problem
from dragoman.interpreter.job_object import read_job, translate_object
from dragoman.wire import json

_SCALAR = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]++)'
_MEMBERS_BEFORE = rb'(?:"\w*+"\s*+:\s*+%b\s*+,\s*+)*?' % _SCALAR
_EARLY_ID = re.compile(rb'\s*+\{\s*+%b"id"\s*+:\s*+(?P<id>%b)\s*+[,}]' % (_MEMBERS_BEFORE, _SCALAR))
_ID_SEARCH_LIMIT = 4096
_LINE_BREAKS = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "\x85\u2028\u2029"}
"""Characters that JSON allows in a string and that some readers take for the end of a line, and their escapes."""


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
        work = read_job(line)
        identifier = work.id
        return {"id": identifier, "ok": True, **translate_object(work, strict=strict)}
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
