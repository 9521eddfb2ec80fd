"""Tool calling for models without tool support: the prompt describes the tools, and calls are parsed from the text."""
