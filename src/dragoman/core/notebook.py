"""HTML of values for notebooks, which show an object by its `_repr_html_`. All text is escaped."""

from collections.abc import Iterable
from html import escape

_MAX_TEXT = 4000


def shorten_text(text: str) -> str:
    """Return an escaped text, cut to what a notebook should show."""
    more = f"… ({len(text) - _MAX_TEXT:,} more characters)" if len(text) > _MAX_TEXT else ""
    return escape(text[:_MAX_TEXT] + more)


def render_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of plain texts."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _render_cell(text: str) -> str:
    return f'<td><pre style="white-space: pre-wrap">{shorten_text(text)}</pre></td>'
