"""Translate core values: requests that were built or extended by the program, and fragments of requests.

What the program added to a request has no pointer in the client's document. It gets one below `/dragoman`, so that its
losses differ from those of the client's own content. For a target of the client's own dialect, the client's content is
not changed, and only what was added is adapted. A fragment (tools, a tool choice, messages) is parsed and rendered as
part of the smallest request that contains it, by the same code as whole requests.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Literal

from msgspec import Struct, structs

from dragoman.core.losses import Loss, Strict
from dragoman.core.parts import AnyPart, Text, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, Request, Tool, ToolChoice
from dragoman.core.response import Response
from dragoman.core.traits import TextCalls, Traits
from dragoman.core.value import Extras, Value
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import DIALECTS, dialect_named
from dragoman.interpreter.adapt import adapt, adapt_turns, has_envelope
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.cache_marks import has_marks
from dragoman.interpreter.ledger import Ledger, open_request_ledger
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.pairing import identify_reply, identify_request, pair_calls
from dragoman.interpreter.same_dialect import adapt_to_model
from dragoman.interpreter.signature_envelopes import remove_foreign_envelopes
from dragoman.interpreter.signatures import find_unsigned_sections, restore_signatures
from dragoman.interpreter.text_call_prompt import describe_tools
from dragoman.interpreter.tools import adapt_request_tools
from dragoman.interpreter.translate import CACHES, complete_request, render
from dragoman.interpreter.translation import Links, SignatureLookup, Translation, TranslationTask
from dragoman.interpreter.turns import sign_steps
from dragoman.interpreter.undo import Undo
from dragoman.wire import json
from dragoman.wire.lookup import lookup
from dragoman.wire.splice import graft

ADDED_POINTER = "/dragoman"
_CORE_POINTERS = {
    field: (f"/{field.replace('.', '/')}",) for dialect in DIALECTS.values() for field in dialect.pointers
}
"""The pointer of each core field, for a request that did not come from a document of any dialect."""
_FOLLOWING = Message(role="user", parts=(Text(text="(more follows)"),), where=ADDED_POINTER)


class TranslationOptions(Struct, frozen=True, kw_only=True):
    """Where a request comes from, and the options of its translation; see `translate_request`."""

    source: str = ""
    """The dialect the request was parsed from; "" for one that the program built."""
    document: bytes = b""
    """The body the request was parsed from."""
    strict: Strict = False
    form: str = ""
    signer: SignatureLookup | None = None
    links: Links | None = None
    text_calls: TextCalls = ""
    cache_marks: bool = False
    server: str = ""


def translate_core_request(request: Request, target: str, model: str, options: TranslationOptions) -> Translation:
    """Translate a core request to the dialect `target`, for its model `model`."""
    target_dialect = dialect_named(target)
    source_dialect = dialect_named(options.source) if options.source else None
    traits = traits_for(target, model, options.text_calls, options.server)
    ledger = Ledger(_CORE_POINTERS) if source_dialect is None else open_request_ledger(source_dialect, options.document)
    whole = _restore_signatures(
        complete_request(
            _set_added_pointers(request), source_dialect if source_dialect is not target_dialect else None, ledger
        ),
        options.signer,
        traits,
    )
    if source_dialect is target_dialect:
        prompt = describe_tools(whole, target_dialect.issuer, traits, ledger) if options.text_calls else None
        adapted, undo = _adapt_added(
            whole if prompt is None else prompt.request, target_dialect, traits, ledger, options.links
        )
        undo = undo if prompt is None or prompt.undo is None else prompt.undo
        if options.cache_marks and traits.cache_needs_marks and not has_marks(whole, options.document):
            adapted = structs.replace(adapted, marks_ends=True)
    else:
        issuer = source_dialect.issuer if source_dialect is not None else ""
        adaptation = Adaptation(traits, ledger, issuer, links=options.links, adds_cache_marks=options.cache_marks)
        adapted, undo = adapt(whole, adaptation)
    call = render(structs.replace(adapted, model=model), traits, target_dialect, options.form)
    if source_dialect is target_dialect and model != request.model and not options.text_calls:
        task = TranslationTask(call, target_dialect, target_dialect, model, server=options.server)
        call = adapt_to_model(task, call, ledger, CACHES.tools)
    losses = ledger.losses() if len(ledger) else ()
    if options.strict:
        # Strict mode is about the client's own request, not about content that the gateway added.
        own = [loss for loss in losses if source_dialect is None or not loss.where.startswith(ADDED_POINTER)]
        reject_losses(own, strict=options.strict)
    return Translation(call=call, losses=losses, undo=undo, request=request)


def _set_added_pointers(request: Request) -> Request:
    """Give messages and tools that have no pointer one below `/dragoman`, so that losses can be reported there."""
    messages = tuple(
        message if message.where else _set_pointers(message, f"{ADDED_POINTER}/messages/{at}")
        for at, message in enumerate(request.messages)
    )
    tools = tuple(
        tool if tool.where else structs.replace(tool, where=f"{ADDED_POINTER}/tools/{at}")
        for at, tool in enumerate(request.tools)
    )
    return structs.replace(request, messages=messages, tools=tools)


def _set_pointers(message: Message, where: str) -> Message:
    parts = tuple(_set_part_pointer(part, f"{where}/parts/{at}") for at, part in enumerate(message.parts))
    return structs.replace(message, parts=parts, where=where)


def _set_part_pointer(part: AnyPart, where: str) -> AnyPart:
    # Parts of a model's turn have pointers into its reply, which is another document.
    if isinstance(part, ToolResult):
        content = tuple(structs.replace(item, where=f"{where}/content/{at}") for at, item in enumerate(part.content))
        return structs.replace(part, content=content, where=where)
    return structs.replace(part, where=where)


def _restore_signatures(request: Request, signer: SignatureLookup | None, traits: Traits) -> Request:
    if signer is None or signer.is_empty:
        return request
    messages = restore_signatures(request.messages, find_unsigned_sections(request.messages), signer, traits)
    return request if messages is request.messages else structs.replace(request, messages=messages)


def _adapt_added(
    request: Request, dialect: Dialect, traits: Traits, ledger: Ledger, links: Links | None
) -> tuple[Request, Undo]:
    """Adapt only what was added to a request whose target has the client's own dialect."""
    adaptation = Adaptation(traits, ledger, dialect.issuer, links=links)
    tools = _adapt_added_tools(request, adaptation)
    messages: list[Message] = []
    for is_added, run in groupby(request.messages, key=_is_added):
        group = tuple(run)
        is_last = group[-1] is request.messages[-1]
        messages.extend(_adapt_group(group, adaptation, is_last=is_last) if is_added else group)
    turns = tuple(pair_calls(messages, traits, ledger))
    if has_envelope(turns):
        turns = remove_foreign_envelopes(turns, dialect.issuer, ledger)
    # The client may have received only the second call of a step, and the first is the one that is signed.
    turns = sign_steps(turns, traits, ledger)
    choice = _alias_choice(request.tool_choice, adaptation.alias_tool, request)
    kept = {**dict(traits.unkept), **(request.extras.fields if request.extras is not None else {})}
    if request.stream:
        kept.update(traits.stream_fields)
    extras = Extras(dialect.name, kept) if kept else None
    return structs.replace(
        request, messages=turns, tools=tools, tool_choice=choice, extras=extras
    ), adaptation.build_undo()


