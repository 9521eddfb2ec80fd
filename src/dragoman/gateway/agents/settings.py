"""What is configured of an agent: a model with tools that the gateway runs, which clients ask for like any other."""

from typing import Annotated

from msgspec import Meta, Struct

from dragoman.http.addresses import destination_of

_Count = Annotated[int, Meta(ge=0)]


class AgentLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far one run may go; 0 for no limit, but for the turns."""

    turns: Annotated[int, Meta(ge=1)] = 10
    """Turns of the model with tools; after them it is asked once more, without."""
    seconds: Annotated[float, Meta(ge=0)] = 0.0
    tokens: _Count = 0
    """Input and output of all turns together."""
    calls: _Count = 0
    """Calls that are run."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """Of all turns together, by the configured prices."""


class AgentCompaction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a history that grows in a run is summed up."""

    context: _Count = 0
    """Tokens that the model can take; 0 to sum up nothing."""
    share: Annotated[float, Meta(gt=0, le=1)] = 0.8
    """How full that may be."""
    keep: Annotated[int, Meta(ge=1)] = 4
    """Messages at the end that are kept at least."""
    model: str = ""
    """Who sums up; empty for the agent's own model."""


class AgentTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent."""

    model: str
    tools: tuple[str, ...] = ()
    """Tools by name, servers by name for all of theirs, and patterns with `*`."""
    system: str = ""
    """What it is told before its client's own instructions."""
    destinations: tuple[str, ...] = ()
    """Hosts to which its tools may send something also after they have read what anybody may have written."""
    limits: AgentLimits = AgentLimits()
    compaction: AgentCompaction = AgentCompaction()

    def __post_init__(self) -> None:
        for entry in self.destinations:
            destination_of(entry)
