"""All rules, in the order in which they are looked at: limits, settings, tools, media, turns, thoughts."""

from dragoman.simulator.apis.messages import (
    rules_betas,
    rules_cache,
    rules_choice,
    rules_limits,
    rules_media,
    rules_pairing,
    rules_platform,
    rules_sampling,
    rules_schema,
    rules_settings,
    rules_thinking,
    rules_tools,
    rules_turns,
)
from dragoman.simulator.apis.messages.reading import Reading
from dragoman.simulator.apis.messages.shape_notes import NOTES
from dragoman.simulator.rule import Rule
from dragoman.simulator.signatures import Signer

_RULES: tuple[Rule[Reading], ...] = (
    *rules_limits.RULES,
    *rules_betas.RULES,
    *rules_settings.RULES,
    *rules_sampling.RULES,
    *rules_choice.RULES,
    *rules_platform.RULES,
    *rules_tools.RULES,
    *rules_schema.RULES,
    *rules_cache.RULES,
    *rules_media.RULES,
    *rules_turns.RULES,
    *rules_pairing.RULES,
    *rules_turns.ENDING,
    *rules_thinking.STATIC,
)


def rules_for(signer: Signer) -> tuple[Rule[Reading], ...]:
    """Return all rules; those about signatures know who signs."""
    return (*_RULES, *rules_thinking.signature_rules(signer))


def notes() -> tuple[Rule[Reading], ...]:
    """List all rules, those of shape first."""
    return (*NOTES, *rules_for(Signer()))
