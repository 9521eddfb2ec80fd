"""Fill a schema with a value: one walk over its nodes, with three degrees of need.

- NAMED: only if the prompt speaks of it by name
- FITTING: if the prompt has a fact of its kind
- NEEDED: in any case

A walk without `chance` takes the best of each choice; with it, it takes any, which is how a way is found when the best
one does not lead to a valid value.
"""

from random import Random
from typing import Any

from dragoman.simulator.model.filling.arrays import fill_array
from dragoman.simulator.model.filling.evidence import NO_LABEL, Evidence, Label
from dragoman.simulator.model.filling.need import ABSENT, FITTING, NAMED, NEEDED, Need
from dragoman.simulator.model.filling.objects import fill_object
from dragoman.simulator.model.filling.scalars import fill_number, fill_string
from dragoman.simulator.model.schemas.json_values import a_list, an_object, same
from dragoman.simulator.model.schemas.node import TYPES, Node, narrowed, read_node, types_of
from dragoman.simulator.model.schemas.references import REFERENCES, Document

_DEEPEST = 24
_SHALLOW = 3
_DEEP = 5
"""From here on a choice is made for what ends soonest."""
_MOST_VALUES = 1500
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Filling:
    """One walk. `guessed` names the needed values without evidence; `topical` says that one is all the clause says."""

    def __init__(
        self,
        document: Document,
        evidence: Evidence | None = None,
        chance: Random | None = None,
        *,
        optional: bool = True,
    ) -> None:
        self.document = document
        self.evidence = evidence
        self.chance = chance
        self.optional = optional
        self.guessed: list[str] = []
        self.topical = False
        self.spent = 0
        self._left = _MOST_VALUES if chance is None else _MOST_VALUES // 4
        self._depth = 0

    def is_shallow(self) -> bool:
        """Whether there is room for more than is needed."""
        return self._depth <= _SHALLOW

    def node(self, schema: Any) -> Node:
        """Read one place of the schema."""
        return read_node(self.document, schema, self.choose)

    def value(self, node: Node, parameter: Label = NO_LABEL, need: Need = NEEDED) -> Any:
        """Return a value for a node, or `ABSENT` where the need is not so great."""
        self._left -= 1
        self.spent += 1
        known = self._known(node, parameter, need)
        if known is not ABSENT:
            return known
        if node.allowed is not None:
            return self._allowed(node, parameter, need)
        kind = self.kind_of(node)
        if kind in {"object", "array"} and (self._left < 0 or self._depth > _DEEPEST):
            return ABSENT if need != NEEDED else {} if kind == "object" else []
        self._depth += 1
        try:
            return self._of_kind(kind, node, parameter, need)
        finally:
            self._depth -= 1

    def _of_kind(self, kind: str, node: Node, parameter: Label, need: Need) -> Any:
        match kind:
            case "object":
                return fill_object(self, node) if need == NEEDED or self._is_mentioned(parameter, need) else ABSENT
            case "array":
                return fill_array(self, node, parameter, need)
            case "string":
                return fill_string(self, node, parameter, need)
            case "integer" | "number":
                return fill_number(self, node, parameter, need, whole=kind == "integer")
            case "boolean":
                return self._boolean(node, parameter, need)
            case _:
                return None if need == NEEDED else ABSENT

    def kind_of(self, node: Node) -> str:
        """Decide on a type: the first that is named, or the one the other keywords speak of."""
        types = node.types or _implied(node)
        if self.chance is not None:
            return self.chance.choice(types or TYPES[:6])
        useful = [name for name in types if name != "null"] or types
        if not useful:
            return "string"
        if len(useful) > 1 and self.evidence is not None and self._depth <= _DEEP:
            numbered = [name for name in useful if name in {"integer", "number"}]
            if (
                numbered
                and any(fact.kind == "number" for fact in self.evidence.clause.facts)
                and "string" not in useful
            ):
                return numbered[0]
        return useful[0] if self._depth <= _DEEP else useful[-1]

    def choose(self, branches: list[Any], node: Node) -> Any:
        """Choose one of several alternatives."""
        possible = [branch for branch in branches if _is_possible(branch, node)] or branches
        if self.chance is not None:
            return self.chance.choice(possible)
        useful = [branch for branch in possible if types_of(branch) != ["null"]] or possible
        if self._depth > 1 and len(useful) < len(possible) and all("$ref" in an_object(branch) for branch in useful):
            return next(branch for branch in possible if branch not in useful)
        if self._depth > _DEEP:
            return min(possible, key=_size)
        evidence = self.evidence
        if evidence is None or len(useful) == 1:
            return useful[0]
        return max(useful, key=lambda branch: _constants_said(self.document, branch, evidence))

    def _known(self, node: Node, parameter: Label, need: Need) -> Any:
        """What the results of tools say under this very name."""
        evidence = self.evidence
        if evidence is None or not parameter.name or (need == NEEDED) == evidence.known_first:
            return ABSENT
        value = evidence.known.get(parameter.name, ABSENT)
        if value is ABSENT or not _is_of(value, node):
            return ABSENT
        return value

    def _allowed(self, node: Node, parameter: Label, need: Need) -> Any:
        options = [
            option
            for option in node.allowed or []
            if _is_of(option, node) and not any(same(option, denied) for denied in node.forbidden)
        ]
        if not options:
            # People write the words a list may hold beside the list's type; no value is valid, but the intent is plain.
            return ABSENT if need != NEEDED else (node.allowed or [])[:1] if node.types == ["array"] else None
        if need != NEEDED:
            evidence = self.evidence
            if evidence is None or (need == NAMED and len(options) == 1):
                return ABSENT
            said = [option for option in options if evidence.says(option)]
            return min(said, key=lambda option: (evidence.place_of(option), -len(str(option)))) if said else ABSENT
        if self.chance is not None:
            return self.chance.choice(options)
        if len(options) > 1:
            self.guessed.append(parameter.name)
        for suggestion in node.suggestions:
            if any(same(suggestion, option) for option in options):
                return suggestion
        return next((option for option in options if option is not None), None)

    def _boolean(self, node: Node, parameter: Label, need: Need) -> Any:
        evidence = self.evidence
        said = None
        if evidence is not None and need == NAMED and evidence.is_mentioned(parameter):
            said = not evidence.is_denied(parameter)
        if said is None and need != NEEDED:
            return ABSENT
        if said is None and self.chance is not None:
            said = self.chance.random() < 0.5
        if said is None:
            said = next((value for value in node.suggestions if isinstance(value, bool)), False)
        return not said if any(same(said, denied) for denied in node.forbidden) else said

    def _is_mentioned(self, parameter: Label, need: Need) -> bool:
        return self.evidence is not None and need == FITTING and self.evidence.is_mentioned(parameter)


