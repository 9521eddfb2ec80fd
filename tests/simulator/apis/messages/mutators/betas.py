"""Mutators for the rules about betas: each yields bodies that break its rule."""

from collections.abc import Iterator
from random import Random

from dragoman.simulator.apis.rule import Json
from simulator.apis.messages.changes import change, with_tool
from simulator.mutation import Mutate


def _without_beta(body: Json, _: Random) -> Iterator[Json]:
    """Vertex also accepts betas in the body; elsewhere they are in a header, which no change of a body breaks."""
    if "anthropic_version" not in body:
        return
    result = change(body, anthropic_beta=["files-api-2025-04-14"])
    yield change(result, context_management={"edits": [{"type": "clear_thinking_20251015"}]})
    yield change(result, output_config={"task_budget": {"type": "tokens", "total": 20_000}})
    yield change(result, thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}})
    yield change(result, thinking={"type": "adaptive", "display": "updates"})
    screen = {"type": "computer_20251124", "name": "computer", "display_height_px": 600, "display_width_px": 800}
    yield with_tool(result, screen)
    yield with_tool(result, {"type": "advisor_20260301", "name": "advisor", "model": "claude-opus-5-5"})
    instructions: tuple[Json, ...] = (
        {"content": "Be brief.", "clear_at": "next_user_message"},
        {"content": "Be brief.", "output_config": {"effort": "low"}},
        {"content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}}]},
    )
    for instruction in instructions:
        yield change(result, messages=[*body["messages"], {"role": "system", **instruction}])


MUTATORS: dict[str, Mutate] = {
    "messages.beta-header": _without_beta,
}
