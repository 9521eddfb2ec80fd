"""The upstream kinds by name: those of this package and those that other packages register.

For a model that no configuration names, the kinds are tried in this order.
"""

from dragoman.upstreams.anthropic import KIND as ANTHROPIC
from dragoman.upstreams.code_assist import KIND as CODE_ASSIST
from dragoman.upstreams.gemini import KIND as GEMINI
from dragoman.upstreams.kind import UpstreamKind, UpstreamTable
from dragoman.upstreams.openai import CHAT_KIND, RESPONSES_KIND
from dragoman.upstreams.simulator import KIND as SIMULATOR
from dragoman.upstreams.vertex import ANTHROPIC_KIND as VERTEX_ANTHROPIC
from dragoman.upstreams.vertex import GEMINI_KIND as VERTEX_GEMINI

_BUILT_IN = (GEMINI, VERTEX_GEMINI, CODE_ASSIST, ANTHROPIC, VERTEX_ANTHROPIC, RESPONSES_KIND, CHAT_KIND, SIMULATOR)
KINDS: dict[str, UpstreamKind] = {kind.name: kind for kind in _BUILT_IN}


def list_apis(kind: UpstreamKind) -> tuple[str, ...]:
    """Return the APIs that a server of a kind may have, by dialect: its own, and that of its other kind."""
    return (*kind.dialects, *(KINDS[kind.other_kind].dialects if kind.other_kind else ()))


def find_other_kind(table: UpstreamTable) -> UpstreamKind | None:
    """Return the kind for the other API of an upstream; None if its server has none."""
    kind = KINDS[table.kind]
    if not kind.other_kind:
        return None
    other = KINDS[kind.other_kind]
    has_other = kind.is_vendors_server(table) if table.apis is None else other.dialects[0] in table.apis
    return other if has_other else None


def register(kind: UpstreamKind) -> None:
    """Add a kind from another package. Configurations that are read afterwards can use it."""
    if kind.name in KINDS:
        raise ValueError(f"upstream kind {kind.name!r} is already registered")
    KINDS[kind.name] = kind


def unregister(name: str) -> None:
    """Remove a kind that `register` added."""
    if name in {kind.name for kind in _BUILT_IN}:
        raise ValueError(f"upstream kind {name!r} is built in and cannot be removed")
    del KINDS[name]
