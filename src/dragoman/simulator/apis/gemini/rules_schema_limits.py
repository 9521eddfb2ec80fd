"""What schemas must not be: too large to be held to, or without an end."""

from collections.abc import Iterator
from typing import Any

from dragoman.simulator.apis.gemini.heard import Heard, HeardRule, field
from dragoman.simulator.apis.gemini.proto import items_of, members_of
from dragoman.simulator.apis.gemini.rules_schema import all_nodes, json_nodes, json_roots, roots
from dragoman.simulator.rule import Rule, Situation, Violation
from dragoman.wire.pointer import unescape

_MOST_STATES = 5000
_STATES = (
    "The specified schema produces a constraint that has too many states for serving. Typical causes of this error are "
    "schemas with lots of text (for example, very long property or enum names), schemas with long array length limits "
    "(especially when nested), or schemas using complex value matchers (for example, integers or numbers with "
    "minimum/maximum bounds or strings with complex formats like date-time)"
)
_HELD = frozenset({"ANY", "VALIDATED"})


def _is_held(heard: Heard) -> bool:
    """Whether the model is held to schemas while it writes."""
    config = heard.request.tool_config
    calling = config.function_calling_config if config is not None else None
    answer = heard.config.response_schema is not None or heard.config.response_json_schema is not None
    return answer or (calling is not None and calling.mode in _HELD)


def _states(heard: Heard, _: Situation) -> Iterator[Violation]:
    if not _is_held(heard):
        return
    states = sum(1 + len(node.schema.enum or []) for node in all_nodes(heard))
    for root, _path, where in json_roots(heard):
        states += sum(1 + len(items_of(node.get("enum")) or []) for node, _where in json_nodes(root, where))
    if states > _MOST_STATES:
        yield Violation(_STATES)


def _definitions(heard: Heard, _: Situation) -> Iterator[Violation]:
    for root in roots(heard):
        known = {f"#/defs/{name}" for name in root.schema.defs or {}}
        for node in all_nodes(heard):
            if not node.where.startswith(root.where):
                continue
            if node.schema.defs is not None and node.where != root.where:
                yield Violation(
                    field(f"{node.path}.defs", "only allowed at the root of a schema"), f"{node.where}/defs"
                )
            if node.schema.ref is not None and node.schema.ref not in known:
                words = f"reference to undefined schema at {node.schema.ref}"
                yield Violation(field(f"{node.path}.ref", words), f"{node.where}/ref")


def _needed(schema: Any) -> Iterator[str]:
    """Yield the references within a schema that no optional property stands before."""
    members = members_of(schema)
    for inner in items_of(schema) or []:
        yield from _needed(inner)
    if members is None:
        return
    if isinstance(members.get("$ref"), str):
        yield members["$ref"]
    required = items_of(members.get("required")) or []
    for name, inner in (members_of(members.get("properties")) or {}).items():
        if name in required:
            yield from _needed(inner)
    for word in ("items", "prefixItems", "anyOf", "oneOf", "additionalProperties"):
        yield from _needed(members.get(word))


def _target(root: Any, reference: str) -> Any:
    found = root
    for token in reference.removeprefix("#").removeprefix("/").split("/") if reference != "#" else ():
        found = (members_of(found) or {}).get(unescape(token))
    return found


def _cycle(heard: Heard, _: Situation) -> Iterator[Violation]:
    for root, path, where in json_roots(heard):
        for begin in {one["$ref"] for one, _where in json_nodes(root, "") if isinstance(one.get("$ref"), str)}:
            seen: set[str] = set()
            waiting = [begin]
            while waiting:
                for reference in _needed(_target(root, waiting.pop())):
                    if reference == begin:
                        words = f"cyclic reference {begin} is only supported within non-required properties"
                        yield Violation(field(path, words), where)
                        return
                    if reference not in seen:
                        seen.add(reference)
                        waiting.append(reference)


RULES: tuple[HeardRule, ...] = (
    Rule(
        "gemini.schema-states",
        "Schemas the model is held to (in the modes ANY and VALIDATED, or for the answer) are not too large.",
        "wire/gemini.md section 4, wire/gemini_schema.md section 2; no source for how large they may be",
        _states,
    ),
    Rule(
        "gemini.schema-defs",
        "On Vertex definitions stand at the root of a schema, and a reference leads to one of them.",
        "wire/gemini_schema.md section 2; the words are ours",
        _definitions,
    ),
    Rule(
        "gemini.json-schema-cycle",
        "A JSON schema comes back to itself only within properties that are not required.",
        "wire/gemini_schema.md section 3; the words are ours",
        _cycle,
    ),
)
