"""Loads what is saved for sections of replies from the store, in batches."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from dragoman.core.parts import Signature
from dragoman.interpreter.translation import PlacedSignature, SavedSignatures
from dragoman.sessions.signatures import SignatureRow, SignatureTable
from dragoman.sessions.values import Unavailable

_PLACED = msgspec.json.Decoder(tuple[PlacedSignature, ...])
OnLoaded = Callable[[str, str, Mapping[str, SavedSignatures]], None]
"""Called with an owner, the id of a section and what is saved for it, by digest."""


class SignatureLoader:
    """Loads sections; ids of one owner that arrive during a load are in the next one."""

    def __init__(self, table: SignatureTable, on_loaded: OnLoaded) -> None:
        self._table = table
        self._on_loaded = on_loaded
        self._pending_ids: dict[str, dict[str, None]] = {}
        """Section ids for the next lookup, by owner."""
        self._locks: dict[str, asyncio.Lock] = {}

    async def load(self, owner: str, ids: Sequence[str]) -> None:
        """Load sections; return when all of them are loaded, or could not be."""
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

    async def _load(self, owner: str, ids: Sequence[str]) -> None:
        try:
            found = await self._table.find(owner, ids)
        except Unavailable:
            # The request works without them: a placeholder signature is sent, and a loss is reported.
            return
        for section_id in ids:
            rows = found.get(section_id, {})
            self._on_loaded(owner, section_id, {digest: _read_row(row) for digest, row in rows.items()})


def _read_row(row: SignatureRow) -> SavedSignatures:
    """Return what is signed in the section of a row."""
    call = Signature(row.issuer, row.value) if row.value else None
    return SavedSignatures(call, _PLACED.decode(row.reasoning) if row.reasoning else ())
