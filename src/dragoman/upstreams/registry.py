"""The kinds of upstreams by name: those of this package, and those that are registered from outside.

The order is that in which kinds are asked for a model that no configuration names.
"""

from dragoman.upstreams.anthropic import KIND as ANTHROPIC
from dragoman.upstreams.code_assist import KIND as CODE_ASSIST
from dragoman.upstreams.gemini import KIND as GEMINI
from dragoman.upstreams.kind import UpstreamKind
from dragoman.upstreams.openai import CHAT_KIND, RESPONSES_KIND
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.upstreams.vertex import ANTHROPIC_KIND as VERTEX_ANTHROPIC
from dragoman.upstreams.vertex import GEMINI_KIND as VERTEX_GEMINI

_OWN = (GEMINI, VERTEX_GEMINI, CODE_ASSIST, ANTHROPIC, VERTEX_ANTHROPIC, RESPONSES_KIND, CHAT_KIND, SIMULATOR)
KINDS: dict[str, UpstreamKind] = {kind.name: kind for kind in _OWN}


def register(kind: UpstreamKind) -> None:
    """Add a kind of another package; a configuration that is read afterwards may name it."""
    if kind.name in KINDS:
        raise ValueError(f"there is a kind of upstream {kind.name!r} already")
    KINDS[kind.name] = kind


def unregister(name: str) -> None:
    """Remove a kind that `register` added."""
    if name in {kind.name for kind in _OWN}:
        raise ValueError(f"{name!r} is a kind of this package")
    del KINDS[name]
