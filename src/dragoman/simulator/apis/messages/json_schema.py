"""Whether a schema is one, and whether a value is valid by it. The library is loaded when it is first needed."""

from typing import Any


def is_schema(schema: dict[str, Any]) -> bool:
    """Tell whether a schema is a valid one of draft 2020-12, whatever draft it says it is of."""
    from jsonschema_rs import meta  # noqa: PLC0415  it takes long to load, and few requests need it

    try:
        return meta.is_valid({name: value for name, value in schema.items() if name != "$schema"})
    except ValueError:
        return False


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Tell whether a value is valid by a schema; what refers to elsewhere cannot be told, and passes."""
    from jsonschema_rs import ReferencingError, validator_for  # noqa: PLC0415  see above

    try:
        return validator_for(schema, offline=True).is_valid(value)
    except (ReferencingError, ValueError):
        return True
