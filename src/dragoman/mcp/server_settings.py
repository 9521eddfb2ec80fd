"""What the configuration says of Dragoman as an MCP server. Needs no SDK: every configuration is read with it."""

from collections.abc import Mapping

from msgspec import Struct, structs

from dragoman.http.destinations import destination_of

SYSTEM_PROMPT = "GEMINI_SYSTEM_PROMPT"
"""The variable with the system prompt, where the file has none."""


class McpTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls of `query`, `search` and `fetch` are answered."""

    model: str = ""
    """Asked by `query` unless a call names another; empty for the first that is configured."""
    search_model: str = ""
    """Asked by `search`; empty for `model`."""
    system_prompt: str = ""
    max_turns: int = 10
    """Turns with tools that a `query` has at most."""
    seconds: float = 600.0
    """Time that a `query` has."""
    destinations: tuple[str, ...] = ()
    """Hosts to which tools may send something also after what anybody may have written was read."""
    session_hours: float = 24.0
    """How long a session is remembered that nobody goes on with; 0 as long as conversations are kept."""
    session_messages: int = 200
    """How many messages of a session the model is told again; 0 for all."""
    fixtures: bool = False
    """Offer the tools of MCP's conformance suite too; only for testing."""

    def __post_init__(self) -> None:
        for entry in self.destinations:
            destination_of(entry)


def prompted(table: McpTable, environment: Mapping[str, str]) -> McpTable:
    """Return the table with the system prompt of the environment, if it has none of its own."""
    return structs.replace(table, system_prompt=table.system_prompt or environment.get(SYSTEM_PROMPT, ""))
