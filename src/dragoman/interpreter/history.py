"""Fit the parts of each message to the target. A message depends on itself, the trait row and the tools it calls.

A part that needs nothing is returned as it is, the same object: most of a long history is like that.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, is_
from typing import Any

from msgspec import structs

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    Media,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message
from dragoman.interpreter.fitting import KEPT_ELSEWHERE, Fitting
from dragoman.interpreter.foreign_fields import drop_extras, drop_signature, says_nothing, without_foreign
from dragoman.interpreter.media import fit_media, stands_in_result
from dragoman.interpreter.schemas.retelling import retell
from dragoman.interpreter.undo import full_name
from dragoman.wire import json

_NOTHING_SAID = Text(text="")
_get_marks = attrgetter("extras", "signature", "cache", "citations")
_NO_MARKS = _get_marks(_NOTHING_SAID)
_get_result_marks = attrgetter("extras", "cache", "failed", "name", "form")
_NO_RESULT_MARKS = _get_result_marks(ToolResult(call_id=""))
Fitted = AnyPart | tuple[AnyPart, ...] | None


def fit_messages(messages: Iterable[Message], fitting: Fitting) -> list[Message]:
    """Fit every message; one may be left without parts."""
    fitted: list[Message] = []
    for message in messages:
        parts = message.parts
        if len(parts) == 1:
            part = parts[0]
            now = _FITTERS[part.__class__](part, message, fitting)
            is_same = now is part
        else:
            now = tuple(_flat([_FITTERS[part.__class__](part, message, fitting) for part in parts]))
            is_same = len(now) == len(parts) and all(map(is_, now, parts))
        if is_same and message.extras is None and not message.name:
            fitted.append(message)
        else:
            fitted.append(_rebuilt(message, now, fitting))
    return fitted


def _rebuilt(message: Message, parts: Fitted, fitting: Fitting) -> Message:
    drop_extras(message, fitting)
    name = message.name
    if name and not fitting.traits.speaker_names:
        fitting.ledger.field_dropped("message.name", "the target has no speaker names", message)
        name = ""
    return Message(role=message.role, parts=tuple(_flat([parts])), name=name, where=message.where)


def _flat(fitted: Iterable[Fitted]) -> Iterator[AnyPart]:
    """Iterate what became of parts: one part each, several, or none."""
    for now in fitted:
        if isinstance(now, tuple):
            yield from now
        elif now is not None:
            yield now


def _changed(part: AnyPart, changes: dict[str, Any]) -> AnyPart:
    return structs.replace(part, **changes) if changes else part


def _fit_text(part: Text, message: Message, fitting: Fitting) -> Fitted:
    text = part.text
    if (not text or text.isspace()) and not fitting.traits.empty_text:
        if text or part != _NOTHING_SAID:
            fitting.ledger.dropped(part.where, "the target refuses empty text")
        return None
    if _get_marks(part) == _NO_MARKS:
        return part
    changes = without_foreign(part, message.role, fitting)
    if part.citations:
        fitting.ledger.field_dropped("part.citations", "citations of an earlier answer are not sent back", part)
        changes["citations"] = ()
    if part.signature is not None and not fitting.traits.text_signatures:
        if not says_nothing(part.signature):
            fitting.ledger.field_dropped("part.signature", "the target has no place for a signature on text", part)
        changes["signature"] = None
    return _changed(part, changes)


def _fit_reasoning(part: Reasoning, message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    if traits.reasoning_text and part.texts:
        changes = without_foreign(part, message.role, fitting)
        if part.signature is not None:
            fitting.ledger.field_dropped("part.signature", "the target has no place for it", part)
            changes["signature"] = None
        return _changed(part, changes)
    if traits.shows_thinking and part.signature is not None and part.signature.issuer == traits.issuer:
        return _changed(part, without_foreign(part, message.role, fitting))
    fitting.ledger.dropped(part.where, "reasoning of another vendor's model cannot be replayed")
    return None


def _fit_call(part: ToolCall, message: Message, fitting: Fitting) -> Fitted:
    traits = fitting.traits
    changes: dict[str, Any] = {}
    if part.extras is not None or part.cache is not None:
        changes = without_foreign(part, message.role, fitting)
    signature = part.signature
    if signature is not None and not (traits.call_signatures and signature.issuer == traits.issuer):
        drop_signature(part, signature, fitting)
        changes["signature"] = None
    name = fitting.name(part.name, part.namespace)
    if name != part.name:
        changes["name"] = name
    if part.namespace and not traits.namespaces:
        changes["namespace"] = ""
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
        changes["arguments"] = wrap_free_text(part.arguments)
    elif part.form == "json":
        arguments = retold(part, fitting) if fitting.retold else part.arguments
        arguments = _object_text(arguments, part, fitting) if traits.object_arguments else arguments or "{}"
        if arguments is not part.arguments:
            changes["arguments"] = arguments
    return structs.replace(part, **changes) if changes else part


def wrap_free_text(text: str) -> str:
    """Say a free-form tool's input as a function's arguments."""
    return json.encode({"input": text}).decode()


def retold(call: ToolCall, fitting: Fitting) -> str:
    """Return the arguments as the model says them under the schema that it is given, which the tool has booked."""
    arguments = call.arguments
    for step in fitting.retold.get(full_name(call.name, call.namespace), ()):
        if step.retold:
            arguments = retell(arguments, step)
    return arguments


def _object_text(arguments: str, call: ToolCall, fitting: Fitting) -> str:
    if json.is_object(arguments):
        return arguments
    if not arguments.strip():
        return "{}"
    if arguments.strip() == "null":
        # Groq's word for no arguments.
        fitting.ledger.field_approximated("call.arguments", "null arguments are told as none", call)
        return "{}"
    fitting.ledger.field_approximated("call.arguments", "not a JSON object: sent as text under INVALID_JSON", call)
    return json.encode({"INVALID_JSON": arguments}).decode()


def _fit_result(part: ToolResult, message: Message, fitting: Fitting) -> Fitted:
    if len(part.content) == 1 and _get_result_marks(part) == _NO_RESULT_MARKS:
        # One text without marks, as most results are: every target takes that, be it empty.
        text = part.content[0]
        if isinstance(text, Text) and _get_marks(text) == _NO_MARKS and not text.text.isspace():
            return part
    traits = fitting.traits
    changes = without_foreign(part, message.role, fitting)
    content: list[Content] = []
    moved: list[AnyPart] = []
    for item in part.content:
        now = _FITTERS[item.__class__](item, message, fitting) if not isinstance(item, Data) else item
        for one in now if isinstance(now, tuple) else (now,):
            if isinstance(one, Media) and not stands_in_result(one, traits, failed=part.failed):
                fitting.ledger.approximated(one.where, "moved out of the tool result, behind it")
                content.append(Text(text=f"[{one.kind} follows]"))
                moved.append(one)
            elif one is not None:
                content.append(one)  # pyright: ignore[reportArgumentType]
    if part.failed and not traits.failed_results:
        fitting.ledger.field_approximated("result.failed", 'said as text: "Error: …"', part)
        changes["failed"] = False
        content = _as_error(content)
    if not traits.marks_anywhere and (mark := changes.get("cache", part.cache)) is not None:
        changes["cache"] = None
        content = _marked(content, mark, part, fitting)
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
    if part.name and (name := fitting.name(part.name)) != part.name:
        changes["name"] = name
    if not _same(content, part.content):
        changes["content"] = tuple(content)
    fitted = structs.replace(part, **changes) if changes else part
    return (fitted, *moved) if moved else fitted


def _same(left: list[Content], right: tuple[Content, ...]) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _marked(content: list[Content], mark: str, result: ToolResult, fitting: Fitting) -> list[Content]:
    """Let the mark of a result stand on the last that it holds."""
    match content:
        case [*before, (Text() | Media()) as last]:
            return [*before, structs.replace(last, cache=mark if last.cache is None else last.cache)]
        case [*before, Data(json=value)]:
            return [*before, Text(text=value.decode(), cache=mark)]
        case _:
            fitting.ledger.field_dropped("part.cache", "the target has no cache mark on a result of this kind", result)
            return content


def _as_error(content: list[Content]) -> list[Content]:
    """Say in words that a tool failed: before its text, which becomes one if there is nothing else."""
    said = [item for item in content if isinstance(item, Text | Data)]
    if len(said) == len(content) and all(item.cache is None for item in said):
        return [Text(text="Error: " + "\n".join(map(_words, said)))]
    first = content[0]
    if not isinstance(first, Text | Data):
        return [Text(text="Error: "), *content]
    return [Text(text="Error: " + _words(first), cache=first.cache), *content[1:]]


def _words(item: Text | Data) -> str:
    return item.text if isinstance(item, Text) else item.json.decode()


def _fit_refusal(part: Refusal, message: Message, fitting: Fitting) -> Fitted:
    if fitting.traits.refusals:
        return _changed(part, without_foreign(part, message.role, fitting))
    without_foreign(part, message.role, fitting)
    if not part.text:
        return None
    fitting.ledger.approximated(part.where, "a refusal is told as text")
    return Text(text=part.text, where=part.where)


def _fit_opaque(part: Opaque, _message: Message, fitting: Fitting) -> Fitted:
    if part.dialect == fitting.traits.dialect:
        return part
    if part.declares:
        fitting.ledger.approximated(part.where, "its tools are declared from the start")
        drop_extras(part, fitting)
        return None
    if part.refers:
        raise Problem("unsupported", KEPT_ELSEWHERE, where=part.where + part.refers)
    fitting.ledger.dropped(part.where, "a block only its own dialect understands")
    return None


def _fit_data(part: Data, _message: Message, _fitting: Fitting) -> Fitted:
    return part


_FITTERS: dict[type, Callable[[Any, Message, Fitting], Fitted]] = {
    Text: _fit_text,
    Reasoning: _fit_reasoning,
    ToolCall: _fit_call,
    ToolResult: _fit_result,
    Media: fit_media,
    Refusal: _fit_refusal,
    Opaque: _fit_opaque,
    Data: _fit_data,
}
