"""The API dialects: each has a folder in this package and a name in `NAMES`."""

NAMES = ("chat", "responses", "messages", "gemini")
"""The folders that `registry` imports. The command line lists these names without importing a dialect."""
FORMS = {"code-assist": ("gemini", "code_assist")}
"""Command-line names of enveloped dialects, each with its dialect and the form of the envelope."""
