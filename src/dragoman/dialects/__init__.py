"""The API dialects: each has a folder in this package and a name in `NAMES`."""

NAMES = ("chat", "responses", "messages", "gemini")
"""The folders that `registry` imports. The command line lists these names without importing a dialect."""
FORMS = {"code-assist": ("gemini", "code_assist")}
"""Command-line names of enveloped dialects, each with its dialect and the form of the envelope."""
OTHER_NAMES = {
    "openai": "chat",
    "openai-chat": "chat",
    "completions": "chat",
    "chat-completions": "chat",
    "openai-responses": "responses",
    "anthropic": "messages",
    "claude": "messages",
    "google": "gemini",
    "vertex": "gemini",
}
"""Names that people use for dialects: a wrong one on the command line is answered with the right one."""
