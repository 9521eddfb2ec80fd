"""What the model says when it does not call: always in the name of the simulator."""

import re

from dragoman.simulator.model.conversation import Conversation
from dragoman.simulator.model.documents import DOCUMENTS
from dragoman.simulator.model.planning import Planned
from dragoman.simulator.model.searching import Found
from dragoman.simulator.model.tool_results import quoted, shortened

MARK = "[dragoman simulator]"
_PLAIN = (
    "I am a simulator and know nothing of my own. You said: “{}”",
    "This is an answer of a simulator, not of a language model. Your prompt was: “{}”",
    "No model has thought about this; a simulator repeats it: “{}”",
)
_COUNT = re.compile(r"\bcount\b.{0,20}?\b(?:from (-?\d{1,6}) )?to (-?\d{1,6})\b", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"\b(\d{1,5}) words\b", re.IGNORECASE)
_MOST_COUNTED = 2000
_MOST_WORDS = 20_000
_LONGEST_THOUGHT = 160


def plain(conversation: Conversation, seed: int) -> str:
    """Answer without tools: repeat the prompt, count, or write as many words as are asked for."""
    prompt = conversation.prompt.strip()
    sentences: list[str] = []
    if prompt:
        sentences.append(
            _counted(prompt) or _written(prompt, seed) or _PLAIN[seed % len(_PLAIN)].format(shortened(prompt))
        )
    elif not conversation.media:
        sentences.append("I am a simulator, and there is no prompt I could answer.")
    return " ".join([MARK, *sentences, *_unseen(conversation)])


def from_results(conversation: Conversation) -> str:
    """Answer by quoting the results of tools."""
    return "\n".join(
        [f"{MARK} {quoted(conversation.results[0])}", *map(quoted, conversation.results[1:]), *_unseen(conversation)]
    )


def from_search(found: Found) -> str:
    """Answer by quoting documents."""
    quotes = " ".join(source.quote for source in found.sources)
    if not found.hit:
        return f"{MARK} I searched for “{found.query}” and found nothing. {quotes}"
    return f"{MARK} I searched for “{found.query}”. {quotes}"


def before_calls(calls: list[Planned], conversation: Conversation) -> str:
    """Say what is going to be called."""
    names = " and ".join(dict.fromkeys(call.tool.tool.name for call in calls))
    return " ".join([MARK, f"I call {names}.", *_unseen(conversation)])


def thought(conversation: Conversation, calls: list[Planned], query: str) -> str:
    """Think: say what is asked for and what will be done about it."""
    prompt = " ".join(conversation.prompt.split())[:_LONGEST_THOUGHT]
    asked = f"The user says: “{prompt}”." if prompt else "The user says nothing."
    if calls:
        names = ", ".join(call.tool.tool.name for call in calls)
        guessed = [name for call in calls for name in call.guessed]
        unsure = f" Nothing is said about {', '.join(guessed)}, so I guess." if guessed else ""
        return f"{asked} I need {names}.{unsure}"
    if query:
        return f"{asked} I search for “{query}”."
    if conversation.results:
        return f"{asked} The tools have answered, so I quote them."
    return f"{asked} No tool is needed, so I answer myself."


def _unseen(conversation: Conversation) -> list[str]:
    kinds = list(dict.fromkeys(conversation.media))
    return [f"I cannot see what you showed me ({', '.join(kinds)})."] if kinds else []


def _counted(prompt: str) -> str:
    found = _COUNT.search(prompt)
    if found is None:
        return ""
    start, end = int(found[1] or 1), int(found[2])
    step = 1 if end >= start else -1
    return ", ".join(map(str, range(start, end + step, step)[:_MOST_COUNTED]))


def _written(prompt: str, seed: int) -> str:
    """Write so many words, out of the documents."""
    found = _WORDS.search(prompt)
    if found is None:
        return ""
    wanted = min(int(found[1]), _MOST_WORDS)
    words: list[str] = []
    place = seed
    while len(words) < wanted:
        words.extend(DOCUMENTS[place % len(DOCUMENTS)].text.split())
        place += 1
    return " ".join(words[:wanted])
