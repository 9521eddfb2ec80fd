"""Plain talk: histories of which nothing has to be fitted, paired or arranged, as most conversations begin."""

from dragoman.core.parts import Text
from dragoman.core.request import Message
from dragoman.core.traits import Traits


def is_plain_talk(messages: tuple[Message, ...], traits: Traits) -> bool:
    """Tell whether a history is texts in turns that the target takes as they are: system, user, assistant, …, user."""
    if traits.turns != "alternating":
        return False
    wanted = "user"
    for message in messages:
        parts = message.parts
        if len(parts) != 1 or type(part := parts[0]) is not Text or message.extras is not None or message.name:
            return False
        if part.extras is not None or part.signature is not None or part.cache is not None or part.citations:
            return False
        if not part.text or part.text.isspace():
            return False
        if message.role == wanted:
            wanted = "assistant" if wanted == "user" else "user"
        elif message.role != "system" or message is not messages[0]:
            return False
    return wanted == "assistant"
