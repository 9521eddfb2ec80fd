"""Fill a schema so that the value validates: the best walk first, then plainer ones, then ways found by chance.

If none is valid, the schema may have no valid value (or none this finds): the best walk's value is returned as it is.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.simulator.model.filling.evidence import Evidence
from dragoman.simulator.model.filling.filling import Filling
from dragoman.simulator.model.schemas.json_values import a_list, an_object
from dragoman.simulator.model.schemas.references import Document
from dragoman.simulator.model.schemas.validity import is_valid

_TRIES = 60
_MOST_VALUES = 6000


class Filled(Struct, frozen=True):
    """A value; the required ones nobody said anything about; whether one is a whole clause; whether it is valid."""

    value: Any
    guessed: tuple[str, ...] = ()
    topical: bool = False
    valid: bool = True


def fill_arguments(document: Document, evidence: Evidence | None = None) -> Filled:
    """Fill the parameters of a tool: always an object."""
    filled = _fill(document, evidence, as_object=True)
    return filled if isinstance(filled.value, dict) else Filled({}, filled.guessed, valid=False)


def fill_output(document: Document, evidence: Evidence | None = None) -> Filled:
    """Fill the schema of an answer: any JSON value; an object if the schema does not say."""
    return _fill(document, evidence, as_object=not document.schema)


def _fill(document: Document, evidence: Evidence | None, *, as_object: bool) -> Filled:
    best: Filled | None = None
    spent = 0
    for filling in _walks(document, evidence):
        node = filling.node(document.schema)
        if as_object and node.allowed is None and node.types != ["object"]:
            node = replace(node, types=["object"])
        value = filling.value(node)
        valid = is_valid(document.raw, value) and (not as_object or isinstance(value, dict))
        filled = Filled(value, tuple(filling.guessed), filling.topical, valid)
        if filled.valid:
            return filled
        spent += filling.spent
        if spent > _MOST_VALUES:
            break
        best = best or filled
    plain = _plain(document, as_object=as_object)
    return plain or best or Filled({}, valid=False)


def _walks(document: Document, evidence: Evidence | None) -> Iterator[Filling]:
    if evidence is not None:
        yield Filling(document, evidence.afresh())
        yield Filling(document, evidence.afresh(), optional=False)
    yield Filling(document)
    for seed in range(_TRIES):
        chance = Random(seed)  # noqa: S311  it shall come out the same each time
        told = evidence.afresh() if evidence is not None and seed % 2 else None
        yield Filling(document, told, chance, optional=seed % 3 == 0)


def _plain(document: Document, *, as_object: bool) -> Filled | None:
    """Try what is simplest, and what the schema itself shows."""
    schema = an_object(document.schema)
    shown = [schema.get("default"), *a_list(schema.get("examples"))]
    simple: list[Any] = [{}, *shown] if as_object else [{}, *shown, None, [], "", 0, True, 1.5]
    for value in simple:
        if is_valid(document.raw, value) and (isinstance(value, dict) or not as_object):
            return Filled(value)
    return None
