"""Send a web search of the history to a target of another vendor, as text.

No vendor takes another's search blocks: Anthropic's hold data that only it can make. The text depends on the block
alone, so that the beginning of a conversation stays the same from turn to turn and the target's prompt cache holds.
What a page says about itself is data: its line breaks and control characters become spaces, and it has a limit.
"""

from operator import is_

from msgspec import structs

from dragoman.core.parts import AnyPart, FoundPage, Search, Text
from dragoman.core.request import Message
from dragoman.core.searches import GENERATED_MARK, is_generated
from dragoman.core.value import Extras
from dragoman.interpreter.adaptation import Adaptation
from dragoman.interpreter.foreign_fields import drop_extras
from dragoman.interpreter.ledger import Ledger
from dragoman.wire import json

_MAX_PAGES = 20
_MAX_QUERY = 500
_MAX_TITLE = 200
_MAX_URL = 2000
_MAX_EXCERPT = 2000
_MARK = GENERATED_MARK.encode()
_NO_ID = "a text has no id"
_AS_TEXT = "a web search is sent as text"


def adapt_search_part(part: Search, _message: Message, adaptation: Adaptation) -> Search | Text:
    """Return a search of the history for the target: its own as it is, any other as text."""
    if part.dialect == adaptation.traits.dialect:
        return part
    is_short = len(part.pages) <= _MAX_PAGES
    reason = _AS_TEXT if is_short else f"{_AS_TEXT}, with its first {_MAX_PAGES} pages"
    adaptation.ledger.report_approximated(part.where, reason, "informational" if is_short else None)
    if part.extras is not None and not is_generated(part.id):
        rendered = {json.encode(page.age) for page in part.pages[:_MAX_PAGES]}
        fields = {pointer: raw for pointer, raw in part.extras.fields.items() if raw not in rendered}
        for pointer in [pointer for pointer, raw in fields.items() if raw == json.encode(part.id)]:
            adaptation.ledger.report_dropped(part.where + pointer, _NO_ID, "informational")
            del fields[pointer]
        drop_extras(structs.replace(part, extras=Extras(part.extras.dialect, fields)), adaptation)
    return Text(text=describe_search(part), where=part.where)


def describe_search(search: Search) -> str:
    """Return a search as text for a model."""
    lines: list[str] = []
    if search.step != "results":
        quoted = ", ".join(f'"{_clean(query, _MAX_QUERY)}"' for query in search.queries[:_MAX_PAGES])
        lines.append(f"[Web search: {quoted}]" if quoted else "[Web search]")
    if search.error:
        lines.append(f"[Web search failed: {_clean(search.error, _MAX_TITLE)}]")
    elif search.step == "results":
        lines.append("[Web search results]" if search.pages else "[Web search results: none]")
    lines += map(_describe_page, search.pages[:_MAX_PAGES])
    return "\n".join(lines)


def _describe_page(page: FoundPage) -> str:
    title, url = _clean(page.title, _MAX_TITLE), _clean(page.url, _MAX_URL)
    line = f"- {title}: {url}" if title and title != url else f"- {url}"
    if page.age:
        line += f" ({_clean(page.age, _MAX_TITLE)})"
    return f"{line}\n  {_clean(page.excerpt, _MAX_EXCERPT)}" if page.excerpt else line


def _clean(text: str, limit: int) -> str:
    """Return a text on one line, without control characters and not longer than `limit`."""
    words = "".join(character if character.isprintable() else " " for character in text[: 2 * limit]).split()
    line = " ".join(words)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def replace_generated(messages: tuple[Message, ...], ledger: Ledger) -> tuple[Message, ...]:
    """Return a history of the target's own dialect without searches of other vendors: they are sent as text.

    Citations of such a search are removed too: the vendor has not issued their encrypted data.
    """
    return tuple(_replace_in_message(message, ledger) for message in messages)


def _replace_in_message(message: Message, ledger: Ledger) -> Message:
    parts: list[AnyPart] = []
    for part in message.parts:
        if isinstance(part, Search) and is_generated(part.id):
            ledger.report_approximated(part.where, _AS_TEXT, "informational")
            parts.append(Text(text=describe_search(part), where=part.where))
        elif isinstance(part, Text) and any(_MARK in citation.raw for citation in part.citations):
            ledger.report_dropped_field("part.citations", "citations of another vendor's search", part, "informational")
            kept = tuple(citation for citation in part.citations if _MARK not in citation.raw)
            parts.append(structs.replace(part, citations=kept))
        else:
            parts.append(part)
    if all(map(is_, parts, message.parts)):
        return message
    # An item that is a search becomes a message of its own.
    spelling = "" if len(parts) == 1 and not isinstance(message.parts[0], Text) else message.spelling
    return structs.replace(message, parts=tuple(parts), spelling=spelling)
