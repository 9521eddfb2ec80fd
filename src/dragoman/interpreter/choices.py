"""Requests for several choices (`n`, `candidateCount`) at targets that generate only one.

Such a request is split into requests for one choice each, and their replies are merged into one with all choices. Both
is done in the client's own dialect, after its replies were rendered: `ChoiceFormat` names the members.
"""

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from msgspec import Raw, structs

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call, ChoiceFormat, Dialect
from dragoman.wire.json import as_object, decode, decode_array, decode_object, encode, one_line
from dragoman.wire.lookup import lookup
from dragoman.wire.pointer import split
from dragoman.wire.splice import remove_member, set_member

_MAX_SEED = (1 << 31) - 1
"""The largest seed that every target accepts."""
_NULL = Raw(b"null")
_DATA = b"data: "
_EVENT = re.compile(rb"(.+?)(\r?\n\r?\n)")
"""One event as the encoders write it: one line, and its end as the vendor writes it."""


class SeveralChoices(Problem):
    """Raised if a request asks for several choices and the target generates one for each request."""

    def __init__(self, count: int, where: str, seed: int | None = None) -> None:
        super().__init__(
            "unsupported",
            f"{count} candidates cannot be requested across dialects: "
            f"ask for 1 candidate and send the request {count} times",
            where=where,
        )
        self.count = count
        self.seed = seed
        """The seed that the target takes; with the same one all choices would be the same."""


def split_request(call: Call, dialect: Dialect, several: SeveralChoices) -> list[Call]:
    """Return one request for each choice; every choice but the first gets a seed of its own."""
    body = call.body
    for pointer in dialect.pointers["candidates"]:
        while (found := lookup(body, pointer)) is not None:
            body = _edit(body, split(found[0]), None)
    single = structs.replace(call, body=body)
    if several.seed is None:
        return [single] * several.count
    step = 1 if several.seed + several.count <= _MAX_SEED else -1
    return [single, *(_set_seed(single, dialect, several.seed + step * index) for index in range(1, several.count))]


def _set_seed(call: Call, dialect: Dialect, seed: int) -> Call:
    body = call.body
    for pointer in dialect.pointers["sampling.seed"]:
        if (found := lookup(body, pointer)) is not None:
            body = _edit(body, split(found[0]), encode(seed))
    return structs.replace(call, body=body)


def _edit(body: bytes, path: Sequence[str], raw: bytes | None) -> bytes:
    """Return an object with the member at `path` set to `raw`, or removed if that is None."""
    name, *rest = path
    if rest:
        return set_member(body, name, _edit(bytes(decode_object(body)[name]), rest, raw))
    return remove_member(body, name) if raw is None else set_member(body, name, raw)


class _Body:
    """A reply or chunk as its members, taken out of their envelope, if they have one."""

    def __init__(self, body: bytes, form: ChoiceFormat) -> None:
        members = decode_object(body)
        self._form = form
        self._outer = members if form.envelope and form.envelope in members else None
        self.members = decode_object(members[form.envelope]) if self._outer is not None else members

    @property
    def choices(self) -> list[Raw] | None:
        """Its choices; None if it has no such member."""
        raw = self.members.get(self._form.choices)
        return decode_array(raw) if raw is not None else None

    @property
    def usage(self) -> Raw | None:
        """Its usage; None if it has none yet."""
        raw = self.members.get(self._form.usage, _NULL)
        return None if raw == _NULL else raw

    def render(self) -> bytes:
        body = encode(self.members)
        return body if self._outer is None else encode({**self._outer, self._form.envelope: Raw(body)})


class ChoiceMerger:
    """Merges the replies with one choice each into one, in the order in which they come.

    Every choice gets its own index, and all of them the id and time of the first. Usage is the sum over all choices so
    far. The events that end a stream are sent once, by `close`.
    """

    def __init__(self, dialect: Dialect) -> None:
        assert dialect.choices is not None  # noqa: S101  only a dialect with this format can ask for several choices
        self._form: ChoiceFormat = dialect.choices
        self._shared: dict[str, Raw] = {}
        self._usage: dict[int, Any] = {}
        """The last usage of each choice."""
        self._usage_event: _Body | None = None
        """The event that has only the usage; it comes once, at the end."""
        self._end_event = b""

    def merge_replies(self, replies: Sequence[bytes]) -> bytes:
        """Return one whole reply with the choices of all `replies`, in their order."""
        bodies = [self._merge(index, reply) for index, reply in enumerate(replies)]
        choices = [choice for body in bodies for choice in body.choices or ()]
        # A blocked prompt has no choice; the members of a reply with one describe the whole.
        whole = next((body for body in bodies if body.choices), bodies[0])
        if choices:
            whole.members[self._form.choices] = Raw(encode(choices))
        if self._usage:
            whole.members[self._form.usage] = self._sum_usage()
        return whole.render()

    def feed(self, index: int, events: bytes) -> bytes:
        """Return the events of one choice as a client receives them that gets several."""
        return b"".join([self._merge_event(index, *event.groups()) for event in _EVENT.finditer(events)])

    def close(self) -> bytes:
        """Return the last events of the stream."""
        last = self._usage_event
        if last is None:
            return self._end_event
        last.members[self._form.usage] = self._sum_usage()
        return _DATA + one_line(last.render()) + b"\n\n" + self._end_event

    def _merge_event(self, index: int, event: bytes, end: bytes) -> bytes:
        if event == self._form.end_event:
            self._end_event = event + end
            return b""
        body = self._merge(index, event.removeprefix(_DATA))
        if body.choices == [] and body.usage is not None:
            self._usage_event = body
            return b""
        return _DATA + one_line(body.render()) + end

    def _merge(self, index: int, raw: bytes) -> _Body:
        """Return a reply or chunk with the index of its choice, and with what all choices share."""
        body = _Body(raw, self._form)
        if choices := body.choices:
            numbered = [{**decode_object(choice), "index": index} for choice in choices]
            body.members[self._form.choices] = Raw(encode(numbered))
        for name in self._form.shared & body.members.keys():
            body.members[name] = self._shared.setdefault(name, body.members[name])
        if (usage := body.usage) is not None:
            self._usage[index] = decode(usage)
            body.members[self._form.usage] = self._sum_usage()
        return body

    def _sum_usage(self) -> Raw:
        return Raw(encode(sum_counts(self._usage.values())))


def sum_counts(values: Iterable[Any]) -> Any:
    """Return the sum of JSON values, member by member; of texts, the first.

    The items of a list are counts of one kind each, such as the tokens of a modality; those of the same kind are added.
    """
    return reduce(_add_counts, values)


def _add_counts(first: Any, second: Any) -> Any:
    match first, second:
        case {**one}, {**other}:
            return {name: _add_counts(one.get(name), other.get(name)) for name in {**one, **other}}
        case [*ones], [*others]:
            return _add_items([*ones, *others])
        case _ if _is_number(first) and _is_number(second):
            return first + second
        case _:
            return second if first is None else first


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _add_items(items: list[Any]) -> list[Any]:
    kinds: dict[bytes, Any] = {}
    for item in items:
        members = as_object(item)
        kind = encode({name: value for name, value in members.items() if not _is_number(value)} if members else item)
        kinds[kind] = _add_counts(kinds[kind], item) if kind in kinds else item
    return list(kinds.values())
