"""Models that are asked where nobody names one."""

from collections.abc import Mapping

from dragoman.config import Config

USUAL: Mapping[str, str] = {
    "gemini": "gemini-3-flash",
    "vertex-gemini": "gemini-3-flash",
    "code-assist": "gemini-3-flash",
    "anthropic": "claude-haiku-4-5",
    "vertex-anthropic": "claude-haiku-4-5",
    "openai": "gpt-5.4-mini",
    "openai-responses": "gpt-5.4-mini",
    "simulator": "gemini-3-flash",
}
"""By the kind of upstream."""


def usual_model(config: Config) -> str:
    """Return the first model a configuration names, or else the usual one of its first upstream."""
    named = next((name for name in config.models if "*" not in name), "")
    if named:
        return named
    return next((f"{name}/{USUAL[table.kind]}" for name, table in config.upstreams.items()), "")
