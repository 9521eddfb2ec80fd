"""The loss ledger: what a translation could not say, by JSON pointer into the caller's document.

Losses are reported by place (a value's `where`) or by core field; pointers into the document are worked out only when
the ledger is read, so a translation without losses pays nothing. Whatever is dropped whole is told leaf by leaf.
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
"""Losses whose places are worked out, ready for another ledger over the same document."""


class Ledger:
    """Report losses while a document is translated. `pointers` is the source dialect's table of field places."""

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
        """Places are reported as they stand in the document, or there is none: what is known need not be looked up."""
        self.reported_once = reported_once
        """What is told once for a whole document, and was."""
        self._entries: dict[_Entry, None] = {}
        self._leaves: dict[str, str] = {}
        """Leaves that are gone, each behind its exact pointer, and why."""

    def __len__(self) -> int:
        return len(self._entries) + len(self._leaves) + len(self._earlier_losses)

    def resume(self, reported_once: frozenset[str], losses: tuple[Loss, ...]) -> None:
        """Take over what was reported of a beginning of the document."""
        self.reported_once |= reported_once
        self._earlier_losses = losses

    def fork(self) -> "Ledger":
        """Return an empty ledger over the same document."""
        return Ledger(self.pointers, self._text, exact=self._exact)

    def entries(self) -> Entries:
        """Return what was reported so far, with the places it has in the document."""
        leaves = [_Entry((where,), what, dropped=True, with_leaves=False) for where, what in self._leaves.items()]
        placed = [
            _Entry(tuple(self._resolve(entry)), entry.what, entry.dropped, with_leaves=False)
            if entry.with_leaves
            else entry
            for entry in self._entries
        ]
        return (*placed, *leaves)

    def add(self, entries: Entries) -> None:
        """Report what another ledger has reported."""
        self._entries.update(dict.fromkeys(entries))

    def report_dropped(self, where: str, what: str) -> None:
        """Everything at and below `where` is gone."""
        self._entries[_Entry((where,), what, dropped=True, with_leaves=True)] = None

    def report_dropped_value(self, where: str, raw: bytes, what: str) -> None:
        """The value `raw` at `where` is gone: told leaf by leaf even where there is no document to look into."""
        if not self._exact:
            self.report_dropped(where, what)
        elif raw.startswith(_BRACKETS):
            self.report_dropped_leaves(json.find_leaves(raw, where), what)
        else:
            self._leaves.setdefault(where, what)

    def report_dropped_leaves(self, places: Iterable[str], what: str) -> None:
        """What stands at these places is gone, and nothing stands below them."""
        if not self._exact:
            for place in places:
                self.report_dropped(place, what)
        elif self._leaves:
            for place in places:
                self._leaves.setdefault(place, what)
        else:
            self._leaves = dict.fromkeys(places, what)

    def report_approximated(self, where: str, what: str) -> None:
        """What stood at `where` is said in another way."""
        self._entries[_Entry((where,), what, dropped=False, with_leaves=False)] = None

    def report_approximated_once(self, where: str, what: str) -> None:
        """Say `what` only of the first place that it happens to."""
        if what not in self.reported_once:
            self.reported_once |= {what}
            self.report_approximated(where, what)

    def report_dropped_field(self, field: str, what: str, owner: Value | None = None) -> None:
        """The core field `field` (of `owner`, for fields of parts and tools) is gone."""
        self._entries[_Entry(self.list_pointers(field, owner), what, dropped=True, with_leaves=True)] = None

    def report_approximated_field(self, field: str, what: str, owner: Value | None = None) -> None:
        """The core field `field` is said in another way."""
        known = field in self.pointers
        self._entries[_Entry(self.list_pointers(field, owner), what, dropped=False, with_leaves=known)] = None

    def list_pointers(self, field: str, owner: Value | None = None) -> tuple[str, ...]:
        """Return where `field` may stand in the document."""
        if owner is None:
            return self.pointers.get(field) or _ROOT
        base = owner.where
        return tuple(base + pointer for pointer in self.pointers.get(field, ())) or (base,)

    def find_pointer(self, field: str, owner: Value | None = None) -> str:
        """Return where `field` does stand in the document."""
        candidates = self.list_pointers(field, owner)
        first = candidates[0]
        if len(candidates) == 1:
            return first
        found = (candidate for candidate in candidates if self._find(candidate) is not None)
        return next(found, first)

    @property
    def has_no_document(self) -> bool:
        """There is no document to look into: a stream is gone when it has been told."""
        return not self._text

    def has(self, where: str) -> bool:
        """Tell whether something stands at `where` in the document."""
        return self._find(where) is not None

    def losses(self) -> tuple[Loss, ...]:
        """Return all losses, each with an exact pointer, in the order of the pointers."""
        gone = self._leaves
        if not self._entries and not self._earlier_losses:
            places = sorted(gone)
            return tuple(map(Loss, places, map(gone.__getitem__, places), _DROPPED))
        gone = gone.copy()
        bent: dict[str, list[str]] = {}
        for entry in self._entries:
            for where in self._resolve(entry) if entry.with_leaves else entry.pointers:
                # A leaf is gone once; what stays may be said in another way for several reasons.
                if entry.dropped:
                    gone.setdefault(where, entry.what)
                elif entry.what not in (reasons := bent.setdefault(where, [])):
                    reasons.append(entry.what)
        told = [*self._earlier_losses]
        for where, what in gone.items():
            told.append(Loss(where, what, "dropped"))
        for where, reasons in bent.items():
            told.append(Loss(where, "; ".join(reasons), "approximated"))
        told.sort()
        return tuple(told)

    def _find(self, where: str) -> tuple[str, bytes] | None:
        if not self._text:
            return None
        if self._document is None:
            self._document = Document(self._text)
        return self._document.find(where)

    def _resolve(self, entry: _Entry) -> list[str]:
        found: list[str] = []
        for candidate in entry.pointers:
            place = self._find(candidate)
            if place is not None:
                found.extend(json.find_leaves(place[1], place[0]))
        return found or [entry.pointers[0]]


def reject_losses(losses: tuple[Loss, ...], document: str = "request") -> None:
    """Strict mode: raise a `Problem` that names every loss."""
    told = [f"{loss.kind} {loss.where or '/'}: {loss.what}" for loss in losses]
    if told:
        more = f" (and {len(told) - 20} more)" if len(told) > 20 else ""
        message = f"strict mode: the target cannot say this {document}: {'; '.join(told[:20])}{more}"
        raise Problem("unsupported", message, where=next(loss.where for loss in losses))