def _implied(node: Node) -> list[str]:
    """Types that the keywords of a node without type speak of."""
    if node.properties or node.required or node.patterned or node.additional or node.names or node.least_properties:
        return ["object"]
    if node.prefix or node.items or node.contains or node.least_items or node.unique:
        return ["array"]
    if node.patterns or node.format or node.least_length or node.most_length is not None:
        return ["string"]
    bounds = (node.minimum, node.maximum, node.above, node.below)
    return ["number"] if node.multiples or any(bound is not None for bound in bounds) else []


def _is_of(value: Any, node: Node) -> bool:
    """Whether a value is of one of a node's types."""
    for name in node.types or TYPES:
        whole = name == "integer" and isinstance(value, float) and value.is_integer()
        if (isinstance(value, _PYTHON_TYPES[name]) or whole) and (isinstance(value, bool) == (name == "boolean")):
            return True
    return False


def _is_possible(branch: Any, node: Node) -> bool:
    return branch is not False and narrowed(node.types, types_of(branch)) != []


def _size(branch: Any) -> tuple[bool, int]:
    told = an_object(branch)
    goes_on = any(key in told for key in REFERENCES) or bool(a_list(told.get("required")))
    return goes_on, len(an_object(told.get("properties"))) + ("items" in told)


def _constants_said(document: Document, branch: Any, evidence: Evidence) -> int:
    """How many of a branch's constants the prompt says: the value that tells the branches apart is often one."""
    told = an_object(branch)
    if "$ref" in told:
        told = an_object(document.resolve(told["$ref"]))
    score = 0
    for name, schema in (("", told), *an_object(told.get("properties")).items()):
        inner = an_object(schema)
        constants = [inner["const"]] if "const" in inner else a_list(inner.get("enum"))
        score += 2 * any(evidence.says(constant) for constant in constants[:50])
        score += bool(name) and name.lower() in evidence.clause.stems
    return score
