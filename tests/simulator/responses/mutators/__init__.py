"""What breaks each rule, by the rule's name."""

from simulator.mutation import Mutate
from simulator.responses.mutators import items, model, pairs, reasoning, request, shape, tools

MUTATORS: dict[str, Mutate] = {
    **items.MUTATORS,
    **model.MUTATORS,
    **pairs.MUTATORS,
    **reasoning.MUTATORS,
    **request.MUTATORS,
    **shape.MUTATORS,
    **tools.MUTATORS,
}
