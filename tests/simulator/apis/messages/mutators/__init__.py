"""The mutators that break each rule, by the rule's name."""

from simulator.apis.messages.mutators import (
    betas,
    cache,
    choice,
    limits,
    media,
    pairing,
    platform,
    sampling,
    schema,
    settings,
    shape,
    thinking,
    tools,
    turns,
)
from simulator.mutation import Mutate

MUTATORS: dict[str, Mutate] = {
    **betas.MUTATORS,
    **cache.MUTATORS,
    **choice.MUTATORS,
    **limits.MUTATORS,
    **media.MUTATORS,
    **pairing.MUTATORS,
    **platform.MUTATORS,
    **sampling.MUTATORS,
    **schema.MUTATORS,
    **settings.MUTATORS,
    **shape.MUTATORS,
    **thinking.MUTATORS,
    **tools.MUTATORS,
    **turns.MUTATORS,
}
