"""The loss ledger: what a translation could not express, by JSON pointer into the caller's document.

Losses are reported by pointer (a value's `where`) or by core field; they are resolved in the document only when the
ledger is read, so a translation without losses pays nothing. A dropped object or array is reported leaf by leaf.
"""

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Literal

from msgspec import Struct

from dragoman.core.losses import Loss
from dragoman.core.problems import Problem
from dragoman.core.value import Value
from dragoman.wire import json
from dragoman.wire.lookup import Document

_ROOT = ("",)
_BRACKETS = (b"{", b"[")
_DROPPED: Iterable[Literal["dropped"]] = repeat("dropped")


class _Entry(Struct, frozen=True, gc=False):
    pointers: tuple[str, ...]
    what: str
    dropped: bool
    with_leaves: bool


Entries = tuple[_Entry, ...]
"""Losses whose pointers are resolved, ready for another ledger over the same document."""


class Ledger:
    """Collects losses while a document is translated. `pointers` is the source dialect's table of field pointers."""

    _document: Document | None = None
    _earlier_losses: tuple[Loss, ...] = ()

    def __init__(
        self,
        pointers: Mapping[str, tuple[str, ...]],
        document: bytes = b"",
        reported_once: frozenset[str] = frozenset(),
        *,
        exact: bool = False,
    ) -> None:
        self.pointers = pointers
        self._text = document
        self._exact = exact or not document
        """Reported pointers are exact, or there is no document: they need not be looked up in it."""
        self.reported_once = reported_once
        """Reasons that are reported once for a whole document, and have been."""
        self._entries: dict[_Entry, None] = {}
        self._leaves: dict[str, str] = {}
        """The reason for each dropped leaf, by its exact pointer."""

    def __len__(self) -> int:
        return len(self._entries) + len(self._leaves) + len(self._earlier_losses)

    def resume(self, reported_once: frozenset[str], losses: tuple[Loss, ...]) -> None:
        """Take over what was reported for a prefix of the document."""
        self.reported_once |= reported_once
        self._earlier_losses = losses

    def fork(self) -> "Ledger":
        """Return an empty ledger over the same document."""
        return Ledger(self.pointers, self._text, exact=self._exact)

    def entries(self) -> Entries:
        """Return the losses so far, with their pointers resolved in the document."""
        leaves = [_Entry((where,), what, dropped=True, with_leaves=False) for where, what in self._leaves.items()]
        resolved = [
            _Entry(tuple(self._resolve(entry)), entry.what, entry.dropped, with_leaves=False)
            if entry.with_leaves
            else entry
            for entry in self._entries
        ]
        return (*resolved, *leaves)

    def add(self, entries: Entries) -> None:
        """Add the losses of another ledger."""
        self._entries.update(dict.fromkeys(entries))

    def report_dropped(self, where: str, what: str) -> None:
        """Report that everything at and below `where` is dropped."""
        self._entries[_Entry((where,), what, dropped=True, with_leaves=True)] = None

    def report_dropped_value(self, where: str, raw: bytes, what: str) -> None:
        """Report that the value `raw` at `where` is dropped, leaf by leaf even if the ledger has no document."""
        if not self._exact:
            self.report_dropped(where, what)
        elif raw.startswith(_BRACKETS):
            self.report_dropped_leaves(json.find_leaves(raw, where), what)
        else:
            self._leaves.setdefault(where, what)

    def report_dropped_leaves(self, pointers: Iterable[str], what: str) -> None:
        """Report that the values at these pointers are dropped; they must be leaves."""
        if not self._exact:
            for pointer in pointers:
                self.report_dropped(pointer, what)
        elif self._leaves:
            for pointer in pointers:
                self._leaves.setdefault(pointer, what)
        else:
            self._leaves = dict.fromkeys(pointers, what)

    def report_approximated(self, where: str, what: str) -> None:
        """Report that the value at `where` is sent in another form."""
        self._entries[_Entry((where,), what, dropped=False, with_leaves=False)] = None

    def report_approximated_once(self, where: str, what: str) -> None:
        """Report that the value at `where` is sent in another form, unless `what` was reported before."""
        if what not in self.reported_once:
            self.reported_once |= {what}
            self.report_approximated(where, what)

    def report_dropped_field(self, field: str, what: str, owner: Value | None = None) -> None:
        """Report that the core field `field` (of `owner`, for fields of parts and tools) is dropped."""
        self._entries[_Entry(self.list_pointers(field, owner), what, dropped=True, with_leaves=True)] = None

    def report_approximated_field(self, field: str, what: str, owner: Value | None = None) -> None:
        """Report that the core field `field` (of `owner`, for fields of parts and tools) is sent in another form."""
        is_known = field in self.pointers
        self._entries[_Entry(self.list_pointers(field, owner), what, dropped=False, with_leaves=is_known)] = None

    def list_pointers(self, field: str, owner: Value | None = None) -> tuple[str, ...]:
        """Return the pointers at which `field` may be in the document."""
        if owner is None:
            return self.pointers.get(field) or _ROOT
        base = owner.where
        return tuple(base + pointer for pointer in self.pointers.get(field, ())) or (base,)

    def find_pointer(self, field: str, owner: Value | None = None) -> str:
        """Return the pointer at which `field` is in the document, or the first candidate if it is absent."""
        candidates = self.list_pointers(field, owner)
        first = candidates[0]
        if len(candidates) == 1:
            return first
        found = (candidate for candidate in candidates if self._find(candidate) is not None)
        return next(found, first)

    @property
    def has_no_document(self) -> bool:
        """There is no document to look into: the bytes of a stream are not kept."""
        return not self._text

    def has(self, where: str) -> bool:
        """Return whether the document has a value at `where`."""
        return self._find(where) is not None

    def losses(self) -> tuple[Loss, ...]:
        """Return all losses, each with an exact pointer, in the order of the pointers."""
        dropped = self._leaves
        if not self._entries and not self._earlier_losses:
            pointers = sorted(dropped)
            return tuple(map(Loss, pointers, map(dropped.__getitem__, pointers), _DROPPED))
        dropped = dropped.copy()
        approximated: dict[str, list[str]] = {}
        for entry in self._entries:
            for where in self._resolve(entry) if entry.with_leaves else entry.pointers:
                # A leaf is dropped once; a value may be approximated for several reasons.
                if entry.dropped:
                    dropped.setdefault(where, entry.what)
                elif entry.what not in (reasons := approximated.setdefault(where, [])):
                    reasons.append(entry.what)
        losses = [*self._earlier_losses]
        for where, what in dropped.items():
            losses.append(Loss(where, what, "dropped"))
        for where, reasons in approximated.items():
            losses.append(Loss(where, "; ".join(reasons), "approximated"))
        losses.sort()
        return tuple(losses)

    def _find(self, where: str) -> tuple[str, bytes] | None:
        if not self._text:
            return None
        if self._document is None:
            self._document = Document(self._text)
        return self._document.find(where)

    def _resolve(self, entry: _Entry) -> list[str]:
        found: list[str] = []
        for candidate in entry.pointers:
            match = self._find(candidate)
            if match is not None:
                found.extend(json.find_leaves(match[1], match[0]))
        return found or [entry.pointers[0]]


def reject_losses(losses: tuple[Loss, ...], document: str = "request") -> None:
    """Raise a `Problem` that lists the losses, if there are any; strict mode calls it."""
    messages = [f"{loss.kind} {loss.where or '/'}: {loss.what}" for loss in losses]
    if messages:
        more = f" (and {len(messages) - 20} more)" if len(messages) > 20 else ""
        message = f"strict mode: the {document} cannot be translated without loss: {'; '.join(messages[:20])}{more}"
        raise Problem("unsupported", message, where=next(loss.where for loss in losses))
