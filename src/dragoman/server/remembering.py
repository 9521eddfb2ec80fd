"""Keep what is known of intercepted sessions where conversations are kept, so that it outlives the process.

A store that cannot be reached costs nothing but that: sessions live in memory.
"""

import contextlib

from dragoman.intercept.keeping import kept, key_of, recall
from dragoman.intercept.sessions import Name, Session, Sessions
from dragoman.intercept.settings import InterceptTable
from dragoman.sessions.store import Store
from dragoman.sessions.values import Unavailable

_MOST_LOOKED_FOR = 1000


class Remembering:
    """Sessions that are known, or were before the process began."""

    def __init__(self, sessions: Sessions, store: Store) -> None:
        self._sessions = sessions
        self._store = store
        self._looked_for: set[Name] = set()

    async def find(self, name: Name, table: InterceptTable) -> Session | None:
        """Return a session that there is, or was."""
        found = self._sessions.find(name)
        if found is not None or name in self._looked_for:
            return found
        body = await self._body(name)
        return self._recalled(name, table, body) if body is not None else None

    async def open(self, name: Name, table: InterceptTable) -> Session:
        """Return a session, a new one if there never was one."""
        return await self.find(name, table) or self._sessions.open(name, table)

    async def keep(self, session: Session) -> None:
        """Keep a session, if there is something new of it."""
        state = session.state
        if not session.groups or state == session.kept:
            return
        session.kept = state
        with contextlib.suppress(Unavailable):
            await self._store.keep_asides(session.name.owner, {key_of(session.name): kept(session)})
            self._looked_for.discard(session.name)

    async def _body(self, name: Name) -> bytes | None:
        key = key_of(name)
        try:
            found = await self._store.asides(name.owner, [key])
        except Unavailable:
            return None
        if len(self._looked_for) >= _MOST_LOOKED_FOR:
            self._looked_for.clear()
        self._looked_for.add(name)
        return found.get(key)

    def _recalled(self, name: Name, table: InterceptTable, body: bytes) -> Session:
        found = self._sessions.find(name)
        if found is None:
            found = self._sessions.open(name, table)
            recall(found, body)
        return found
