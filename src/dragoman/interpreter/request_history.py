"""Parse a long conversation with the prefix cache: only its new messages are parsed, adapted and rendered.

A history can be split between a user message and the assistant message that answers it. The messages before such a
split, if every call has its result there, are translated the same way whatever follows. So they are translated by
themselves and stored in the prefix cache; the rest is the open turn. Unusual histories (an id used on both sides of the
split, a call without its result) are translated whole.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Raw, structs

from dragoman.core.parts import ToolCall, ToolResult
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, Dialect, ReadTools
from dragoman.interpreter.adapt import adapt_turns, has_envelope
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.cache_marks import are_marks_compatible
from dragoman.interpreter.ledger import open_request_ledger
from dragoman.interpreter.prefix_cache import NO_PREFIX, Prefix, PrefixCache, Scope
from dragoman.interpreter.signature_envelopes import open_envelopes
from dragoman.interpreter.signatures import find_unknown_ids, find_unsigned_sections
from dragoman.interpreter.translation import Links, TranslationTask
from dragoman.interpreter.undo import Arguments
from dragoman.wire import array, json

_CACHE_MARKERS = (b"prompt_cache_breakpoint", b"cache_control")
"""One of these is in every body with cache marks: the field names of OpenAI and Anthropic."""
_CALLS_AND_RESULTS = (ToolCall, ToolResult)


class RequestHistory:
    """A parsed request and the cached prefix of its history."""

    _prefix = NO_PREFIX
    _start = 0
    """The offset in the body at which the items of the history start."""
    _new_items: Sequence[Raw] = ()
    """The items after the cached prefix; empty if no prefix is to be stored."""
    _tail = 0
    """The number of bytes of the body after the last item of the history."""

    unconfirmed: frozenset[str] = frozenset()
    """Ids of sections in the cached prefix that were treated as unsigned, and that the signer must still look up."""

    def __init__(self, task: TranslationTask, cache: PrefixCache, read_tools: ReadTools) -> None:
        self._signer = task.signer if task.signer is not None and not task.signer.is_empty else None
        self._call = task.call
        self._source = task.source
        self._cache = cache
        self._scope = self._build_scope(task)
        self._read_tools = read_tools
        self.request = self._parse()

    def _build_scope(self, task: TranslationTask) -> Scope:
        # Signatures belong to one owner, and fetched links become other parts than links that are sent as URLs.
        owner = "" if self._signer is None else f"signed for {self._signer.scope}"
        links = "" if task.links is None else f"links taken: {task.links.upstream_fetches}"
        return task.source.name, task.target.name, task.model, owner, links

    @property
    def prefix_length(self) -> int:
        """The number of messages of the request before its new messages."""
        return self._prefix.find_end(self.request.messages) if self._prefix is not NO_PREFIX else 0

    def _parse(self) -> Request:
        call, source, cache = self._call, self._source, self._cache
        start = array.find_top_array(call.body, source.history)
        if start is None:
            return source.parse_request(call, read_tools=self._read_tools)
        self._start = start
        known = cache.find(self._scope, call.body, start)
        if known.unconfirmed:
            known = self._confirm_unsigned(known)
        request = self._parse_new(known) if known is not NO_PREFIX else None
        if request is None:
            request = source.parse_request(call, read_tools=self._read_tools)
            self._new_items, self._tail = array.read_items(call.body, source.history, start) or ([], 0)
        return request

    def _confirm_unsigned(self, prefix: Prefix) -> Prefix:
        """Return the prefix, or `NO_PREFIX` if a signature has been found for one of its sections."""
        signer = self._signer
        if signer is None or any(signer.find_signatures(call_id) for call_id in prefix.unconfirmed):
            return NO_PREFIX
        self.unconfirmed = frozenset(
            [call_id for call_id in prefix.unconfirmed if signer.find_signatures(call_id) is None]
        )
        return prefix

    def _parse_new(self, prefix: Prefix) -> Request | None:
        """Parse the request without its cached prefix, then add the prefix's messages; None if that is not possible."""
        call, source, start = self._call, self._source, self._start
        following = array.find_next_item(call.body, start + len(prefix.items))
        if following is None:
            return None
        shorter = call.body[:start] + call.body[following:]
        try:
            found = array.read_items(shorter, source.history, start)
            request = source.parse_request(
                Call(shorter, call.model, call.stream), first=prefix.length, read_tools=self._read_tools
            )
        except (Problem, json.Malformed):
            return None  # an error must have pointers into the whole document
        new, tail = found or ([], 0)
        outer = len(request.messages) - len(new)
        answer = open_envelopes(request.messages[outer : outer + 1])
        if not answer or answer[0].role != "assistant":
            return None
        self._prefix, self._new_items, self._tail = prefix, new, tail
        messages = (*request.messages[:outer], *prefix.messages, *request.messages[outer:])
        return structs.replace(request, messages=messages)

    def translate_prefix(
        self,
        messages: tuple[Message, ...],
        target: Dialect,
        traits: Traits,
        history_changes: Arguments,
        links: Links | None,
    ) -> Prefix:
        """Translate and store all but the open turn, and return it; `NO_PREFIX` if all must be translated as one.

        `messages` are those of the request, with their signatures. `history_changes` are the changes to the arguments
        of calls that the converted schemas of the current tools require.
        """
        known = self._prefix
        is_alike = known.traits is traits and known.history_changes == history_changes
        if not self._new_items or (known is not NO_PREFIX and not is_alike):
            return NO_PREFIX
        first = len(messages) - len(self._new_items)
        begin = max(first, count_leading_systems(messages))
        split = next((at for at in range(len(messages) - 1, begin, -1) if _can_split_at(messages, at)), begin)
        segment = messages[begin:split]
        ids = _add_paired_ids(segment, known.ids)
        if (
            ids is None
            or not _is_independent(messages[split:], ids)
            or not self._are_marks_compatible(messages, traits)
        ):
            return NO_PREFIX
        if not segment:
            return known
        if has_envelope(segment) and _count_unnamed(segment):
            return NO_PREFIX  # opening envelopes can change the runs by which generated ids are numbered
        body, start = self._call.body, self._start
        end = array.find_end_before(body, len(body) - self._tail, self._new_items[split - first :])
        read = messages[first - len(known.messages) : split]
        longer = structs.replace(
            known,
            items=body[start:end],
            length=len(read),
            messages=read,
            traits=traits,
            history_changes=history_changes,
            ids=ids,
            unconfirmed=self.unconfirmed | self._find_unconfirmed(segment),
        )
        try:
            prefix = self._translate(segment, longer, target, links)
        except Problem:
            return NO_PREFIX  # translating the whole request reports the first of its errors
        if links is not None and links.missing:
            return NO_PREFIX
        self._cache.store(self._scope, prefix, known)
        return prefix

    def _find_unconfirmed(self, segment: tuple[Message, ...]) -> frozenset[str]:
        signer = self._signer
        return (
            frozenset(find_unknown_ids(find_unsigned_sections(segment), signer)) if signer is not None else frozenset()
        )

    def _are_marks_compatible(self, messages: tuple[Message, ...], traits: Traits) -> bool:
        """Return whether the cache marks on the two sides of a split do not affect each other."""
        if traits.cache_marks_max is None:
            return True
        body = self._call.body
        return not any(marker in body for marker in _CACHE_MARKERS) or are_marks_compatible(
            messages, traits.cache_marks_max
        )

    def _translate(self, segment: tuple[Message, ...], longer: Prefix, target: Dialect, links: Links | None) -> Prefix:
        """Translate the messages by which a prefix is longer than the cached one."""
        traits = longer.traits
        assert traits is not None  # noqa: S101  it is set where a prefix is made longer
        ledger = open_request_ledger(self._source, self._call.body)
        ledger.resume(longer.reported_once)
        adaptation = Adaptation(
            traits, ledger, self._source.issuer, history_changes=longer.history_changes, links=links
        )
        adaptation.declared = self.request.tools
        adaptation.runs, adaptation.unnamed, adaptation.calls = longer.runs, longer.unnamed, self._prefix.call_count
        turns = adapt_turns(segment, adaptation, is_start=self._prefix is NO_PREFIX)
        body = target.render_request(Request(model="", messages=turns), traits).body
        # A request with only messages ends with its history.
        history = body[array.find_top_array(body, target.history) : -len(b"]}")]
        return structs.replace(
            longer,
            written=b",".join([items for items in (longer.written, history) if items]),
            has_cache_marks=longer.has_cache_marks or adaptation.has_cache_marks,
            names={**longer.names, **adaptation.names},
            losses=tuple(sorted((*longer.losses, *ledger.losses()))),
            reported_once=ledger.reported_once,
            runs=longer.runs + _count_runs(segment),
            unnamed=longer.unnamed + _count_unnamed(segment),
        )


