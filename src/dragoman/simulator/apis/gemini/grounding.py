"""Where an answer comes from, as Google tells it: what was searched, what was found, which bytes of the text say it."""

from typing import Any
from urllib.parse import quote_plus

from dragoman.simulator.talk import Answer

_ENTRY = '<div class="container"><a class="chip" href="https://www.google.com/search?q={asked}">{shown}</a></div>'


def grounding(answer: Answer, part_index: int) -> dict[str, Any]:
    """Write the metadata of a search; places in the text are counted in bytes."""
    entry = _ENTRY.format(asked=quote_plus(answer.query), shown=answer.query.replace("&", "&amp;").replace("<", "&lt;"))
    made: dict[str, Any] = {"searchEntryPoint": {"renderedContent": entry}}
    if answer.sources:
        made["groundingChunks"] = [{"web": {"uri": source.url, "title": source.title}} for source in answer.sources]
    supports = _supports(answer, part_index)
    if supports:
        made["groundingSupports"] = supports
    made["webSearchQueries"] = [answer.query]
    return made


def _supports(answer: Answer, part_index: int) -> list[dict[str, Any]]:
    supports: dict[str, dict[str, Any]] = {}
    for number, source in enumerate(answer.sources):
        at = answer.text.find(source.quote) if source.quote else -1
        if at < 0:
            continue
        known = supports.get(source.quote)
        if known is not None:
            known["groundingChunkIndices"].append(number)
            continue
        start = len(answer.text[:at].encode())
        segment: dict[str, Any] = {"partIndex": part_index} if part_index else {}
        if start:
            segment["startIndex"] = start
        segment["endIndex"] = start + len(source.quote.encode())
        segment["text"] = source.quote
        supports[source.quote] = {"segment": segment, "groundingChunkIndices": [number]}
    return list(supports.values())
