"""Find what is wrong with a schema that is not proven plain: what no draft of JSON Schema gives a meaning."""

from collections.abc import Iterator
from typing import Any

from dragoman.interpreter.schema.drafts import modernised
from dragoman.interpreter.schema.metaschema import is_list
from dragoman.interpreter.schema.nodes import as_list, as_node, children
from dragoman.interpreter.schema.references import REFERENCES, References
from dragoman.wire import json
from dragoman.wire.pointer import split

Fault = tuple[str, str]
"""A place and what is wrong there."""


_MEANINGLESS = {
    "cannot be so": "is no value for",
    "not a schema": "is no schema, which is an object or a boolean, at",
    "no type of JSON Schema": "is no type of JSON Schema, at",
    "not the name of a property": "is not the name of a property, at number",
}
"""What notes say of what no draft knows, and how it is told."""


_LONGEST_SHOWN = 60


def find_faults(schema: bytes, *, openapi: bool = False) -> tuple[Fault, ...]:
    """Return all that is wrong with a schema that is not proven plain."""
    document = json.peek(schema)
    if isinstance(document, bool):
        return ()
    if as_node(document) is None:
        return (("", f"{_shown(document)} is no schema: the parameters of a tool are an object"),)
    try:
        return (*_meaningless(document, openapi), *_leading_nowhere(document))
    except RecursionError:
        return (("", "the schema is nested too deeply"),)


def _meaningless(document: Any, openapi: bool) -> Iterator[Fault]:
    for note in modernised(document).notes:
        words = next((words for said, words in _MEANINGLESS.items() if said in note.what), None)
        value = _at(document, note.where)
        keyword = split(note.where)[-1] if note.where else ""
        # Google's enumerations may be written as numbers.
        if words is not None and not (openapi and keyword == "type" and isinstance(value, int)):
            yield note.where, f"{_shown(value)} {words} {keyword!r}"


def _leading_nowhere(document: Any) -> Iterator[Fault]:
    references = References(document)
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        where, schema = waiting.pop()
        node = as_node(schema)
        if node is None:
            continue
        for keyword in REFERENCES:
            named = node.get(keyword)
            if isinstance(named, str) and named.startswith("#") and references.locate(named, where) is None:
                yield f"{where}/{keyword}", f"{_shown(named)} is not in the schema"
        waiting.extend((where + relative, child) for relative, child in children(node))


def _at(document: Any, where: str) -> Any:
    value = document
    for token in split(where):
        node = as_node(value)
        value = as_list(value)[int(token)] if node is None and is_list(value) else (node or {}).get(token)
    return value


def _shown(value: Any) -> str:
    text = json.encode(value).decode()
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
