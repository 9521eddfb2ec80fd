"""The mutators that break each rule, by the rule's name."""

from simulator.apis.chat.mutators import media, messages, models, schemas, settings, shape, tools
from simulator.mutation import Mutate

MUTATORS: dict[str, Mutate] = {
    **media.MUTATORS,
    **messages.MUTATORS,
    **models.MUTATORS,
    **schemas.MUTATORS,
    **settings.MUTATORS,
    **shape.MUTATORS,
    **tools.MUTATORS,
}
