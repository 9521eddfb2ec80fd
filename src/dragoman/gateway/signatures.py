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

_MOST = 50_000
_NONE: Mapping[str, Signature] = {}
_Known = OrderedDict[tuple[str, str], Mapping[str, Signature]]


class OwnersSigner(Struct, frozen=True):
    """Finds the signatures of one owner among those that are in memory."""

    scope: str
    """The owner."""
    known: _Known

    def of(self, call_id: str) -> Mapping[str, Signature] | None:
        """Return the signatures of calls with an id; None if they must be looked up first."""
        return self.known.get((self.scope, call_id))


class Vault:
    """Keeps signatures and gives them back."""

    def __init__(self, store: SignatureTable) -> None:
        self._store = store
        self._known: _Known = OrderedDict()
        self._waiting: dict[str, dict[str, None]] = {}
        """Ids for the next lookup, by owner."""
        self._locks: dict[str, asyncio.Lock] = {}

    def signer(self, owner: str) -> OwnersSigner:
        """Return what finds the signatures of an owner's calls."""
        return OwnersSigner(owner, self._known)

    async def look_up(self, owner: str, ids: Sequence[str]) -> bool:
        """Look up the signatures of calls in the store; return whether any of them is signed.

        Lookups of one owner are batched: ids that arrive during a lookup are all in the next one.
        """
        self._waiting.setdefault(owner, {}).update(dict.fromkeys(ids))
        lock = self._locks.setdefault(owner, asyncio.Lock())
        async with lock:
            waiting = self._waiting.pop(owner, None)
            if waiting:
                try:
                    await self._read(owner, tuple(waiting))
                except asyncio.CancelledError:
                    self._waiting.setdefault(owner, {}).update(waiting)  # others wait for some of them
                    raise
        if owner not in self._waiting:
            self._locks.pop(owner, None)
        return any(self._known.get((owner, name)) for name in ids)

    async def _read(self, owner: str, ids: Sequence[str]) -> None:
        try:
            found = await self._store.signatures(owner, ids)
        except Unavailable:
            # Without them the request can still be made: the skip value takes their place, and is booked.
            return
        for name in ids:
            kept = {digest: Signature(issuer, value) for digest, (issuer, value) in found.get(name, {}).items()}
            # A reply may have been kept while the store was asked.
            self._remember(owner, name, {**kept, **self._known.get((owner, name), _NONE)} or _NONE)

    async def keep(self, owner: str, calls: Sequence[SignedCall]) -> None:
        """Keep the signatures of calls that a client is about to be told of."""
        signed = {(call.id, call.digest): call.signature for call in calls if call.signature is not None}
        if not signed:
            return
        for call in calls:
            before = self._known.get((owner, call.id), _NONE)
            now = {call.digest: call.signature} if call.signature is not None else {}
            self._remember(owner, call.id, {**before, **now} or _NONE)
        # Most clients bring the signature back themselves: without the store the answer is good all the same.
        with contextlib.suppress(Unavailable):
            await self._store.keep_signatures(
                owner, {key: (signature.issuer, signature.value) for key, signature in signed.items()}
            )

    def _remember(self, owner: str, name: str, kept: Mapping[str, Signature]) -> None:
        self._known[owner, name] = kept
        self._known.move_to_end((owner, name))
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
