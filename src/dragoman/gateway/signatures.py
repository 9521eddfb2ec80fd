"""Stores signatures for clients that do not send them back.

Signatures are stored before the client receives the call that they sign, and all processes with the same store share
them. Lookups are cached in memory, also those that found nothing: a signature never arrives after its call.
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
    """Finds the cached signatures of one owner."""

    scope: str
    """The owner."""
    cache: _Cache
    store: "SignatureStore"

    def find_signatures(self, call_id: str) -> Mapping[str, Signature] | None:
        """Return the signatures of calls with this id; None if they must be looked up in the store first."""
        return self.cache.get((self.scope, call_id))

    async def look_up(self, ids: Sequence[str]) -> bool:
        """Load the signatures of calls from the store; return whether any of the calls has one."""
        return await self.store.look_up(self.scope, ids)


class SignatureStore:
    """Stores and finds the signatures of tool calls."""

    def __init__(self, table: SignatureTable) -> None:
        self._table = table
        self._cache: _Cache = OrderedDict()
        self._pending_ids: dict[str, dict[str, None]] = {}
        """Call ids for the next lookup, by owner."""
        self._locks: dict[str, asyncio.Lock] = {}

    def signer_for(self, owner: str) -> OwnerSigner:
        """Return the signer that finds the signatures of an owner's calls."""
        return OwnerSigner(owner, self._cache, self)

    async def look_up(self, owner: str, ids: Sequence[str]) -> bool:
        """Load the signatures of calls from the store; return whether any of the calls has one.

        Lookups of one owner are batched: ids that arrive during a lookup are loaded by the next one.
        """
        self._pending_ids.setdefault(owner, {}).update(dict.fromkeys(ids))
        lock = self._locks.setdefault(owner, asyncio.Lock())
        async with lock:
            batch = self._pending_ids.pop(owner, None)
            if batch:
                try:
                    await self._load(owner, tuple(batch))
                except asyncio.CancelledError:
                    self._pending_ids.setdefault(owner, {}).update(batch)  # other requests wait for some of them
                    raise
        if owner not in self._pending_ids:
            self._locks.pop(owner, None)
        return any(self._cache.get((owner, call_id)) for call_id in ids)

    async def _load(self, owner: str, ids: Sequence[str]) -> None:
        try:
            found = await self._table.find(owner, ids)
        except Unavailable:
            # The request works without them: a placeholder signature is sent, and a loss is reported.
            return
        for call_id in ids:
            stored = {digest: Signature(issuer, value) for digest, (issuer, value) in found.get(call_id, {}).items()}
            # A reply may have been saved during the lookup.
            self._cache_signatures(
                owner, call_id, {**stored, **self._cache.get((owner, call_id), _NO_SIGNATURES)} or _NO_SIGNATURES
            )

    async def save(self, owner: str, calls: Sequence[SignedCall]) -> None:
        """Store the signatures of calls that are about to be sent to a client."""
        signed = {(call.id, call.digest): call.signature for call in calls if call.signature is not None}
        if not signed:
            return
        for call in calls:
            cached = self._cache.get((owner, call.id), _NO_SIGNATURES)
            added = {call.digest: call.signature} if call.signature is not None else {}
            self._cache_signatures(owner, call.id, {**cached, **added} or _NO_SIGNATURES)
        # Most clients send the signature back themselves, so the reply is good even if the store is unavailable.
        with contextlib.suppress(Unavailable):
            await self._table.save(
                owner, {key: (signature.issuer, signature.value) for key, signature in signed.items()}
            )

    def _cache_signatures(self, owner: str, call_id: str, signatures: Mapping[str, Signature]) -> None:
        self._cache[owner, call_id] = signatures
        self._cache.move_to_end((owner, call_id))
        if len(self._cache) > _MAX_CACHED:
            self._cache.popitem(last=False)
