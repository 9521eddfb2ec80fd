"""The forms in which models write calls as text, and how to read them; `text_call_prompt` describes them to a model."""
