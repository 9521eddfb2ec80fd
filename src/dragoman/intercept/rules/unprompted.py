"""Take out the prompt that a client was given only so that it asks: the results are what it asks with.

A history begins and ends with the user, and in between the user has the word after the model: a prompt stays where
nothing else of the user's would stand there.
"""

from dragoman.intercept.document import Document
from dragoman.intercept.plan import Plan
from dragoman.intercept.rules.contents import Content, contents_of, put, text_of


def unprompted(document: Document, plan: Plan) -> bool:
    """Take our prompt out, wherever it stands."""
    if not plan.groups or not plan.prompt:
        return False
    before = contents_of(document)
    kept: list[Content] = []
    for content in before:
        without = _without(content, plan)
        is_needed = not without.parts and (not kept or kept[-1].is_said)
        if is_needed or content.parts == without.parts:
            kept.append(content)
        elif without.parts:
            kept.append(without)
    if len(kept) == len(before) and all(one is other for one, other in zip(kept, before, strict=True)):
        return False
    put(document, kept)
    return True


def has_prompt(content: Content, plan: Plan) -> bool:
    """Tell whether our prompt stands in a turn."""
    return _without(content, plan) is not content


def _without(content: Content, plan: Plan) -> Content:
    if content.is_said:
        return content
    parts = [part for part in content.parts if (text_of(part) or "").strip() != plan.prompt.strip()]
    return content if len(parts) == len(content.parts) else content.having(parts)
