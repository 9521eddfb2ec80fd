"""The log line of a record."""

import json
from typing import Any

from dragoman.gateway.record import Record
from dragoman.server.log import Log


def render_line(record: Record) -> dict[str, Any]:
    """Return the line that the log has for a record."""
    lines: list[bytes] = []
    Log(lines.append).on_end(record)
    return json.loads(lines[0])
