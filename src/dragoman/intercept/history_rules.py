"""Rules about the history: remove the continuation prompt, restore lost turns, insert calls and results.

The continuation prompt only starts the client when there are only results. A client that starts a new conversation for
each turn gets its earlier turns back. Captured calls replace their placeholder, and one turn with all their results
follows.
"""

from typing import Any

from msgspec import Struct

from dragoman.intercept.document import GeminiDocument, ObjectFields, items_of, join_items
from dragoman.intercept.plan import CapturedToolCall, Group, RewritePlan, digest_of
from dragoman.wire import json

MODEL = "model"
_CALL, _RESULT = ("functionCall", "function_call"), ("functionResponse", "function_response")


class TurnContent(Struct, frozen=True, kw_only=True):
    """One turn: its role and its raw parts."""

    raw: bytes
    role: str
    parts: tuple[bytes, ...]

    @property
    def is_model_turn(self) -> bool:
        """Whether the model wrote it."""
        return self.role == MODEL

    def with_parts(self, parts: list[bytes]) -> "TurnContent":
        """Return the turn with other parts."""
        fields = ObjectFields(self.raw)
        fields.set("parts", join_items(parts))
        return TurnContent(raw=fields.raw, role=self.role, parts=tuple(parts))


def contents_of(document: GeminiDocument) -> list[TurnContent]:
    """Return the history of a request."""
    raw = document.get("contents")
    return [parse_turn(item) for item in items_of(raw)] if raw is not None else []


def parse_turn(raw: bytes) -> TurnContent:
    """Parse one turn."""
    fields = ObjectFields(raw)
    role, parts = fields.get("role"), fields.get("parts")
    return TurnContent(
        raw=raw,
        role=json.decode(role) if role is not None else "user",
        parts=tuple(items_of(parts)) if parts is not None else (),
    )


def build_turn(role: str, parts: list[bytes]) -> TurnContent:
    """Build a turn."""
    raw = b'{"role":' + json.encode(role) + b',"parts":' + join_items(parts) + b"}"
    return TurnContent(raw=raw, role=role, parts=tuple(parts))


def set_contents(document: GeminiDocument, contents: list[TurnContent]) -> None:
    """Set the history of a request."""
    document.set("contents", join_items([content.raw for content in contents]))


def text_of(part: bytes) -> str | None:
    """Return the text of a text part; None for other parts, including thoughts."""
    if b'"text"' not in part:
        return None
    fields = json.decode(part)
    text = fields.get("text")
    return text if isinstance(text, str) and not fields.get("thought") else None


def call_of(part: bytes) -> dict[str, Any] | None:
    """Return the function call in a part, or None."""
    return _find_member(part, _CALL)


def result_of(part: bytes) -> dict[str, Any] | None:
    """Return the function response in a part, or None."""
    return _find_member(part, _RESULT)


def _find_member(part: bytes, names: tuple[str, str]) -> dict[str, Any] | None:
    if not any(name.encode() in part for name in names):
        return None
    fields = json.decode(part)
    return next((fields[name] for name in names if isinstance(fields.get(name), dict)), None)


