"""Model lists in the format and with the pagination of each dialect.

A model of the client's own vendor is listed with all fields of the upstream, under its name in the gateway. Models of
other vendors are listed with the fields that are known.
"""

from collections.abc import Callable

from dragoman.core.problems import Problem
from dragoman.dialects.api import ModelEntry, ModelRow, Query
from dragoman.dialects.record import Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.catalogue import Catalogue
from dragoman.wire import json


async def list_models(
    catalogue: Catalogue, model: str, allows: Callable[[str], bool], dialect: str, query: Query
) -> bytes:
    """Render one model, or a page of the list of all allowed models if `model` is empty."""
    client, model = dialect_named(dialect), model.removeprefix("models/")
    if not model:
        entries = await catalogue.list_entries()
        rows = [_build_row(client, entry) for name, entry in entries.items() if allows(name)]
        return json.encode(client.api.models.build_page(rows, query))
    if not allows(model):
        raise Problem("not_found", f"model {model!r} does not exist", code="model_not_found")
    return json.encode(_build_row(client, await catalogue.find_entry(model)))


def _build_row(client: Dialect, entry: ModelEntry) -> ModelRow:
    models = client.api.models
    own = entry.listed.row if entry.issuer == client.issuer else {}
    return {**models.build_row(entry), **own, models.member: models.prefix + entry.name}
