"""The expected losses of each cell of the matrix, by hand: a run must have exactly these, and the ignored ones.

A loss is written as in `x-dragoman-losses`. A cell that is not here loses nothing of its scenario.
"""

import re

Losses = tuple[str, ...]

_UNSHOWN = "the target has no setting to show thinking"
_AS_TEXT = 'sent as text: "Error: …"'
_BEHIND = "moved out of the tool result, to a part after it"

_DECLARED = "approximated /tools/0: declared as a function with the documented parameters"
_UNMARKED = "dropped /messages/0/content/0/cache_control: the target has no cache marks"
_REASONING: dict[tuple[str, str], Losses] = {
    ("responses", "chat"): (f"dropped /reasoning/summary: {_UNSHOWN}",),
    ("messages", "chat"): (
        "approximated /thinking/type: how much to think is left to the model",
        f"dropped /thinking/display: {_UNSHOWN}",
    ),
    ("messages", "responses"): ("approximated /thinking/type: how much to think is left to the model",),
    ("gemini", "chat"): (f"dropped /generationConfig/thinkingConfig/include_thoughts: {_UNSHOWN}",),
}
"""What a request for reasoning loses, by client and the upstream's dialect."""
_LOSSES: dict[tuple[str, str, str], Losses] = {
    ("failed result", "messages", "chat"): (f"approximated /messages/2/content/0/is_error: {_AS_TEXT}",),
    ("failed result", "messages", "responses"): (f"approximated /messages/2/content/0/is_error: {_AS_TEXT}",),
    ("failed result", "gemini", "chat"): (f"approximated /contents/2/parts/0: {_AS_TEXT}",),
    ("failed result", "gemini", "responses"): (f"approximated /contents/2/parts/0: {_AS_TEXT}",),
    ("image in result", "responses", "chat"): (f"approximated /input/2/output/1: {_BEHIND}",),
    ("image in result", "messages", "chat"): (f"approximated /messages/2/content/0/content/1: {_BEHIND}",),
    ("image in result", "gemini", "chat"): (f"approximated /contents/2/parts/0/functionResponse/parts/0: {_BEHIND}",),
    **{
        (scenario, client, dialect): losses
        for scenario in ("reasoning + call", "reasoning across tool calls")
        for (client, dialect), losses in _REASONING.items()
    },
    ("prompt caching", "messages", "chat"): (_UNMARKED,),
    ("prompt caching", "messages", "responses"): (_UNMARKED,),
    ("prompt caching", "messages", "gemini"): (_UNMARKED,),
    ("vendor tool run by the client", "messages", "chat"): (_DECLARED,),
    ("vendor tool run by the client", "messages", "responses"): (_DECLARED,),
    ("vendor tool run by the client", "messages", "gemini"): (_DECLARED,),
    ("vendor tool run by the client", "responses", "chat"): (_DECLARED,),
    ("vendor tool run by the client", "responses", "messages"): (_DECLARED,),
    ("vendor tool run by the client", "responses", "gemini"): (_DECLARED,),
}
"""By scenario, client and the upstream's dialect."""

WORDLESS: dict[tuple[str, str], str] = {
    ("failed result", "chat"): "a client of this dialect marks a failed result in its text",
    ("failed result", "responses"): "a client of this dialect marks a failed result in its text",
    ("image in result", "chat"): "a client of this dialect sends the image in a message after the result",
    ("reasoning + call", "chat"): "a client of this dialect sets the reasoning effort, and does not get its text",
    (
        "reasoning across tool calls",
        "chat",
    ): "a client of this dialect sets the reasoning effort, and does not get its text",
}
"""What a client's own dialect has no word for, and what it does instead: nothing is lost on the way."""

UNREGARDED = {
    r"/(completed_at|createTime|traceId): not known to the client's dialect": ("time, place and method of a reply"),
    r"/tool_usage(?:/image_gen.*)?: not known to the client's dialect": "counts of OpenAI's own tools",
    r"/output/\d+/id: not known to the client's dialect": "ids of items other than calls",
    r"/(usage|usageMetadata)/.*: the client's dialect has no such count": "counts other than input and output tokens",
    r"/input/\d+/id: not known to the target": "the same ids, when Responses clients send them back",
    r"/messages/\d+/tool_calls/\d+/index: not known to the target": "an index that OpenAI's SDK leaves in its history",
    r"/(stream_options/include_usage|include/0|store): not known to the target": (
        "options of the reply that the gateway applies itself"
    ),
}
"""Losses that happen in any scenario, and what they are."""
_UNREGARDED = re.compile("|".join(f"dropped {pattern}" for pattern in UNREGARDED))


def build_expected(scenario: str, client: str, dialect: str) -> Losses:
    """Return what a cell loses of its scenario."""
    return _LOSSES.get((scenario, client, dialect), ())


def select_relevant(losses: Losses) -> Losses:
    """Return the losses that matter to a scenario, each once."""
    return tuple(dict.fromkeys(loss for loss in losses if _UNREGARDED.fullmatch(loss) is None))


NOTES: dict[str, int] = {
    loss: number for number, loss in enumerate(dict.fromkeys(loss for found in _LOSSES.values() for loss in found), 1)
}
"""Every loss that is known, and its number in the table."""
