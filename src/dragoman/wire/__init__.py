"""Bytes: JSON with unread fields kept, SSE frames, Gemini's JSON stream. Knows nothing of language models."""
