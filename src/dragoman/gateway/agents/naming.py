"""Words for tools in a configuration that can mean nothing: told to whoever wrote them, without asking any server.

A program may bring tools of its own, so such a word is no mistake for sure; nothing is refused for it.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from dragoman.gateway.agents.settings import AgentTable
from dragoman.tools.handler import JOINT

BUILT_IN = ("web_fetch", "read_artifact")
"""Tools that are always there."""


def unmeant(agents: Mapping[str, AgentTable], servers: Collection[str]) -> Iterable[tuple[str, str]]:
    """Iterate the words of agents that mean no tool and no server: the key that has one, and what to say of it."""
    for name, agent in agents.items():
        for word in agent.tools:
            if not _can_mean(word, servers):
                yield f"agents.{name}.tools", f"{word!r} means no tool and no server{near(word, servers)}"


def near(word: str, servers: Collection[str]) -> str:
    """Say what may be meant, or else what there is."""
    known = list(dict.fromkeys((*servers, *BUILT_IN)))
    close = get_close_matches(word.partition(JOINT)[0], known, 2)
    return f": did you mean {' or '.join(close)}?" if close else f": there are {', '.join(known[:20])}"


def _can_mean(word: str, servers: Collection[str]) -> bool:
    if "*" not in word:
        return word in BUILT_IN or word.partition(JOINT)[0] in servers
    if any(fnmatchcase(tool, word) for tool in BUILT_IN):
        return True
    begins = word.partition("*")[0]
    beginnings = [f"{server}{JOINT}" for server in servers]
    return any(known.startswith(begins) or begins.startswith(known) for known in beginnings)
