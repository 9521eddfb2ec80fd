"""Lists of what OpenAI keeps, told page by page."""

from collections.abc import Mapping, Sequence

from dragoman.simulator.api import Refusal
from dragoman.simulator.rule import Json

_USUAL = 20
_MOST = 100


def page(rows: Sequence[tuple[str, Json]], query: Mapping[str, str], *, order: str) -> Json | Refusal:
    """Return one page of rows, which come with their ids: `limit` of them behind the one called `after`, in `order`."""
    order, limit = query.get("order", order), query.get("limit", str(_USUAL))
    if order not in {"asc", "desc"}:
        message = f"Invalid value: '{order}'. Supported values are: 'asc' and 'desc'."
        return Refusal(status=400, message=message, kind="invalid_value", where="/order")
    if not limit.isdecimal() or not 1 <= int(limit) <= _MOST:
        return _odd_limit(limit)
    ordered = rows if order == "asc" else rows[::-1]
    after = query.get("after", "")
    at = next((number for number, one in enumerate(ordered, 1) if one[0] == after), 0)
    if after and not at:
        return Refusal(status=400, message=f"Item with id '{after}' not found.", where="/after")
    return whole([one[1] for one in ordered[at : at + int(limit)]], more=at + int(limit) < len(ordered))


def _odd_limit(limit: str) -> Refusal:
    if not limit.lstrip("-").isdecimal():
        message = "Invalid type for 'limit': expected an integer, but got a string instead."
        return Refusal(status=400, message=message, kind="invalid_type", where="/limit")
    side, kind, bound = ("above maximum", "integer_above_max_value", f"<= {_MOST}")
    if int(limit) < 1:
        side, kind, bound = ("below minimum", "integer_below_min_value", ">= 1")
    message = f"Invalid 'limit': integer {side} value. Expected a value {bound}, but got {limit} instead."
    return Refusal(status=400, message=message, kind=kind, where="/limit")


def whole(data: list[Json], *, more: bool = False) -> Json:
    """Return a list as the vendor tells it."""
    ids = [str(item["id"]) for item in data]
    first, last = (ids[0], ids[-1]) if ids else (None, None)
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": more}
