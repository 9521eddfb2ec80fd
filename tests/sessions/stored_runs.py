"""A stored run with its entries, as the tests read it."""

from types import SimpleNamespace
from typing import Any


async def find_run(store: Any, owner: str, name: str) -> SimpleNamespace | None:
    found = await store.runs.find_status(owner, name)
    if found is None:
        return None
    entries = tuple(body for _, body in await store.runs.list_entries(owner, name, -1))
    select = "SELECT model FROM runs WHERE owner = ? AND id = ?"
    ((model,),) = await store._engine.read(lambda cursor: cursor.fetch_all(select, owner, name))
    return SimpleNamespace(status=found.status, summary=found.summary, model=model, entries=entries)
