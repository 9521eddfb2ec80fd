"""Adapt the less common parts: calls, reasoning, refusals, opaque parts, results that failed or have a cache mark."""

from itertools import chain
from typing import Any

from msgspec import structs

from dragoman.core.parts import (
    AnyPart,
    Content,
    Data,
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Role
from dragoman.core.traits import Traits
from dragoman.core.value import Extras
from dragoman.dialects.registry import DIALECTS
from dragoman.interpreter.adaptation import EMPTY_TEXT_REJECTED, STORED_ELSEWHERE, Adaptation
from dragoman.interpreter.cache_marks import adapt_mark, read_cache_control
from dragoman.interpreter.foreign_fields import drop_extras, report_unknown
from dragoman.interpreter.schema.conversion import convert_history_arguments
from dragoman.interpreter.signature_envelopes import UNSIGNED
from dragoman.interpreter.undo import qualify_name
from dragoman.wire import json

_PARSED = "/function/parsed_arguments"


_PLACEHOLDERS = frozenset(
    {
        "skip_thought_signature_validator",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
        "context_engineering_is_the_way_to_go",
        "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
    }
)


FOREIGN_REASONING = "reasoning of another vendor's model cannot be replayed"
UNSIGNED_REASONING = "reasoning without the target's signature cannot be replayed"


def repeats_arguments(part: Part, pointer: str, raw: bytes) -> bool:
    """Return whether a field only repeats the arguments of a call: OpenAI's SDK sends the parsed arguments back."""
    return isinstance(part, ToolCall) and pointer == _PARSED and json.peek(raw) == json.peek(part.arguments.encode())


def is_placeholder(signature: Signature) -> bool:
    """Return whether a signature is one of Google's documented placeholders for a missing signature."""
    return signature.value in _PLACEHOLDERS


def find_shared_image_fields(source: str, target: str) -> dict[str, str]:
    """Return the fields of an image that mean the same in both dialects, by their pointers in each."""
    source_dialect, target_dialect = DIALECTS.get(source), DIALECTS.get(target)
    if (
        source_dialect is None
        or target_dialect is None
        or source_dialect is target_dialect
        or not source_dialect.image_detail
        or not target_dialect.image_detail
    ):
        return {}
    return {source_dialect.image_detail: target_dialect.image_detail}


def remove_foreign_fields(part: Part, role: Role, adaptation: Adaptation) -> dict[str, Any]:
    """Return the changes that remove from a part what only its source dialect has; report the losses."""
    traits = adaptation.traits
    changes: dict[str, Any] = {}
    cache = part.cache
    mark_pointer = adaptation.ledger.find_pointer("part.cache", part) if cache is not None else ""
    if part.extras is not None and part.extras.dialect != traits.dialect:
        borrowed, lifetime = read_cache_control(part.extras)
        if borrowed is not None and cache is None and traits.cache_marks:
            cache, mark_pointer = lifetime, part.where + borrowed
        else:
            borrowed = None
        image = isinstance(part, Media) and part.kind == "image"
        shared = find_shared_image_fields(part.extras.dialect, traits.dialect) if image else {}
        kept: dict[str, bytes] = {}
        for pointer, raw in part.extras.fields.items():
            if pointer in shared:
                kept[shared[pointer]] = raw
            elif pointer != borrowed and not repeats_arguments(part, pointer, raw):
                report_unknown(
                    part.where + pointer, raw, part.extras.dialect, adaptation.traits.dialect, adaptation.ledger
                )
        changes["extras"] = Extras(traits.dialect, kept) if kept else None
    if cache is not None:
        adapted = adapt_mark(
            cache, mark_pointer, adaptation, in_assistant_turn=role == "assistant" or isinstance(part, ToolCall)
        )
        if adapted != part.cache:
            changes["cache"] = adapted
    if part.signature is not None and part.signature.issuer not in (traits.issuer, traits.reasoning_issuer):
        drop_signature(part, part.signature, adaptation)
        changes["signature"] = None
    return changes


def drop_signature(part: Part, signature: Signature, adaptation: Adaptation) -> None:
    """Report a signature that the target cannot use, unless it is a placeholder for a missing one."""
    if not is_placeholder(signature):
        adaptation.ledger.report_dropped_signature(part, f"signed by {signature.issuer}: only its models can read it")


Adapted = AnyPart | tuple[AnyPart, ...] | None
"""A part after adaptation: one part, several, or none."""


def replace_fields(part: AnyPart, changes: dict[str, Any]) -> AnyPart:
    """Return the part with some fields changed, or the part itself if there are no changes."""
    return structs.replace(part, **changes) if changes else part


def _find_drop_reason(part: Reasoning, traits: Traits) -> str:
    """Return why the target does not get reasoning of the history."""
    if traits.reasoning_text:
        return "the target takes reasoning only as text"
    if not traits.shows_thinking:
        return "the target takes no reasoning in the history"
    return UNSIGNED_REASONING if part.signature is None else FOREIGN_REASONING


def adapt_reasoning(part: Reasoning, message: Message, adaptation: Adaptation) -> Adapted:
    """Keep reasoning that the target accepts back in the history, and drop the rest."""
    traits = adaptation.traits
    issuer = part.signature.issuer if part.signature is not None else ""
    is_returned = bool(issuer) and issuer == traits.reasoning_issuer
    if traits.reasoning_text and (part.texts or is_returned):
        changes = remove_foreign_fields(part, message.role, adaptation)
        if part.signature is not None and not is_returned:
            adaptation.ledger.report_dropped_signature(part, "the target has no field for it")
            changes["signature"] = None
        return replace_fields(part, changes)
    if traits.shows_thinking and part.signature is not None and part.signature.issuer == traits.issuer:
        changes = remove_foreign_fields(part, message.role, adaptation)
        if part.signature.value == UNSIGNED:
            changes["signature"] = None
        return replace_fields(part, changes)
    adaptation.ledger.report_dropped(part.where, _find_drop_reason(part, adaptation.traits))
    return None


def add_mark(content: list[Content], mark: str, result: ToolResult, adaptation: Adaptation) -> list[Content]:
    """Move the cache mark of a result to the last item of its content."""
    match content:
        case [*before, (Text() | Media()) as last]:
            return [*before, structs.replace(last, cache=mark if last.cache is None else last.cache)]
        case [*before, Data(json=value)]:
            return [*before, Text(text=value.decode(), cache=mark)]
        case _:
            adaptation.ledger.report_dropped_field(
                "part.cache", "the target takes no cache mark on a result of this kind", result
            )
            return content


def prefix_error(content: list[Content]) -> list[Content]:
    """Put "Error: " before the content of a failed result; a content of text only becomes one text."""
    texts = [item for item in content if isinstance(item, Text | Data)]
    if len(texts) == len(content) and all(item.cache is None for item in texts):
        return [Text(text="Error: " + "\n".join(map(_content_to_text, texts)))]
    first = content[0]
    if not isinstance(first, Text | Data):
        return [Text(text="Error: "), *content]
    return [Text(text="Error: " + _content_to_text(first), cache=first.cache), *content[1:]]


def _content_to_text(item: Text | Data) -> str:
    return item.text if isinstance(item, Text) else item.json.decode()


def adapt_refusal(part: Refusal, message: Message, adaptation: Adaptation) -> Adapted:
    """Keep a refusal, or turn it into text for a target that has no refusals."""
    if adaptation.traits.refusals:
        return replace_fields(part, remove_foreign_fields(part, message.role, adaptation))
    remove_foreign_fields(part, message.role, adaptation)
    if not part.text:
        return None
    if adaptation.rejects_text(part.text):
        adaptation.ledger.report_dropped(part.where, EMPTY_TEXT_REJECTED)
        return None
    adaptation.ledger.report_approximated(part.where, "a refusal is sent as text")
    return Text(text=part.text, where=part.where)


def adapt_opaque(part: Opaque, _message: Message, adaptation: Adaptation) -> Adapted:
    """Keep an opaque part of the target's own dialect, and drop any other."""
    if part.dialect == adaptation.traits.dialect:
        return part
    if part.declares:
        adaptation.ledger.report_approximated(part.where, "its tools are sent in the tools of the request")
        drop_extras(part, adaptation)
        return None
    if part.refers:
        raise Problem("unsupported", STORED_ELSEWHERE, where=part.where + part.refers)
    if part.is_accounting:
        # It may differ in every request, and would end the prefix that the target's prompt cache knows.
        adaptation.ledger.report_dropped(part.where, "a block for the vendor's own accounting", "informational")
        return None
    adaptation.ledger.report_dropped(part.where, "a block that only its own dialect understands")
    return None


def keep_data(part: Data, _message: Message, _adaptation: Adaptation) -> Adapted:
    """Return JSON data unchanged: every target takes it."""
    return part


def adapt_call(part: ToolCall, message: Message, adaptation: Adaptation) -> Adapted:
    """Return a call with the name, signature and arguments that the target takes."""
    traits = adaptation.traits
    changes: dict[str, Any] = {}
    if part.extras is not None or part.cache is not None:
        changes = remove_foreign_fields(part, message.role, adaptation)
    signature = part.signature
    if signature is not None and not (traits.call_signatures and signature.issuer == traits.issuer):
        drop_signature(part, signature, adaptation)
        changes["signature"] = None
    name = adaptation.alias_call(part)
    if name != part.name:
        changes["name"] = name
    if part.native:
        changes["native"] = ""
    if part.namespace and not traits.namespaces:
        changes["namespace"] = ""
    if part.form == "text" and not traits.custom_tools:
        changes["form"] = "json"
        changes["arguments"] = wrap_free_text(part.arguments)
    elif part.form == "json":
        arguments = convert_arguments(part, adaptation) if adaptation.history_changes else part.arguments
        arguments = _ensure_object(arguments, part, adaptation) if traits.object_arguments else arguments or "{}"
        if arguments is not part.arguments:
            changes["arguments"] = arguments
    return structs.replace(part, **changes) if changes else part


def open_native_result(part: ToolResult) -> ToolResult:
    """Return the result of a vendor's own tool as that of a function: its texts and media, which say all of it."""
    content = [(*item.content,) if isinstance(item, Opaque) else (item,) for item in part.content]
    return structs.replace(part, native="", content=tuple(chain.from_iterable(content)))


def wrap_free_text(text: str) -> str:
    """Return the input of a free-form tool as the arguments of a function."""
    return json.encode({"input": text}).decode()


def convert_arguments(call: ToolCall, adaptation: Adaptation) -> str:
    """Return the arguments in the form that the tool's converted schema requires.

    Adapting the tool has reported the conversion's losses.
    """
    arguments = call.arguments
    for step in adaptation.history_changes.get(qualify_name(call.name, call.namespace), ()):
        if step.converts_history:
            arguments = convert_history_arguments(arguments, step)
    return arguments


def _ensure_object(arguments: str, call: ToolCall, adaptation: Adaptation) -> str:
    if json.is_object(arguments):
        return arguments
    if not arguments.strip():
        return "{}"
    if arguments.strip() == "null":
        # Groq sends null for no arguments.
        adaptation.ledger.report_approximated_field("call.arguments", "null arguments are sent as {}", call)
        return "{}"
    adaptation.ledger.report_approximated_field(
        "call.arguments", "not a JSON object: sent as text under INVALID_JSON", call
    )
    return json.encode({"INVALID_JSON": arguments}).decode()
