"""Tools for models that have none: told in the prompt, called in the model's text, read out of that again."""
