"""Put calls where their placeholder stands, and one turn with all their results right after it.

An answered placeholder stays one: it is replaced in every later request too. Where the same one stands again, the
client went on while nothing was known yet and was told the same once more: that is taken out, and what the client said
stays. A group without results, or one that was given up, is left as the words that the client has.
"""

from dragoman.intercept.captured import Captured, Group
from dragoman.intercept.document import Document
from dragoman.intercept.plan import Plan
from dragoman.intercept.rules.contents import Content, call_of, contents_of, put, result_of, text_of, turn
from dragoman.wire import json


def answered(document: Document, plan: Plan) -> bool:
    """Replace every placeholder that stands for calls with results."""
    raw = document.get("contents")
    if raw is None or not any(mark.encode() in raw for mark in plan.groups):
        return False
    history = _History(plan)
    for content in contents_of(document):
        history.take(content)
    history.close()
    if not history.is_changed:
        return False
    put(document, history.told)
    return True


class _History:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.told: list[Content] = []
        self.is_changed = False
        self._met: set[str] = set()
        self._step: list[Captured | bytes] = []
        """Calls since the user had the word: ours, and the client's as they stand there."""
        self._results: dict[str, bytes] = {}

    def take(self, content: Content) -> None:
        """Take the next turn."""
        if content.is_said:
            self._said(content)
            return
        if self._results:
            self._answer(content)
        else:
            self.told.append(content)
        self._step = []

    def close(self) -> None:
        """The history is over: results that nobody followed stand at its end."""
        if self._results:
            self._answer(None)

    def _said(self, content: Content) -> None:
        items = [item for part in content.parts for item in self._replaced(part)]
        self._step += [item for item in items if isinstance(item, Captured) or call_of(item) is not None]
        parts = [item.part if isinstance(item, Captured) else item for item in items]
        if tuple(parts) == content.parts:
            self.told.append(content)
            return
        self.is_changed = True
        if parts:
            self.told.append(content.having(parts))

    def _replaced(self, part: bytes) -> list[Captured | bytes]:
        """Return what stands for a part: its words around placeholders, and the calls in place of these."""
        text = text_of(part)
        if text is None:
            return [part]
        told: list[Captured | bytes] = []
        rest = text
        for group in self._plan.marked(text):
            found = self._plan.placeholder_of(group).search(rest) if group.is_answered else None
            if found is None:
                continue
            told += [*_words(rest[: found.start()]), *self._calls(group)]
            rest = rest[found.end() :]
        return [part] if rest is text else [*told, *_words(rest)]

    def _calls(self, group: Group) -> tuple[Captured, ...]:
        if group.mark in self._met:
            return ()
        self._met.add(group.mark)
        self._results |= {call.id: result for call, result in zip(group.calls, group.results or (), strict=True)}
        return group.calls

    def _answer(self, content: Content | None) -> None:
        """Tell all results in the order of the calls; those of the client's own tools stand in its turn."""
        theirs = [part for part in content.parts if result_of(part) is not None] if content is not None else []
        told: list[bytes] = []
        for call in self._step:
            if isinstance(call, Captured):
                told.append(self._results[call.id])
            elif (found := _result_for(call, theirs)) is not None:
                theirs.remove(found)
                told.append(found)
        self.told.append(turn("user", [*told, *theirs]))
        self._results = {}
        rest = [part for part in content.parts if result_of(part) is None] if content is not None else []
        if content is not None and rest:
            self.told.append(content if len(rest) == len(content.parts) else content.having(rest))


def _words(text: str) -> list[Captured | bytes]:
    return [json.encode({"text": text})] if text.strip() else []


def _result_for(call: bytes, results: list[bytes]) -> bytes | None:
    """Find the client's result for a call of its own: by id, or else by name."""
    said = call_of(call) or {}
    known = [(part, result_of(part) or {}) for part in results]
    by_id = (part for part, result in known if said.get("id") and result.get("id") == said["id"])
    by_name = (part for part, result in known if result.get("name") == said.get("name"))
    return next(by_id, None) or next(by_name, None)