def _is_added(value: Value) -> bool:
    return value.where.startswith(ADDED_POINTER)


def _adapt_group(messages: tuple[Message, ...], adaptation: Adaptation, *, is_last: bool) -> tuple[Message, ...]:
    """Adapt messages as the target's turns; a group that others follow need not end with the user."""
    if is_last or messages[-1].role == "user":
        return adapt_turns(messages, adaptation, is_start=False)
    return adapt_turns((*messages, _FOLLOWING), adaptation, is_start=False)[:-1]


def _adapt_added_tools(request: Request, adaptation: Adaptation) -> tuple[AnyTool, ...]:
    added = tuple(tool for tool in request.tools if isinstance(tool, Tool) and _is_added(tool))
    if not added:
        return request.tools
    adapted, _ = adapt_request_tools(Request(model=request.model, messages=(), tools=added), adaptation)
    by_pointer = {tool.where: tool for tool in adapted}
    return tuple(
        by_pointer.get(tool.where, tool) for tool in request.tools if not _is_added(tool) or tool.where in by_pointer
    )


def _alias_choice(choice: ToolChoice | None, alias: Callable[[str], str], request: Request) -> ToolChoice | None:
    """Replace the names of added tools in a tool choice by their aliases at the target."""
    if choice is None or not choice.names:
        return choice
    added = {tool.name for tool in request.tools if isinstance(tool, Tool) and _is_added(tool)}
    names = tuple(alias(name) if name in added else name for name in choice.names)
    return choice if names == choice.names else structs.replace(choice, names=names)