def _can_split_at(messages: tuple[Message, ...], at: int) -> bool:
    return messages[at].role == "assistant" and messages[at - 1].role == "user"


def _count_runs(messages: tuple[Message, ...]) -> int:
    """Count the runs of consecutive assistant messages."""
    roles = [message.role for message in messages]
    return sum(role == "assistant" != before for before, role in zip(["", *roles], roles, strict=False))


def _count_unnamed(messages: tuple[Message, ...]) -> int:
    """Count the calls without an id."""
    return sum(isinstance(part, ToolCall) and not part.id for part in _list_calls_and_results(messages))


def _add_paired_ids(messages: tuple[Message, ...], call_ids: frozenset[str]) -> frozenset[str] | None:
    """Return `call_ids` and the ids of the messages' calls; None unless each is new and every call has its result here.

    Calls without an id, as Gemini's clients send them, have their results in the next turn, matched by name.
    """
    calls: list[str] = []
    results: set[str] = set()
    unnamed: Counter[str] = Counter()
    for message in messages:
        if message.role == "assistant" and any(unnamed.values()):
            return None
        for part in message.parts:
            if isinstance(part, ToolCall):
                if part.id:
                    calls.append(part.id)
                else:
                    unnamed[part.name] += 1
            elif isinstance(part, ToolResult):
                if part.call_id:
                    results.add(part.call_id)
                elif unnamed[part.name] < 1:
                    return None
                else:
                    unnamed[part.name] -= 1
    ids = set(calls)
    is_whole = len(ids) == len(calls) and ids == results and ids.isdisjoint(call_ids) and not any(unnamed.values())
    return call_ids | ids if is_whole else None


def _is_independent(messages: tuple[Message, ...], call_ids: frozenset[str]) -> bool:
    """Return whether an open turn uses none of the ids of the calls before it."""
    ids = [part.id if isinstance(part, ToolCall) else part.call_id for part in _list_calls_and_results(messages)]
    return call_ids.isdisjoint(ids)


def _list_calls_and_results(messages: tuple[Message, ...]) -> Iterable[ToolCall | ToolResult]:
    return [part for message in messages for part in message.parts if isinstance(part, _CALLS_AND_RESULTS)]
