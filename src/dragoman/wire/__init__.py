"""Wire formats: JSON that keeps unknown fields, SSE frames, Gemini's JSON stream. Nothing here is about LLMs."""
