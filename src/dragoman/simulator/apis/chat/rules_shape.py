"""The rules that the shape of a body holds by itself, with what breaks them."""

from dragoman.simulator.api import RuleNote
from dragoman.simulator.apis.chat.rules_messages import PROBED

NOTES: tuple[RuleNote, ...] = (
    RuleNote("chat.json", "The body is JSON.", "reported in public issues: the error tells how to fix it"),
    RuleNote(
        "chat.unknown-field",
        "There are no members but OpenAI's; those of other APIs and of compatible servers are refused.",
        f"{PROBED} (the body, developer messages, options); recorded as ignored, and so let pass: unknown members of a "
        "function, `annotations`, `index` of calls, `name` of results; elsewhere in messages: no source",
    ),
    RuleNote("chat.type", "Every member has its type.", f"openai-python 3.49 types; {PROBED}"),
    RuleNote("chat.enum", "Words are from OpenAI's lists.", f"openai-python 3.49 types; {PROBED}"),
    RuleNote("chat.required", "What must be there is there.", f"openai-python 3.49 types; {PROBED}"),
    RuleNote("chat.bounds", "Numbers are within bounds.", f"wire/openai_chat.md section 1; {PROBED}"),
)
