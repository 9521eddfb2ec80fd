"""Fill an object: what the prompt names first, then what fits, then what is required."""

from typing import TYPE_CHECKING, Any

from dragoman.simulator.model.filling.evidence import QUOTABLE, Evidence, label
from dragoman.simulator.model.filling.need import ABSENT, FITTING, NAMED, NEEDED
from dragoman.simulator.model.filling.scalars import fits_text
from dragoman.simulator.model.schemas.node import Node, absorb, copied
from dragoman.simulator.model.schemas.patterns import written
from dragoman.simulator.model.schemas.validity import fits_pattern
from dragoman.simulator.rule import Json

if TYPE_CHECKING:
    from random import Random

    from dragoman.simulator.model.filling.filling import Filling

_MOST_PROPERTIES = 200
_MOST_INVENTED = 50
_MOST_ROUNDS = 4
_MOST_TRIED = 8
_LIKELY, _UNLIKELY = 0.3, 0.1


def fill_object(filling: "Filling", node: Node) -> Json:
    """Return an object for a node."""
    making = _Making(filling, node)
    if filling.evidence is not None:
        making.from_evidence()
    for _ in range(_MOST_ROUNDS):
        making.require_all()
        if not making.follow_dependents():
            break
    if filling.evidence is not None and filling.optional:
        making.from_quotations(filling.evidence)
    if filling.chance is not None and filling.is_shallow():
        making.at_random(filling.chance)
    making.reach_least()
    return making.in_order()


class _Making:
    """An object that is being made."""

    def __init__(self, filling: "Filling", node: Node) -> None:
        self._filling = filling
        self._node = copied(node) if node.dependents or node.dependent_schemas else node
        self._values: Json = {}
        self._nodes: dict[str, Node] = {}

    def from_evidence(self) -> None:
        """Take what the prompt names, then what fits; the required ones come first."""
        node = self._node
        wanted = [name for name in node.required if name in node.properties]
        if self._filling.optional:
            wanted += [name for name in node.properties if name not in node.required]
        for need in (NAMED, FITTING):
            for name in wanted[:_MOST_PROPERTIES]:
                if name in self._values or name in node.unwanted:
                    continue
                value = self._filling.value(self._node_of(name), label(name), need)
                if value is not ABSENT and not self._is_full(name):
                    self._values[name] = value

    def from_quotations(self, evidence: Evidence) -> None:
        """Put what was quoted, and nothing else has taken, where a name or a text may stand."""
        node = self._node
        for name in [name for name in node.properties if name not in self._values and name not in node.unwanted]:
            inner = self._node_of(name)
            plain = inner.types == ["string"] and inner.allowed is None and not inner.format
            if not plain or QUOTABLE.isdisjoint(label(name).stems[-1:]) or self._is_full(name):
                continue
            fact = evidence.of_kind("quoted", lambda fact, inner=inner: fits_text(inner, str(fact.value)))
            if fact is not None:
                self._values[name] = str(fact.value)

    def require_all(self) -> None:
        """Fill what must be there."""
        for name in self._node.required:
            self._require(name)

    def _require(self, name: str) -> None:
        if name not in self._values:
            self._values[name] = self._filling.value(self._node_of(name), label(name), NEEDED)

    def follow_dependents(self) -> bool:
        """Whether something that is there asks for more."""
        node, more = self._node, False
        for name, needs in node.dependents.items():
            if name in self._values:
                missing = [need for need in needs if need not in self._values]
                node.required.extend(need for need in missing if need not in node.required)
                more = more or bool(missing)
        for name in [name for name in node.dependent_schemas if name in self._values]:
            absorb(node, self._filling.document, node.dependent_schemas.pop(name), self._filling.choose)
            self._nodes.clear()
            more = True
        return more

    def at_random(self, chance: "Random") -> None:
        """Add a few of the properties that need not be there: what is denied may be denied because of one of them."""
        for name in list(self._node.properties)[:_MOST_TRIED]:
            if chance.random() < _LIKELY and name not in self._node.unwanted and not self._is_full(name):
                self._require(name)
        if chance.random() < _UNLIKELY and False not in self._node.additional and not self._is_full(""):
            self._require(self._invented(1))

    def reach_least(self) -> None:
        """Add properties until there are enough of them."""
        node = self._node
        for name in node.properties:
            if len(self._values) >= node.least_properties:
                return
            if name not in self._values and name not in node.unwanted and not self._node_of(name).never:
                self._require(name)
        for number in range(1, _MOST_INVENTED):
            if len(self._values) >= node.least_properties:
                return
            self._require(self._invented(number))

    def in_order(self) -> Json:
        """Return the values as the schema lists them."""
        order = {name: place for place, name in enumerate(self._node.properties)}
        return dict(sorted(self._values.items(), key=lambda item: order.get(item[0], len(order))))

    def _is_full(self, name: str) -> bool:
        """Whether the room that is left is for the required ones."""
        most = self._node.most_properties
        if most is None or name in self._node.required:
            return False
        missing = sum(1 for other in self._node.required if other not in self._values)
        return len(self._values) + missing >= most

    def _node_of(self, name: str) -> Node:
        if name not in self._nodes:
            self._nodes[name] = self._filling.node(self._schema_of(name))
        return self._nodes[name]

    def _schema_of(self, name: str) -> Any:
        node = self._node
        schemas = list(node.properties.get(name, ()))
        schemas += [schema for pattern, schema in node.patterned if fits_pattern(pattern, name)]
        if not schemas:
            schemas = node.additional
        return schemas[0] if len(schemas) == 1 else {"allOf": schemas} if schemas else True

    def _invented(self, number: int) -> str:
        """Think of a name for a property that has none."""
        node = self._node
        names = self._filling.node({"allOf": node.names}) if node.names else Node()
        closed = any(schema is False for schema in node.additional)
        candidates = [str(option) for option in names.allowed or []]
        if closed and node.patterned:
            candidates += [written(pattern, chance=self._filling.chance) for pattern, _ in node.patterned]
        if names.patterns:
            candidates.append(written(names.patterns[0], max(number, names.least_length), self._filling.chance))
        candidates.append(f"property_{number}"[: names.most_length].ljust(names.least_length, "x"))
        return next((name for name in candidates if name not in self._values), f"property_{number}")
