"""Translate a request from one dialect to another: parse, adapt (which reports the losses), render.

For a target of its own dialect a request is forwarded as bytes; see `passthrough`. `errors` translates errors.
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, partial

from msgspec import Struct, structs

from dragoman.core.losses import Loss, Strict
from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import AnyTool, Message, Request, Tool
from dragoman.core.traits import TextCalls, Traits
from dragoman.dialects.record import Call, Dialect, Tools
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adapt import adapt
from dragoman.interpreter.adaptation import Adaptation, traits_for
from dragoman.interpreter.ledger import Ledger, open_request_ledger
from dragoman.interpreter.loss_report import reject_losses
from dragoman.interpreter.passthrough import adapt_own, pass_on
from dragoman.interpreter.prefix_cache import PrefixCache
from dragoman.interpreter.request_fields import require_one_choice
from dragoman.interpreter.request_history import RequestHistory
from dragoman.interpreter.signatures import (
    UnsignedSection,
    find_unsigned_sections,
    restore_signatures,
)
from dragoman.interpreter.text_call_prompt import describe_tools
from dragoman.interpreter.tools import DECLARED_TWICE
from dragoman.interpreter.tools_cache import ToolsCache, ToolSet
from dragoman.interpreter.translation import Links, SignatureLookup, Translation, TranslationTask
from dragoman.interpreter.turns import CONTINUED
from dragoman.interpreter.undo import NO_UNDO
from dragoman.wire.json import MAX_NESTING, NESTED_TOO_DEEPLY, is_nested_too_deeply


class Caches(Struct, frozen=True):
    """The two caches of request translation."""

    tools: ToolsCache
    prefixes: PrefixCache


CACHES = Caches(ToolsCache(), PrefixCache())
"""The caches of this process."""


class ParsedRequest:
    """A request that is parsed but not yet translated to another dialect."""

    tool_set: ToolSet | None = None
    _history: RequestHistory | None = None
    _known_count = 0
    """The number of messages before the new ones: system messages and the cached prefix."""

    def __init__(self, task: TranslationTask, caches: Caches) -> None:
        self._task = task
        self._tools = caches.tools
        call, source = task.call, task.source
        if len(call.body) < 2 * caches.prefixes.min_bytes:
            self.request = source.parse_request(call, read_tools=self._read_tools)
            """The request as the client sent it, without stored signatures."""
        else:
            history = RequestHistory(task, caches.prefixes, self._read_tools)
            self._history, self.request, self._known_count = history, history.request, history.prefix_length

    @property
    def has_answers(self) -> bool:
        """Whether the history has answers of a model."""
        return "assistant" in [message.role for message in self.request.messages]

    @cached_property
    def unsigned(self) -> Sequence[UnsignedSection]:
        """Sections in the new messages that came without signatures."""
        return find_unsigned_sections(self._get_new_messages()) if self._task.signer is not None else ()

    @property
    def unconfirmed(self) -> Collection[str]:
        """The ids of sections in the cached prefix that were not looked up; see `RequestHistory`."""
        return self._history.unconfirmed if self._history is not None else ()

    def _read_tools(self, raw: bytes, where: str) -> Tools:
        self.tool_set = self._tools.read(self._task.source, raw, where)
        return self.tool_set.tools

    def _get_new_messages(self) -> tuple[Message, ...]:
        messages = self.request.messages
        return messages[self._known_count :] if self._known_count else messages

    def translate(self, links: Links | None) -> Translation:
        """Translate the request with the media fetched for its links; raise `MissingLinks` for those to be fetched."""
        task = self._task
        source, target = task.source, task.target
        traits = traits_for(target.name, task.model or self.request.model, "", task.server)
        signer = task.signer
        request = self.request if signer is None or signer.is_empty else self._restore_signatures(traits, signer)
        ledger = open_request_ledger(source, task.call.body)
        whole = request
        if not request.messages or source.read_declared_tools is not None:
            whole = complete_request(request, source, ledger)
        tool_set, tools_cache = self.tool_set, self._tools
        adaptation = Adaptation(
            traits, ledger, source.issuer, task.model, links=links, tool_set=tool_set, tools_cache=tools_cache
        )
        adaptation.adds_cache_marks, adaptation.turn_functions = task.cache_marks, task.turn_functions
        prefix_of = None
        if self._history is not None:
            prefix_of = partial(self._history.translate_prefix, whole.messages, target, traits, links=links)
        adapted, undo = adapt(whole, adaptation, prefix_of)
        call, losses = _render(adapted, traits, ledger, task)
        return Translation(call=call, losses=losses, undo=undo, request=request, tool_set=self.tool_set)

    def _restore_signatures(self, traits: Traits, signer: SignatureLookup) -> Request:
        """Return the request with what its new messages came without; the cached prefix has that already."""
        request = self.request
        if not self.unsigned:
            return request
        new = self._get_new_messages()
        signed = restore_signatures(new, self.unsigned, signer, traits)
        if signed is new:
            return request
        return structs.replace(request, messages=(*request.messages[: self._known_count], *signed))


class PendingRequest(Struct, frozen=True):
    """A request that is parsed only when it is translated; see `ParsedRequest`."""

    translate: Callable[[Links | None], Translation]
    unsigned: Sequence[UnsignedSection] = ()
    unconfirmed: Collection[str] = ()
    has_answers: bool = True
    request: Request | None = None
    tool_set: ToolSet | None = None


def translate_request(  # noqa: PLR0913  a call, two dialects, and independent options
    call: Call,
    source: str,
    target: str,
    *,
    model: str = "",
    strict: Strict = False,
    form: str = "",
    signer: SignatureLookup | None = None,
    links: Links | None = None,
    text_calls: TextCalls = "",
    cache_marks: bool = False,
    server: str = "",
) -> Translation:
    """Translate a request of the dialect `source` to `target`, for its model `model` (the request's own if empty).

    `form` names a variant of the target's envelope, such as Gemini's "code_assist". With `strict`, a material loss is
    an error; with "all", any loss is. `signer` returns signatures that the target requires and the caller did not send.
    With `links`, media that the target does not fetch itself is replaced by its fetched content; `MissingLinks` is
    raised for links that must be fetched first. With `text_calls`, the target has no tool support: tools are described
    in the prompt, and calls are parsed from the model's text. With `cache_marks`, a request without any cache mark gets
    some if the target caches only what is marked. `server` names a row of the target's `servers`, such as "vllm" for
    Chat; without it the row is found by the model.
    """
    source_dialect, target_dialect = dialect_named(source), dialect_named(target)
    # What is forwarded in its own dialect to the same model is not parsed.
    is_parsed = source_dialect is not target_dialect or model or form or text_calls
    if is_parsed and is_nested_too_deeply(call.body, MAX_NESTING):
        raise Problem("invalid_request", NESTED_TOO_DEEPLY)
    task = TranslationTask(
        call, source_dialect, target_dialect, model, form, strict, signer, links, text_calls, cache_marks, server=server
    )
    return parse_request(task).translate(links)


def parse_request(task: TranslationTask, caches: Caches | None = None) -> ParsedRequest | PendingRequest:
    """Parse a request; it can be translated when its links are fetched and its missing signatures looked up."""
    if task.text_calls:
        return PendingRequest(partial(_translate_as_text, task))
    if task.source is task.target:
        forward = _put_into_envelope if task.form else pass_on
        return PendingRequest(partial(forward, task, (caches or CACHES).tools))
    return ParsedRequest(task, caches or CACHES)


def complete_request(request: Request, source: Dialect | None, ledger: Ledger) -> Request:
    """Return the request with a first message, if it has none, and with the tools that its history declares."""
    if not request.messages:
        ledger.report_approximated("", f"the request has no messages: a user message {CONTINUED!r} is added")
        request = structs.replace(request, messages=(Message(role="user", parts=(Text(text=CONTINUED),)),))
    declared = (
        source.read_declared_tools(request.messages)
        if source is not None and source.read_declared_tools is not None
        else ()
    )
    if not declared:
        return request
    known, new = {_identify(tool) for tool in request.tools}, list[AnyTool]()
    for tool in declared:
        if tool in request.tools or tool in new:
            continue
        if _identify(tool) in known:
            ledger.report_dropped(tool.where, DECLARED_TWICE)
            continue
        known.add(_identify(tool))
        new.append(tool)
    return structs.replace(request, tools=(*request.tools, *new)) if new else request


def _identify(tool: AnyTool) -> tuple[str, str, bytes]:
    return (tool.namespace, tool.name, b"") if isinstance(tool, Tool) else ("", "", tool.raw)


def _render(adapted: Request, traits: Traits, ledger: Ledger, task: TranslationTask) -> tuple[Call, tuple[Loss, ...]]:
    """Render an adapted request; return it and the losses, or raise a `Problem` for those in strict mode."""
    losses = ledger.losses() if len(ledger) else ()
    if task.strict:
        reject_losses(losses, strict=task.strict)
    return render(adapted, traits, task.target, task.form), losses


def render(adapted: Request, traits: Traits, target: Dialect, form: str) -> Call:
    """Render an adapted request in a variant of the target's envelope, the plain one if `form` is empty."""
    if adapted.spelling or form:
        spelling = frozenset({form}) if form else frozenset[str]()
        adapted = structs.replace(adapted, spelling=adapted.spelling - target.envelopes | spelling)
    return target.render_request(adapted, traits)


def _put_into_envelope(task: TranslationTask, cache: ToolsCache, _links: Links | None) -> Translation:
    """Translate a request of the target's own dialect for a target that takes requests in an envelope."""
    source = task.source
    ledger = open_request_ledger(source, task.call.body)
    request = source.parse_request(adapt_own(task, ledger, cache))
    adapted = structs.replace(request, model=task.model or request.model)
    call, losses = _render(adapted, traits_for(source.name, adapted.model), ledger, task)
    return Translation(call=call, losses=losses, request=request)


def _translate_as_text(task: TranslationTask, links: Links | None) -> Translation:
    """Translate a request for a model without tool support: its tools are described in the prompt.

    The target may have the caller's own dialect. The caches are not used: their entries are for models with tools.
    """
    source, target = task.source, task.target
    ledger = open_request_ledger(source, task.call.body)
    call = adapt_own(task, ledger, CACHES.tools) if source is target else task.call
    request = source.parse_request(call)
    model = task.model or request.model
    traits = traits_for(target.name, model, task.text_calls, task.server)
    whole = complete_request(request, source, ledger)
    if source is target:
        prompt = describe_tools(whole, source.issuer, traits, ledger)
        if prompt is None:
            return parse_request(structs.replace(task, text_calls="")).translate(links)
        # Calls are only detected in the text of one choice.
        require_one_choice(request, traits, ledger)
        adapted, undo = structs.replace(prompt.request, model=model), prompt.undo or NO_UNDO
    else:
        adaptation = Adaptation(traits, ledger, source.issuer, model, links=links)
        adaptation.turn_functions = task.turn_functions
        adapted, undo = adapt(whole, adaptation)
    call, losses = _render(adapted, traits, ledger, task)
    return Translation(call=call, losses=losses, undo=undo, request=request)
