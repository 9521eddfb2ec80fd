"""Names of operations and dialects on the command line, without loading the dialects themselves."""

OPERATIONS = ("request", "response", "stream", "error")
SOURCES = ("chat", "responses", "messages", "gemini")
"""The dialects, by name: to load them for their names alone would hold up every other verb."""
TARGETS = (*SOURCES, "code-assist", "core")