def remove_prompt(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Remove the continuation prompt from all turns of the user."""
    if not plan.groups or not plan.prompt:
        return False
    before = contents_of(document)
    kept: list[TurnContent] = []
    for content in before:
        without = _drop_prompt(content, plan)
        is_needed = not without.parts and (not kept or kept[-1].is_model_turn)
        if is_needed or content.parts == without.parts:
            kept.append(content)
        elif without.parts:
            kept.append(without)
    if len(kept) == len(before) and all(one is other for one, other in zip(kept, before, strict=True)):
        return False
    set_contents(document, kept)
    return True


def has_prompt(content: TurnContent, plan: RewritePlan) -> bool:
    """Check whether a turn contains the continuation prompt."""
    return _drop_prompt(content, plan) is not content


def _drop_prompt(content: TurnContent, plan: RewritePlan) -> TurnContent:
    if content.is_model_turn:
        return content
    parts = [part for part in content.parts if (text_of(part) or "").strip() != plan.prompt.strip()]
    return content if len(parts) == len(content.parts) else content.with_parts(parts)


def restore_conversation(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Restore the turns that the client lost, followed by the calls and their results."""
    group = plan.ready
    if group is None or group.results is None or not group.before or _contains_calls(document, group):
        return False
    restored = [parse_turn(item) for item in items_of(group.before)]
    restored.append(build_turn(MODEL, [call.part for call in group.calls]))
    restored.append(build_turn("user", list(group.results)))
    last = contents_of(document)[-1:]
    restored += [
        content
        for content in last
        if not content.is_model_turn
        and digest_of(content.raw) != group.last_turn_digest
        and not has_prompt(content, plan)
    ]
    set_contents(document, restored)
    return True


def _contains_calls(document: GeminiDocument, group: Group) -> bool:
    return group.calls[0].part in (document.get("contents") or b"")


def insert_results(document: GeminiDocument, plan: RewritePlan) -> bool:
    """Replace every placeholder whose calls have results with the calls and results."""
    raw = document.get("contents")
    if raw is None or not any(mark.encode() in raw for mark in plan.groups):
        return False
    history = _HistoryBuilder(plan)
    for content in contents_of(document):
        history.add(content)
    history.close()
    if not history.is_changed:
        return False
    set_contents(document, history.contents)
    return True


class _HistoryBuilder:
    def __init__(self, plan: RewritePlan) -> None:
        self._plan = plan
        self.contents: list[TurnContent] = []
        self.is_changed = False
        self._seen_marks: set[str] = set()
        self._open_calls: list[CapturedToolCall | bytes] = []
        """Calls since the last user turn: captured ones, and the raw parts of the client's own."""
        self._results: dict[str, bytes] = {}

    def add(self, content: TurnContent) -> None:
        """Add the next turn."""
        if content.is_model_turn:
            self._add_model_turn(content)
            return
        if self._results:
            self._add_results(content)
        else:
            self.contents.append(content)
        self._open_calls = []

    def close(self) -> None:
        """Finish the history: add results that are not followed by another turn."""
        if self._results:
            self._add_results(None)

    def _add_model_turn(self, content: TurnContent) -> None:
        items = [item for part in content.parts for item in self._replace_placeholders(part)]
        self._open_calls += [item for item in items if isinstance(item, CapturedToolCall) or call_of(item) is not None]
        parts = [item.part if isinstance(item, CapturedToolCall) else item for item in items]
        if tuple(parts) == content.parts:
            self.contents.append(content)
            return
        self.is_changed = True
        if parts:
            self.contents.append(content.with_parts(parts))

    def _replace_placeholders(self, part: bytes) -> list[CapturedToolCall | bytes]:
        """Split a part at its placeholders; return the texts between them, and the calls in their place."""
        text = text_of(part)
        if text is None:
            return [part]
        items: list[CapturedToolCall | bytes] = []
        rest = text
        for group in self._plan.find_groups(text):
            found = self._plan.placeholder_of(group).search(rest) if group.is_answered else None
            if found is None:
                continue
            items += [*_build_text_parts(rest[: found.start()]), *self._take_calls(group)]
            rest = rest[found.end() :]
        return [part] if rest is text else [*items, *_build_text_parts(rest)]

    def _take_calls(self, group: Group) -> tuple[CapturedToolCall, ...]:
        if group.mark in self._seen_marks:
            return ()
        self._seen_marks.add(group.mark)
        self._results |= {call.id: result for call, result in zip(group.calls, group.results or (), strict=True)}
        return group.calls

    def _add_results(self, content: TurnContent | None) -> None:
        """Add one turn with all results in the order of the calls.

        Results of the client's own tools are taken from its turn.
        """
        client_results = [part for part in content.parts if result_of(part) is not None] if content is not None else []
        results: list[bytes] = []
        for call in self._open_calls:
            if isinstance(call, CapturedToolCall):
                results.append(self._results[call.id])
            elif (found := _find_result(call, client_results)) is not None:
                client_results.remove(found)
                results.append(found)
        self.contents.append(build_turn("user", [*results, *client_results]))
        self._results = {}
        rest = [part for part in content.parts if result_of(part) is None] if content is not None else []
        if content is not None and rest:
            self.contents.append(content if len(rest) == len(content.parts) else content.with_parts(rest))


def _build_text_parts(text: str) -> list[CapturedToolCall | bytes]:
    return [json.encode({"text": text})] if text.strip() else []


def _find_result(call: bytes, results: list[bytes]) -> bytes | None:
    """Find the client's result for its own call: by id, otherwise by name."""
    fields = call_of(call) or {}
    known = [(part, result_of(part) or {}) for part in results]
    by_id = (part for part, result in known if fields.get("id") and result.get("id") == fields["id"])
    by_name = (part for part, result in known if result.get("name") == fields.get("name"))
    return next(by_id, None) or next(by_name, None)
