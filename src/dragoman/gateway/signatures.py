"""Stores signatures and signed reasoning for clients that do not send them back.

They are stored before the client receives the call or the end of the answer that they belong to, and all processes with
the same store share them. Lookups are cached in memory, also those that found nothing: a signature never arrives after
its call. An owner of whom nothing is saved costs one query and no work on the messages of a request.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from dragoman.gateway.signature_loader import SignatureLoader
from dragoman.interpreter.signature_recorder import SignedSection
from dragoman.interpreter.translation import SavedSignatures
from dragoman.sessions.signatures import SignatureRow, SignatureTable
from dragoman.sessions.values import Unavailable

_MAX_CACHED = 50_000
_MAX_CACHED_BYTES = 64 << 20
_MAX_STORED = 1 << 20
"""Larger reasoning before one call is not stored: the next request is sent without it."""
_ENTRY_BYTES = 200
"""The estimated size of a cache entry without its values."""
_MAX_PER_ID = 64
"""How many sections with the same id are cached: the newest."""
_MAX_OWNERS = 100_000
_NONE_SAVED: Mapping[str, SavedSignatures] = {}
_Cache = OrderedDict[tuple[str, str], Mapping[str, SavedSignatures]]


class OwnerSigner(Struct):
    """Finds the cached signatures of one owner."""

    scope: str
    """The owner."""
    cache: _Cache
    store: "SignatureStore"
    is_empty: bool
    """Nothing of the owner is known to be saved."""

    def find_signatures(self, section_id: str) -> Mapping[str, SavedSignatures] | None:
        """Return what is saved for sections with this id; None if they must be looked up in the store first."""
        return self.cache.get((self.scope, section_id))

    async def has_any(self) -> bool:
        """Return whether anything is saved for the owner."""
        self.is_empty = not await self.store.has_any(self.scope)
        return not self.is_empty

    async def look_up(self, ids: Sequence[str]) -> bool:
        """Load what the store has for sections; return whether it has anything for one of them."""
        return await self.store.look_up(self.scope, ids)


class SignatureStore:
    """Stores and finds the signatures and the signed reasoning of replies."""

    def __init__(self, table: SignatureTable) -> None:
        self._table = table
        self._cache: _Cache = OrderedDict()
        self._cached_bytes = 0
        self._owners: dict[str, None] = {}
        """Owners of whom something is saved."""
        self._asked: dict[str, None] = {}
        """Owners for whom `has_recorded` has asked the store."""
        self._loader = SignatureLoader(table, self._add_saved)

    def signer_for(self, owner: str) -> OwnerSigner:
        """Return the signer that finds the signatures of an owner."""
        return OwnerSigner(owner, self._cache, self, owner not in self._owners)

    async def has_any(self, owner: str) -> bool:
        """Return whether something is saved for an owner; only a positive answer is cached."""
        if owner in self._owners:
            return True
        with contextlib.suppress(Unavailable):
            if await self._table.has_any(owner):
                _add(self._owners, owner)
        return owner in self._owners

    async def has_recorded(self, owner: str) -> bool:
        """Return whether anything is known to be saved for an owner.

        This queries the store once for each owner, because requests of a vendor's own dialect can be sent without it:
        what another process saves later is not known here, and the vendor judges it.
        """
        if owner in self._owners or owner in self._asked:
            return owner in self._owners
        _add(self._asked, owner)
        return await self.has_any(owner)

    async def look_up(self, owner: str, ids: Sequence[str]) -> bool:
        """Load what the store has for sections; return whether it has anything for one of them."""
        await self._loader.load(owner, ids)
        return any(self._cache.get((owner, section_id)) for section_id in ids)

    async def save(self, owner: str, sections: Sequence[SignedSection]) -> None:
        """Store what is signed in sections that are about to be sent to a client."""
        rows: dict[tuple[str, str], SignatureRow] = {}
        for section in sections:
            row = _build_row(section.saved)
            if row is not None:
                rows[section.id, section.digest] = row
        if not rows:
            return
        if owner not in self._owners:
            _add(self._owners, owner)
        for section in sections:
            self._add_saved(
                owner, section.id, {section.digest: section.saved} if (section.id, section.digest) in rows else {}
            )
        # Most clients send the signature back themselves, so the reply is good even if the store is unavailable.
        with contextlib.suppress(Unavailable):
            await self._table.save(owner, rows)

    def _add_saved(self, owner: str, section_id: str, added: Mapping[str, SavedSignatures]) -> None:
        key = owner, section_id
        saved = {**self._cache.get(key, _NONE_SAVED), **added}
        if len(saved) > _MAX_PER_ID:
            saved = dict(list(saved.items())[-_MAX_PER_ID:])
        if before := self._cache.get(key):
            self._cached_bytes -= _measure(before)
        if saved:
            self._cached_bytes += _measure(saved)
        self._cache[key] = saved or _NONE_SAVED
        self._cache.move_to_end(key)
        while len(self._cache) > _MAX_CACHED or self._cached_bytes > _MAX_CACHED_BYTES:
            _, evicted = self._cache.popitem(last=False)
            self._cached_bytes -= _measure(evicted)


def _add(owners: dict[str, None], owner: str) -> None:
    if len(owners) >= _MAX_OWNERS:
        owners.pop(next(iter(owners)))
    owners[owner] = None


def _build_row(saved: SavedSignatures) -> SignatureRow | None:
    """Return the row for what is signed in a section; None if that is nothing, or too large."""
    issuer, value = (saved.call.issuer, saved.call.value) if saved.call is not None else ("", "")
    reasoning = msgspec.json.encode(saved.placed) if saved.placed else b""
    if len(value) + len(reasoning) > _MAX_STORED or not (value or reasoning):
        return None
    return SignatureRow(issuer, value, reasoning)


def _measure(saved: Mapping[str, SavedSignatures]) -> int:
    """Return the estimated size of a cache entry; an entry without values is not counted."""
    size = 0
    for one in saved.values():
        size += _ENTRY_BYTES + (len(one.call.value) if one.call is not None else 0)
        size += sum(_ENTRY_BYTES + len(part.signature.value) + sum(map(len, part.texts)) for part in one.placed)
    return size
