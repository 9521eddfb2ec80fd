"""The loss ledger: what a translation could not express, by JSON pointer into the caller's document.

Losses are reported by pointer (a value's `where`) or by core field; they are resolved in the document only when the
ledger is read, so a translation without losses pays nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from dragoman.core.losses import Grade, Loss, LossKind
from dragoman.core.parts import Reasoning
from dragoman.core.value import Value
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.loss_report import merge_losses
from dragoman.wire.lookup import Document, count_leaves, find_leaves

_ROOT = ("",)
_BRACKETS = (b"{", b"[")
_ENVELOPES = ("/request/", "/response/")


class _Entry(Struct, frozen=True, gc=False):
    pointers: tuple[str, ...]
    what: str
    kind: LossKind
    leaves: int = 0
    """The number of leaves at the only pointer; 0 if the pointers are still to be looked up in the document."""
    grade: Grade | None = None
    """The grade, if it does not depend on the pointer."""


Entries = tuple[_Entry, ...]
"""Losses whose pointers are resolved, ready for another ledger over the same document."""


class Ledger(Struct, eq=False):
    """Collects losses while a document is translated."""

    pointers: Mapping[str, tuple[str, ...]]
    """The source dialect's table of field pointers."""
    document: bytes = b""
    informational: frozenset[str] = frozenset()
    """The normalised pointers of fields whose loss is informational."""
    is_reply: bool = False
    exact: bool = False
    """Reported pointers are exact, or there is no document: they need not be looked up in it."""
    by_leaf: bool = False
    """Dropped values are reported leaf by leaf, because there is no document to look the leaves up in later."""
    reported_once: frozenset[str] = frozenset()
    """Reasons that are reported once for a whole document, and have been."""
    _entries: dict[_Entry, None] = {}
    _earlier_losses: tuple[Loss, ...] = ()
    _index: Document | None = None
    """The document, prepared for lookups."""

    def __post_init__(self) -> None:
        self.exact = self.exact or not self.document

    def __len__(self) -> int:
        return len(self._entries) + len(self._earlier_losses)

    def resume(self, reported_once: frozenset[str], losses: tuple[Loss, ...] = ()) -> None:
        """Take over what was reported for a prefix of the document."""
        self.reported_once |= reported_once
        self._earlier_losses = losses

    def fork(self) -> "Ledger":
        """Return an empty ledger over the same document."""
        return Ledger(self.pointers, self.document, self.informational, is_reply=self.is_reply, exact=self.exact)

    def entries(self) -> Entries:
        """Return the losses so far, with their pointers resolved in the document."""
        return tuple(
            [
                _Entry((where,), entry.what, entry.kind, leaves, entry.grade)
                for entry in self._entries
                for where, leaves in self._resolve(entry)
            ]
        )

    def add(self, entries: Entries) -> None:
        """Add the losses of another ledger."""
        self._entries.update(dict.fromkeys(entries))

    def report_dropped(self, where: str, what: str, grade: Grade | None = None) -> None:
        """Report that everything at and below `where` is dropped."""
        self._entries[_Entry((where,), what, "dropped", grade=grade)] = None

    def report_dropped_value(self, where: str, raw: bytes, what: str, shape: str = "") -> None:
        """Report that the value `raw` at `where` is dropped; `shape` is the normalised pointer, if it is known."""
        if not self.exact:
            self.report_dropped(where, what)
        elif self.by_leaf and raw.startswith(_BRACKETS):
            self.report_dropped_leaves(where, [*find_leaves(raw, where)], what)
        else:
            leaves = count_leaves(raw) if raw.startswith(_BRACKETS) else 1
            grade = self._find_grade_of(shape) if shape else None
            self._entries[_Entry((where,), what, "dropped", leaves=leaves, grade=grade)] = None

    def report_dropped_leaves(self, where: str, leaves: Sequence[str], what: str) -> None:
        """Report that the value at `where`, which is in no document and has these leaves, is dropped."""
        if self.by_leaf:
            grade = self._find_grade(where)
            for leaf in leaves:
                self._entries[_Entry((leaf,), what, "dropped", leaves=1, grade=grade)] = None
        else:
            self._entries[_Entry((where,), what, "dropped", leaves=len(leaves))] = None

    def report_approximated(self, where: str, what: str, grade: Grade | None = None) -> None:
        """Report that the value at `where` is sent in another form."""
        self._entries[_Entry((where,), what, "approximated", leaves=1, grade=grade)] = None

    def report_approximated_once(self, where: str, what: str) -> None:
        """Report that the value at `where` is sent in another form, unless `what` was reported before."""
        if what not in self.reported_once:
            self.reported_once |= {what}
            self.report_approximated(where, what)

    def report_placeholder_once(self, where: str, what: str) -> None:
        """Report that a placeholder is sent with the value at `where`, unless `what` was reported before.

        The loss is informational: everything that the caller sent is sent.
        """
        if what not in self.reported_once:
            self.reported_once |= {what}
            self._entries[_Entry((where,), what, "approximated", leaves=1, grade="informational")] = None

    def report_dropped_field(
        self, field: str, what: str, owner: Value | None = None, grade: Grade | None = None
    ) -> None:
        """Report that the core field `field` (of `owner`, for fields of parts and tools) is dropped.

        If the dialect has no pointer for the field, its owner is approximated: it is sent without the field.
        """
        has_pointer = field in self.pointers
        pointers, leaves = self.list_pointers(field, owner), 0 if has_pointer else 1
        self._entries[_Entry(pointers, what, "dropped" if has_pointer else "approximated", leaves, grade)] = None

    def report_dropped_signature(self, part: Value, what: str) -> None:
        """Report that the signature of a part of a request is dropped.

        The loss is material only for reasoning: a text or a call is sent, and no other vendor can read its signature.
        """
        grade = None if isinstance(part, Reasoning) else "informational"
        self.report_dropped_field("part.signature", what, part, grade)

    def report_approximated_field(
        self, field: str, what: str, owner: Value | None = None, grade: Grade | None = None
    ) -> None:
        """Report that the core field `field` (of `owner`, for fields of parts and tools) is sent in another form."""
        leaves = 0 if field in self.pointers else 1
        pointers = self.list_pointers(field, owner)
        self._entries[_Entry(pointers, what, "approximated", leaves=leaves, grade=grade)] = None

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
        return not self.document

    def has(self, where: str) -> bool:
        """Return whether the document has a value at `where`."""
        return self._find(where) is not None

    def losses(self) -> tuple[Loss, ...]:
        """Return all losses, each with an exact pointer, in the order of the pointers."""
        if not self._entries:
            return self._earlier_losses
        losses = [
            Loss(where, entry.what, entry.kind, entry.grade or self._find_grade(where), leaves)
            for entry in self._entries
            for where, leaves in self._resolve(entry)
        ]
        # In a reply most values have siblings that are sent: a single one is not looked up.
        fewest = 2 if self.is_reply else 1
        if len(losses) < fewest and not self._earlier_losses:
            return tuple(losses)
        return tuple(sorted([*self._earlier_losses, *merge_losses(losses, self._count_leaves, fewest)]))

    def _find_grade(self, where: str) -> Grade:
        return self._find_grade_of(normalise_pointer(where)) if self.informational else "material"

    def _find_grade_of(self, shape: str) -> Grade:
        """Return "informational" if the table of the dialect has this normalised pointer or one above it."""
        while shape:
            if shape in self.informational:
                return "informational"
            shape = shape.rpartition("/")[0]
        return "material"

    def _find(self, where: str) -> tuple[str, bytes] | None:
        if not self.document:
            return None
        if self._index is None:
            self._index = Document(self.document)
        return self._index.find(where)

    def _count_leaves(self, where: str) -> int:
        """Return the number of leaves of the value at `where`; 0 if the document has none."""
        found = self._find(where)
        return 0 if found is None else count_leaves(found[1])

    def _resolve(self, entry: _Entry) -> Iterable[tuple[str, int]]:
        """Return the pointers of an entry in the document, each with its number of leaves."""
        if entry.leaves:
            where = entry.pointers[0]
            # The document may have a snake_case name for a camelCase one.
            found = None if self.exact or not where or where.islower() else self._find(where)
            return ((found[0] if found is not None else where, entry.leaves),)
        matches = [match for candidate in entry.pointers if (match := self._find(candidate)) is not None]
        return [(where, count_leaves(raw)) for where, raw in matches] or ((entry.pointers[0], 1),)


