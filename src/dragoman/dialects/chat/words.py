"""The words of a `spelling`: how this dialect said a thing it can say in several ways.

Rules: a spelling of ours begins with our name, because other dialects use the same words for other things; one of
theirs has no words here. No words, no spelling.
"""

from dragoman.dialects.chat.wire import NAME

_PREFIX = f"{NAME} "

CALL = f"{NAME} call"
MESSAGE = f"{NAME} message"
PART = f"{NAME} part"
THINKING = f"{NAME} thinking"
NULL = f"{NAME} null"
FUNCTION = f"{NAME} function"
FUNCTION_CALL = f"{NAME} function_call"
ANY = f"{NAME} any"
ALLOWED_TOOLS = f"{NAME} allowed_tools"
REASONING = {f"{NAME} {word}": word for word in ("reasoning_content", "reasoning")}


def spelled(*words: str) -> str:
    """Write a spelling of those words that are not empty."""
    told = " ".join([word for word in words if word])
    return _PREFIX + told if told else ""


def words_of(spelling: str) -> tuple[str, ...] | list[str]:
    """Return the words of a spelling, none of a foreign one."""
    if not spelling or not spelling.startswith(_PREFIX):
        return ()
    return spelling[len(_PREFIX) :].split()


def member_of(kind: str, spelling: str) -> str:
    """Name the member of a message that holds a text of this kind ("text", "reasoning", "refusal")."""
    if kind == "reasoning":
        return REASONING.get(spelling, "reasoning_content")
    return "refusal" if kind == "refusal" else "content"
