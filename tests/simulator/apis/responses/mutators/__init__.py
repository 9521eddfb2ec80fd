"""The mutators that break each rule, by the rule's name."""

from simulator.apis.responses.mutators import items, model, pairs, reasoning, request, shape, tools
from simulator.mutation import Mutate

MUTATORS: dict[str, Mutate] = {
    **items.MUTATORS,
    **model.MUTATORS,
    **pairs.MUTATORS,
    **reasoning.MUTATORS,
    **request.MUTATORS,
    **shape.MUTATORS,
    **tools.MUTATORS,
}
