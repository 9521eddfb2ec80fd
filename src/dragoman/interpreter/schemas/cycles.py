"""Find which definitions of a schema refer to each other in a circle, in time linear in the schema."""

from dragoman.interpreter.schemas.nodes import as_node, children
from dragoman.interpreter.schemas.references import References, reference_of
from dragoman.wire.pointer import escape

DEFINITIONS = ("$defs", "definitions")
IN_DEFINITIONS = tuple(f"/{keyword}/" for keyword in DEFINITIONS)


def definition_around(pointer: str) -> str:
    """Return the pointer of the root's definition that `pointer` is in; empty if it is in none."""
    return "/".join(pointer.split("/")[:3]) if pointer.startswith(IN_DEFINITIONS) else ""


def circles(root: object, references: References) -> dict[str, str]:
    """Return for each definition one that stands for its circle; definitions of one circle have the same."""
    graph = {pointer: _targets(schema, pointer, references) for pointer, schema in _definitions(root).items()}
    backwards: dict[str, set[str]] = {pointer: set() for pointer in graph}
    for pointer, targets in graph.items():
        for target in targets & graph.keys():
            backwards[target].add(pointer)
    found: dict[str, str] = {}
    for pointer in reversed(_finished(graph)):
        waiting = [pointer]
        while waiting:
            member = waiting.pop()
            if member not in found:
                found[member] = pointer
                waiting += backwards[member] - found.keys()
    return found


def _definitions(root: object) -> dict[str, object]:
    node = as_node(root) or {}
    return {
        f"/{keyword}/{escape(name)}": schema
        for keyword in DEFINITIONS
        for name, schema in (as_node(node.get(keyword)) or {}).items()
    }


def _targets(schema: object, where: str, references: References) -> set[str]:
    found: set[str] = set()
    waiting = [(schema, where)]
    while waiting:
        inner, place = waiting.pop()
        node = as_node(inner)
        if node is None:
            continue
        waiting += [(child, place + relative) for relative, child in children(node)]
        target = references.locate(reference_of(node), place)
        if target is not None:
            found.add(definition_around(target))
    return found


def _finished(graph: dict[str, set[str]]) -> list[str]:
    """Return the definitions in the order in which a walk along the references leaves them."""
    order: list[str] = []
    entered: set[str] = set()
    # The walk starts at a place that refers to all definitions and is left last.
    path = [("", iter(list(graph)))]
    while path:
        pointer, targets = path[-1]
        onward = next((target for target in targets if target not in entered), None)
        if onward is None:
            order.append(pointer)
            path.pop()
        else:
            entered.add(onward)
            path.append((onward, iter(sorted(graph[onward] & graph.keys()))))
    return order[:-1]
