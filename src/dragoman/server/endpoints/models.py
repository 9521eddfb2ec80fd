"""Model lists in the format and with the pagination of each dialect.

A model of the client's own vendor is listed with all fields of the upstream, under its name in the gateway. Models of
other vendors are listed with the fields that are known.
"""

from collections.abc import Callable, Sequence

from dragoman.core.problems import Problem
from dragoman.dialects.api import ModelEntry, ModelRow, Query
from dragoman.dialects.registry import dialect_named
from dragoman.gateway.catalogue import Catalogue
from dragoman.wire import json


async def list_models(
    catalogue: Catalogue, model: str, allows: Callable[[str], bool], dialect: str, query: Query
) -> bytes:
    """Render one model, or the list of all allowed models if `model` is empty."""
    model = model.removeprefix("models/")
    if not model:
        shown = [entry for name, entry in (await catalogue.list_entries()).items() if allows(name)]
        return render_page(dialect, shown, query)
    if not allows(model):
        raise Problem("not_found", f"model {model!r} does not exist", code="model_not_found")
    return json.encode(_render_row(dialect, await catalogue.find_entry(model)))


def render_page(dialect: str, entries: Sequence[ModelEntry], query: Query) -> bytes:
    """Render one page of models."""
    rows = [_render_row(dialect, entry) for entry in entries]
    return json.encode(dialect_named(dialect).api.models.build_page(rows, query))


def _render_row(dialect: str, entry: ModelEntry) -> ModelRow:
    client = dialect_named(dialect)
    models = client.api.models
    own = entry.listed.row if entry.issuer == client.issuer else {}
    return {**models.build_row(entry), **own, models.member: models.prefix + entry.name}
