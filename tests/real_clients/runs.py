"""Which client is run on which upstream: the tests take it from here, and the README's table says the same."""

UPSTREAMS = ("gemini", "anthropic", "chat", "responses")
"""In the order of the table's columns."""
OWN = {
    "AI SDK: anthropic": "anthropic",
    "AI SDK: google": "gemini",
    "AI SDK: openai (Responses)": "responses",
    "AI SDK: openai (Chat), openai-compatible": "chat",
}
"""Clients that are also run on the language they speak."""
OPENCODE = {"openai-compatible": "gemini", "openai": "anthropic", "anthropic": "chat", "google": "responses"}
"""Its providers, each with the upstream it is run on."""
AGENTS = {"chat": ("gemini", "anthropic", "responses"), "responses": ("gemini", "anthropic", "chat")}
RUNS = {
    "Claude Code": ("gemini", "chat", "responses"),
    "Codex": ("gemini", "anthropic", "chat"),
    "Gemini CLI, API key and Code Assist": ("anthropic", "chat", "responses"),
    f"opencode: {', '.join(OPENCODE)}": tuple(OPENCODE.values()),
    **dict.fromkeys(OWN, UPSTREAMS),
    "OpenAI Agents SDK, Chat and Responses": tuple({name for names in AGENTS.values() for name in names}),
    "anthropic SDK, tool runner": ("gemini", "chat", "responses"),
    "google-genai, automatic calls": ("anthropic", "chat", "responses"),
}


def table() -> str:
    """Return the table of the README."""
    lines = ["| client | Gemini | Anthropic | OpenAI Chat | OpenAI Responses |", "|---|---|---|---|---|"]
    for client, upstreams in RUNS.items():
        marks = ["○" if OWN.get(client) == name else "●" if name in upstreams else "" for name in UPSTREAMS]
        lines.append("".join(f"| {mark} " if mark else "| " for mark in [client, *marks]) + "|")
    return "\n".join(lines) + "\n"
