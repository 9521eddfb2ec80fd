"""Signatures kept for clients that do not bring them back.

They are kept before the client sees the call they sign, and shared by all processes of one store. What was looked up
once is remembered here, also that there was nothing: a signature never comes after its call.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dragoman.core.parts import Signature
from dragoman.interpreter.signatures import SignedCall
from dragoman.sessions.signatures import SignatureTable
from dragoman.sessions.values import Unavailable

_MAX_CACHED = 50_000
_NO_SIGNATURES: Mapping[str, Signature] = {}
_Cache = OrderedDict[tuple[str, str], Mapping[str, Signature]]


class OwnerSigner(Struct, frozen=True):
    """Finds the signatures of one owner among those that are in memory."""

    scope: str
    """The owner."""
    known: _Cache

    def find_signatures(self, call_id: str) -> Mapping[str, Signature] | None:
        """Return the signatures of calls with an id; None if they must be looked up first."""
        return self.known.get((self.scope, call_id))


class SignatureStore:
    """Keeps signatures and gives them back."""

    def __init__(self, table: SignatureTable) -> None:
        self._table = table
        self._cache: _Cache = OrderedDict()
        self._pending_ids: dict[str, dict[str, None]] = {}
        """Ids for the next lookup, by owner."""
        self._locks: dict[str, asyncio.Lock] = {}

    def signer_for(self, owner: str) -> OwnerSigner:
        """Return what finds the signatures of an owner's calls."""
        return OwnerSigner(owner, self._cache)

    async def look_up(self, owner: str, ids: Sequence[str]) -> bool:
        """Look up the signatures of calls in the store; return whether any of them is signed.

        Lookups of one owner are batched: ids that arrive during a lookup are all in the next one.
        """
        self._pending_ids.setdefault(owner, {}).update(dict.fromkeys(ids))
        lock = self._locks.setdefault(owner, asyncio.Lock())
        async with lock:
            waiting = self._pending_ids.pop(owner, None)
            if waiting:
                try:
                    await self._load(owner, tuple(waiting))
                except asyncio.CancelledError:
                    self._pending_ids.setdefault(owner, {}).update(waiting)  # others wait for some of them
                    raise
        if owner not in self._pending_ids:
            self._locks.pop(owner, None)
        return any(self._cache.get((owner, name)) for name in ids)

    async def _load(self, owner: str, ids: Sequence[str]) -> None:
        try:
            found = await self._table.find(owner, ids)
        except Unavailable:
            # Without them the request can still be made: the skip value takes their place, and is booked.
            return
        for name in ids:
            kept = {digest: Signature(issuer, value) for digest, (issuer, value) in found.get(name, {}).items()}
            # A reply may have been kept while the store was asked.
            self._cache_signatures(
                owner, name, {**kept, **self._cache.get((owner, name), _NO_SIGNATURES)} or _NO_SIGNATURES
            )

    async def save(self, owner: str, calls: Sequence[SignedCall]) -> None:
        """Keep the signatures of calls that a client is about to be told of."""
        signed = {(call.id, call.digest): call.signature for call in calls if call.signature is not None}
        if not signed:
            return
        for call in calls:
            before = self._cache.get((owner, call.id), _NO_SIGNATURES)
            now = {call.digest: call.signature} if call.signature is not None else {}
            self._cache_signatures(owner, call.id, {**before, **now} or _NO_SIGNATURES)
        # Most clients bring the signature back themselves: without the store the answer is good all the same.
        with contextlib.suppress(Unavailable):
            await self._table.save(
                owner, {key: (signature.issuer, signature.value) for key, signature in signed.items()}
            )

    def _cache_signatures(self, owner: str, name: str, signatures: Mapping[str, Signature]) -> None:
        self._cache[owner, name] = signatures
        self._cache.move_to_end((owner, name))
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
