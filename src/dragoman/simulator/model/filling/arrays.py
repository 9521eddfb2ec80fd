"""Fill an array: with all facts of a kind if the prompt has them, else with as few items as may be."""

from typing import TYPE_CHECKING, Any

from dragoman.simulator.model.filling.evidence import STRONG, Evidence, Label, label
from dragoman.simulator.model.filling.need import ABSENT, FITTING, NAMED, NEEDED, Need
from dragoman.simulator.model.filling.scalars import fits_number, fits_text
from dragoman.simulator.model.language.facts import Fact, FactKind
from dragoman.simulator.model.schemas.json_values import same
from dragoman.simulator.model.schemas.node import Node

if TYPE_CHECKING:
    from dragoman.simulator.model.filling.filling import Filling

_MOST_ITEMS = 64
_TRIES = 12
_OF_PLACES: tuple[FactKind, ...] = ("name", "phrase", "opening", "quoted")
_LISTED: dict[str, tuple[FactKind, ...]] = {
    "url": ("url", "host"),
    "email": ("email",),
    "path": ("path",),
    "date": ("date", "day"),
    "place": _OF_PLACES,
}
_ANYTHING: tuple[FactKind, ...] = ("quoted", "name", "email", "url", "path", "id", "uuid", "date")


def fill_array(filling: "Filling", node: Node, parameter: Label, need: Need) -> Any:
    """Return an array for a node."""
    items: list[Any] = []
    if not node.prefix and filling.evidence is not None:
        items = _listed(filling, node, parameter, need)
    if need != NEEDED:
        return items or ABSENT
    most = _MOST_ITEMS if node.most_items is None else min(node.most_items, _MOST_ITEMS)
    least = min(max(node.least_items, min(len(items), most)), _MOST_ITEMS)
    if filling.chance is not None and least < most:
        least = filling.chance.randint(least, min(most, least + 2))
    items = _with_contained(filling, node, items[:most])
    while len(items) < least:
        items.append(_item(filling, node, parameter, items))
    evidence = filling.evidence
    if not items and evidence is not None and not evidence.known_first and node.items and most and parameter.name:
        # An empty list says nothing; one item is what somebody who asks for a list wants at least.
        inner = filling.node(_schema_at(node, 0))
        if inner.types in (["object"], ["string"]):
            items.append(_item(filling, node, parameter, items))
    return items


def _may_list(evidence: Evidence, parameter: Label, need: Need) -> bool:
    if need == NAMED:
        return evidence.is_mentioned(parameter)
    return need == NEEDED or (need == FITTING and parameter.kind in STRONG)


def _listed(filling: "Filling", node: Node, parameter: Label, need: Need) -> list[Any]:
    evidence = filling.evidence
    inner = filling.node(_schema_at(node, 0))
    parameter = label(parameter.name, inner.format)
    if evidence is None or inner.never or not _may_list(evidence, parameter, need):
        return []
    if inner.allowed is not None:
        return [option for option in inner.allowed if evidence.says(option)]
    found: list[Fact] = []
    if inner.types is None or "string" in inner.types:
        found = evidence.all_of(_LISTED.get(parameter.kind, _ANYTHING))
        values: list[Any] = [str(fact.value) for fact in found if fits_text(inner, str(fact.value))]
    elif "integer" in inner.types or "number" in inner.types:
        found = evidence.all_of(("number",))
        whole = "number" not in inner.types
        values = [fact.value for fact in found if fits_number(inner, fact.value, whole=whole)]
    else:
        return []
    return list(dict.fromkeys(values)) if node.unique else values


def _with_contained(filling: "Filling", node: Node, items: list[Any]) -> list[Any]:
    """Put what must be contained where the array begins, after what has a fixed place."""
    items = items or [filling.value(filling.node(schema)) for schema in node.prefix[: node.least_items]]
    for schema, least in node.contains:
        for _ in range(min(least, _MOST_ITEMS)):
            both = {"allOf": [schema, _schema_at(node, len(items))]}
            items.append(_distinct(filling, node, filling.node(both), Label("", (), ""), items))
    return items


def _item(filling: "Filling", node: Node, parameter: Label, items: list[Any]) -> Any:
    return _distinct(filling, node, filling.node(_schema_at(node, len(items))), parameter, items)


def _distinct(filling: "Filling", array: Node, node: Node, parameter: Label, items: list[Any]) -> Any:
    """Return an item that is not there yet, if all must differ."""
    value = filling.value(node, parameter)
    if not array.unique or not any(same(value, item) for item in items):
        return value
    for option in node.allowed or ():
        if not any(same(option, item) for item in items):
            return option
    for number in range(2, _TRIES):
        changed = value
        if isinstance(value, str):
            changed = f"{value} {number}"
            if not fits_text(node, changed):
                changed = value
        elif isinstance(value, int | float):
            changed = not value if isinstance(value, bool) else value + (number - 1) * (node.multiples or [1])[0]
        if not any(same(changed, item) for item in items):
            return changed
        value = filling.value(node, parameter) if filling.chance is not None else value
    return value


def _schema_at(node: Node, place: int) -> Any:
    if place < len(node.prefix):
        return node.prefix[place]
    return node.items[0] if len(node.items) == 1 else {"allOf": node.items} if node.items else True
