"""Say in words, inside a description, what a target has no keyword for."""

from collections.abc import Iterable
from typing import Any

from dragoman.interpreter.schemas.nodes import Node, as_node, names_in, text_of

_LONGEST = 300

_TEMPLATES = {
    "multipleOf": "must be a multiple of {}",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
    "pattern": "must match the pattern {}",
    "format": "format: {}",
    "not": "must not match {}",
    "contains": "must contain an item that matches {}",
    "minContains": "at least {} such items",
    "maxContains": "at most {} such items",
    "propertyNames": "names of members must match {}",
    "contentMediaType": "content type: {}",
    "contentEncoding": "content encoding: {}",
    "contentSchema": "its content must match {}",
    "additionalProperties": "other members must match {}",
    "default": "Default: {}",
    "const": "must be {}",
    "enum": "must be one of {}",
}


def sentence(node: Node, keyword: str) -> str | None:
    """Return what `keyword` demands, in words; None if it demands nothing."""
    value = node.get(keyword)
    if keyword == "uniqueItems":
        return "items must be unique" if value is True else None
    if keyword == "if":
        return _condition(node)
    if keyword in {"dependentRequired", "dependencies", "dependentSchemas"}:
        return _dependencies(value)
    if keyword == "patternProperties":
        members = as_node(value) or {}
        return "; ".join(f"members named like {name} must match {_short(child)}" for name, child in members.items())
    template = _TEMPLATES.get(keyword)
    if template is None or (isinstance(value, bool) and keyword not in {"default", "const"}):
        return None
    return template.format(value if isinstance(value, str) and keyword != "default" else _short(value))


def alternatives(branches: Iterable[object]) -> str | None:
    """Return what a union of mere `required` lists demands."""
    groups = [names_in((as_node(branch) or {}).get("required")) for branch in branches]
    said = [" and ".join(f'"{name}"' for name in group) for group in groups if group]
    return f"at least one of these must be given: {', or '.join(said)}" if said else None


def with_sentences(description: object, sentences: Iterable[str | None]) -> str:
    """Append sentences to a description, in brackets."""
    said = "; ".join(dict.fromkeys(text for text in sentences if text))
    start = description if isinstance(description, str) else "" if description is None else _short(description)
    return f"{start} ({said})".lstrip() if said else start


def _condition(node: Node) -> str | None:
    parts = [f"if it matches {_short(node.get('if'))}"]
    parts += [f"{word} it must match {_short(node[word])}" for word in ("then", "else") if word in node]
    return " ".join(parts) if len(parts) > 1 else None


def _dependencies(value: object) -> str:
    said: list[str] = []
    for name, demand in (as_node(value) or {}).items():
        if needed := ", ".join(f'"{other}"' for other in names_in(demand)):
            said.append(f'with "{name}" these are required: {needed}')
        else:
            said.append(f'with "{name}" it must match {_short(demand)}')
    return "; ".join(said)


def _short(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
