"""The same tasks with native calls and with calls in text: turns, failures, tokens, time."""
