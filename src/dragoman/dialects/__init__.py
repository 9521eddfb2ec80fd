"""The dialects: each one is a folder here and a name in `NAMES`."""

NAMES = ("chat", "responses", "messages", "gemini")
"""The folders that `registry` loads. The command offers these names without loading anything."""
FORMS = {"code-assist": ("gemini", "code_assist")}
"""What the command calls a dialect in an envelope: the dialect, and the form of the envelope."""