Fragment = Literal["tools", "tool_choice", "messages"]


def request_from(body: bytes, dialect: str, *, model: str = "", stream: bool = False) -> Request:
    """Parse a whole request; `model` and `stream` are for dialects that have them in the URL.

    Every call has an id: calls that came without one get a generated one, and their results the same.
    """
    return identify_request(dialect_named(dialect).parse_request(Call(body, model, stream)))


def response_from(body: bytes, dialect: str) -> Response:
    """Parse a whole reply. Every call has an id: one that came without one gets a generated one."""
    return identify_reply(dialect_named(dialect).parse_response(body))


def tools_from(dialect: str, tools: bytes) -> tuple[AnyTool, ...]:
    """Parse the tools of a request: the JSON of its `tools` member."""
    return _parse_fragment(dialect_named(dialect), "tools", tools).tools


def choice_from(dialect: str, choice: bytes) -> ToolChoice | None:
    """Parse a tool choice: the JSON of `tool_choice`, or of Gemini's `functionCallingConfig`."""
    return _parse_fragment(dialect_named(dialect), "tool_choice", choice).tool_choice


def messages_from(dialect: str, messages: bytes) -> tuple[Message, ...]:
    """Parse messages with their calls and results: the JSON of `messages`, `input` or `contents`."""
    return _parse_fragment(dialect_named(dialect), "messages", messages).messages


def tools_to(dialect: str, tools: Sequence[AnyTool], model: str = "") -> tuple[bytes, tuple[Loss, ...]]:
    """Render tools for `model`; return the JSON and the losses."""
    return _render_fragment(dialect, Request(model=model, messages=(), tools=tuple(tools)), "tools", b"[]")


def choice_to(
    dialect: str, choice: ToolChoice, tools: Sequence[AnyTool], model: str = ""
) -> tuple[bytes, tuple[Loss, ...]]:
    """Render a choice among `tools`; `null` if the dialect needs no field for it. Return the JSON and the losses.

    In Chat and Responses, one call at a time is a separate field (`parallel_tool_calls`): it is reported as a loss.
    """
    request = Request(model=model, messages=(), tools=tuple(tools), tool_choice=choice)
    return _render_fragment(dialect, request, "tool_choice", b"null")


def messages_to(dialect: str, messages: Sequence[Message], model: str = "") -> tuple[bytes, tuple[Loss, ...]]:
    """Render messages with their calls and results; return the JSON and the losses."""
    return _render_fragment(dialect, Request(model=model, messages=tuple(messages)), "messages", b"[]")


def _find_fragment_pointer(dialect: Dialect, fragment: Fragment) -> str:
    return dialect.pointers[fragment][0]


def _parse_fragment(dialect: Dialect, fragment: Fragment, value: bytes) -> Request:
    if not json.is_json(value):
        raise Problem("invalid_request", "the value is not JSON", where=_find_fragment_pointer(dialect, fragment))
    body = graft(
        b"{}",
        {_find_fragment_pointer(dialect, "messages"): b"[]", "/model": b'""'}
        | {_find_fragment_pointer(dialect, fragment): value},
    )
    return dialect.parse_request(Call(body))


def _render_fragment(
    dialect: str, request: Request, fragment: Fragment, default: bytes
) -> tuple[bytes, tuple[Loss, ...]]:
    target_dialect = dialect_named(dialect)
    traits = traits_for(dialect, request.model)
    ledger = Ledger({})
    # A fragment may come from anywhere in a conversation, so it may start and end with any role.
    relaxed = structs.replace(traits, starts_with_user=False, prefill=True, stub_tools=False)
    adapted, _ = adapt(request, Adaptation(relaxed, ledger, ""))
    body = target_dialect.render_request(adapted, traits).body
    pointer = _find_fragment_pointer(target_dialect, fragment)
    found = lookup(body, pointer)
    if request.tool_choice is not None and request.tool_choice.parallel is False:
        for switch in target_dialect.pointers.get("tool_choice.parallel", ()):
            if not switch.startswith(f"{pointer}/") and lookup(body, switch) is not None:
                ledger.report_dropped(
                    request.tool_choice.where, f"sent in another field of the request: {switch} is false"
                )
    return (found[1] if found is not None else default), ledger.losses()
