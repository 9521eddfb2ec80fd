"""Put a conversation back that the client does not remember: one that starts anew for each turn, or lost a reply.

Where results are ready and their calls stand nowhere in the history, the model is told what it had seen, its calls and
the results; and then what the client says now, unless our own prompt stands in it (what a client puts before each
prompt it has said before, too), or it is what it had said before the calls.
"""

from dragoman.intercept.captured import Group
from dragoman.intercept.digest import digest_of
from dragoman.intercept.document import Document, items_of
from dragoman.intercept.plan import Plan
from dragoman.intercept.rules.contents import MODEL, contents_of, put, read, turn
from dragoman.intercept.rules.unprompted import has_prompt


def restored(document: Document, plan: Plan) -> bool:
    """Put back what is missing."""
    group = plan.ready
    if group is None or group.results is None or not group.before or _stands_in(document, group):
        return False
    told = [read(item) for item in items_of(group.before)]
    told.append(turn(MODEL, [call.part for call in group.calls]))
    told.append(turn("user", list(group.results)))
    last = contents_of(document)[-1:]
    told += [
        content
        for content in last
        if not content.is_said and digest_of(content.raw) != group.asked and not has_prompt(content, plan)
    ]
    put(document, told)
    return True


def _stands_in(document: Document, group: Group) -> bool:
    return group.calls[0].part in (document.get("contents") or b"")
