"""Fill a schema with a valid value: with what the prompt mentions, else with the simplest value that is allowed."""

from typing import Any

from msgspec import Struct

from dragoman.simulator.apis.rule import Json
from dragoman.simulator.model.prompt import Evidence, LookupStage, ParameterLabel, read_label
from dragoman.simulator.model.schema import TYPES, Schema, as_list, as_object, common_types, encode, is_valid
from dragoman.simulator.model.values import generate_samples

_MAX_DEPTH = 24
_MAX_VALUES = 800
_MAX_ITEMS = 64
_SCALAR_KEYWORDS = (
    "type", "enum", "not", "allOf", "minLength", "maxLength", "pattern", "format", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
)  # fmt: skip
_KEYWORDS_OF_TYPE = (
    ("object", {"properties", "required", "additionalProperties", "minProperties"}),
    ("array", {"items", "prefixItems", "minItems"}),
    ("string", {"pattern", "format", "minLength", "maxLength"}),
    ("number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
)


class FilledValue(Struct, frozen=True):
    """A value, the required parameters that the prompt does not mention, and whether the value is valid."""

    value: Any
    guessed: tuple[str, ...] = ()
    valid: bool = True


def fill(schema: Schema, evidence: Evidence, *, require_object: bool = True) -> FilledValue:
    """Fill a schema: with the prompt, else without optional parameters, else without the prompt.

    If no attempt is valid, the value of the first is returned: the schema may allow no value, or none that is found.
    """
    tried: list[FilledValue] = []
    for usable, optional in ((evidence, True), (evidence, False), (None, False)):
        evidence.used.clear()
        filler = _Filler(schema, usable, optional=optional)
        place = filler.merge(schema.root)
        value = filler.fill_place({**place, "type": ["object"]} if require_object else place, read_label(""))
        fits = isinstance(value, dict) or not require_object
        tried.append(FilledValue(value if fits else {}, tuple(filler.guessed), fits and schema.is_valid(value)))
        if tried[-1].valid:
            return tried[-1]
    return FilledValue({}) if schema.is_valid({}) else tried[0]


class _Filler:
    """One attempt to fill a schema. A place is a subschema with its references and branches merged."""

    def __init__(self, schema: Schema, evidence: Evidence | None, *, optional: bool) -> None:
        self.guessed: list[str] = []
        self._schema = schema
        self._evidence = evidence
        self._optional = optional
        self._values_left = _MAX_VALUES
        self._depth = 0

    def merge(self, place: Any) -> Json:
        """Return a subschema with its references and branches merged."""
        return self._schema.merge(place, self._choose_branch)

    def fill_place(self, place: Json, label: ParameterLabel) -> Any:
        """Return a value for a place, a guessed one if the prompt has none."""
        kind = _type_of(place)
        if kind in {"object", "array"} and "enum" not in place:
            return self._fill_nested(kind, place, label)
        value = self._read_from_prompt(place, label, "required")
        if value is None and self._evidence is not None and label.kind in {"text", ""}:
            value = _convert(place, kind, self._evidence.find_topic() or None)
        if value is not None:
            return value
        if label.name:
            self.guessed.append(label.name)
        sampled = (value for value in generate_samples(kind, place, label.kind) if value is not None)
        return next((value for value in sampled if _accepts(place, value)), None)

    def _fill_nested(self, kind: str, place: Json, label: ParameterLabel) -> Any:
        self._values_left -= 1
        if self._values_left < 0 or self._depth > _MAX_DEPTH:
            return {} if kind == "object" else []
        self._depth += 1
        value = self._fill_object(place) if kind == "object" else self._fill_array(place, label)
        self._depth -= 1
        return value

    def _choose_branch(self, branches: list[Any], merged: Json) -> Any:
        """Choose a branch of `anyOf`: the first that is not only null; deeper down, one without a reference."""
        types = merged.get("type", TYPES)
        possible = [one for one in branches if common_types(types, as_object(one).get("type", types))] or branches
        ending = [one for one in possible if "$ref" not in as_object(one)] if self._depth > 1 else []
        return next((one for one in ending or possible if as_object(one).get("type") != ["null"]), possible[-1])

    def _fill_object(self, place: Json) -> Json:
        properties: Json = place.get("properties", {})
        required: list[str] = place.get("required", [])
        optional = [name for name in properties if name not in required]
        others = place.get("additionalProperties", True)
        names = [*required, *(optional if self._optional else ())]
        places = {name: self.merge(properties.get(name, others)) for name in names}
        labels = {name: read_label(name, inner.get("format", "")) for name, inner in places.items()}
        values = {name: self._read_from_prompt(inner, labels[name], "named") for name, inner in places.items()}
        for name in [name for name in names if values[name] is None]:
            if name in required:
                values[name] = self.fill_place(places[name], labels[name])
            else:
                values[name] = self._read_from_prompt(places[name], labels[name], "optional")
        chosen = {name: values[name] for name in names if name in required or values[name] is not None}
        missing = min(max(0, place.get("minProperties", 0) - len(chosen)), _MAX_ITEMS)
        invented = (f"property_{number}" for number in range(missing))
        for name in [*(name for name in optional if name not in chosen), *invented][:missing]:
            chosen[name] = self.fill_place(self.merge(properties.get(name, others)), read_label(name))
        return {name: chosen[name] for name in [*properties, *chosen] if name in chosen}

    def _fill_array(self, place: Json, label: ParameterLabel) -> list[Any]:
        items = self._read_list_from_prompt(place, label, "required")
        if not items:
            items = [self.fill_place(self.merge(inner), label) for inner in as_list(place.get("prefixItems"))]
        fewest = min(place.get("minItems", 0), _MAX_ITEMS)
        inner = self.merge(place.get("items", True)) if len(items) < fewest else {}
        while len(items) < fewest:
            items.append(self._build_distinct_item(inner, label, items if place.get("uniqueItems") is True else []))
        return items[: place.get("maxItems", _MAX_ITEMS)]

    def _build_distinct_item(self, place: Json, label: ParameterLabel, used: list[Any]) -> Any:
        """Return an item that is not in `used`, if there is one."""
        value = self.fill_place(place, label)
        numbers = range(1, _MAX_ITEMS)
        others = (f"{value} {number}" if isinstance(value, str) else number for number in numbers)
        free = (one for one in (value, *place.get("enum", ()), *others) if one not in used and _accepts(place, one))
        return next(free, value)

    def _read_list_from_prompt(self, place: Json, label: ParameterLabel, stage: LookupStage) -> list[Any]:
        """Return everything that the prompt lists for an array."""
        evidence = self._evidence
        if evidence is None or "prefixItems" in place:
            return []
        inner = self.merge(place.get("items", True))
        if "enum" in inner:
            return [option for option in inner["enum"] if evidence.find_position(option) is not None]
        label = read_label(label.name, inner.get("format", ""))
        vague = stage != "required" and label.kind in {"", "text", "place"}
        return [] if vague else evidence.find_all(label.mention_kinds, lambda value: _accepts(inner, value))

    def _read_from_prompt(self, place: Json, label: ParameterLabel, stage: LookupStage) -> Any:
        """Return the prompt's value for a parameter, or None."""
        evidence, kind = self._evidence, _type_of(place)
        if evidence is None:
            return None
        if "enum" in place:
            named = [option for option in place["enum"] if evidence.find_position(option) is not None]
            return min(named, key=lambda option: (evidence.find_position(option), -len(str(option))), default=None)
        if kind == "array" and stage == "optional":
            return self._read_list_from_prompt(place, label, stage) or None
        if kind not in {"string", "integer", "number"}:
            return None

        def accepts(value: Any) -> bool:
            return _convert(place, kind, value) is not None

        if kind == "string":
            return _convert(place, kind, evidence.find(label, label.mention_kinds, accepts, stage))
        return evidence.find(label, ("number",), accepts, stage) if stage != "optional" else None


def _type_of(place: Json) -> str:
    """Return the first type that is not null; without `type`, the one that the keywords imply."""
    types: list[str] = place.get("type") or [
        name for name, keywords in _KEYWORDS_OF_TYPE if not keywords.isdisjoint(place)
    ]
    return next((name for name in types if name != "null"), "null" if types else "string")


def _accepts(place: Json, value: Any) -> bool:
    """Return whether a value is valid at a place, as far as its own keywords decide that."""
    return is_valid(encode({key: place[key] for key in _SCALAR_KEYWORDS if key in place}), value)


def _convert(place: Json, kind: str, value: Any) -> Any:
    """Return a mention converted to what a place accepts, or None; a date becomes midnight for a date-time."""
    if kind != "string" or value is None:
        return value if isinstance(value, int | float) and _accepts(place, value) else None
    text = str(value)
    forms = [text]
    if place.get("format") in {"date", "date-time", "time"}:
        forms += [f"{text}T00:00:00Z", f"{text}:00Z", f"{text}Z", text[:10]]
    return next((one for one in forms if _accepts(place, one)), None)