def normalise_pointer(pointer: str) -> str:
    """Return a pointer with `#` for each index, in one form for camelCase and snake_case names.

    The first step into an envelope (`/request` or `/response`) is left out.
    """
    if pointer.startswith(_ENVELOPES):
        pointer = pointer[pointer.index("/", 1) :]
    tokens = pointer.replace("_", "").lower().split("/")
    return "/".join(["#" if token.isdecimal() else token for token in tokens])


def open_request_ledger(dialect: Dialect, body: bytes = b"") -> Ledger:
    """Return a ledger for a request of a dialect."""
    return Ledger(dialect.pointers, body, _find_informational(dialect.name, is_reply=False))


def open_reply_ledger(dialect: Dialect, body: bytes = b"", *, exact: bool = False, by_leaf: bool = False) -> Ledger:
    """Return a ledger for a reply of a dialect; a stream has no body."""
    rows = _find_informational(dialect.name, is_reply=True)
    return Ledger(dialect.reply_pointers, body, rows, is_reply=True, exact=exact, by_leaf=by_leaf)


@cache
def _find_informational(dialect: str, *, is_reply: bool) -> frozenset[str]:
    found = dialect_named(dialect)
    return frozenset(map(normalise_pointer, found.informational_replies if is_reply else found.informational))
