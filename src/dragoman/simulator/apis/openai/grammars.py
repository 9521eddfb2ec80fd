"""What OpenAI refuses in the grammar of a custom tool: Lark in its own dialect, or a regular expression of Rust."""

import re

_UNMATCHABLE = re.compile(r"\(\?(?:[=!]|<[=!])|[*+?}]\?")
"""Look-around and lazy quantifiers."""
_LITERAL = re.compile(r'\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|"(?:\\.|[^"\\])*"', re.DOTALL)
"""Escapes, classes of characters and quoted texts, in which those signs mean themselves."""
_START = re.compile(r"^\s*[?!]?start(?:\.\d+)?\s*:", re.MULTILINE)


def grammar_fault(syntax: str, definition: str) -> str:
    """Say what is wrong with a grammar; "" if nothing is."""
    if not definition.strip():
        return "the grammar is empty"
    if _UNMATCHABLE.search(_LITERAL.sub("x", definition)):
        return "look-around and lazy quantifiers are not supported"
    if syntax == "lark" and not _START.search(definition):
        return "no rule named 'start' is defined"
    return ""
