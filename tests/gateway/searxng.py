"""A loopback SearXNG server, built from the documentation of its search API and its JSON format."""

import json
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from dragoman.http.server import listen


def result(url, title="A title", content="What it says.", **more):
    """One result with the members that SearXNG's JSON has."""
    parts = urlsplit(url) if isinstance(url, str) else ("", "", "", "", "")
    return {
        "url": url,
        "title": title,
        "content": content,
        "publishedDate": None,
        "thumbnail": "",
        "engine": "duckduckgo",
        "template": "default.html",
        "parsed_url": [*parts[:5], ""],
        "img_src": "",
        "priority": "",
        "engines": ["duckduckgo"],
        "positions": [1],
        "score": 1.0,
        "category": "general",
        **more,
    }


def answer(*results, query="q", **more):
    """The whole JSON of a search."""
    return {
        "query": query,
        "number_of_results": len(results),
        "results": list(results),
        "answers": [],
        "corrections": [],
        "infoboxes": [],
        "suggestions": ["another query"],
        "unresponsive_engines": [["qwant", "timeout"]],
        **more,
    }


class Searxng:
    """Answers searches as `reply` says: an answer, bytes, a status, or a coroutine function that sends something."""

    def __init__(self, reply=None):
        self.reply = reply
        self.queries = []
        self.headers = []

    async def handle(self, exchange):
        request = exchange.request
        query = parse_qs(urlsplit(request.target).query)
        self.queries.append(query)
        self.headers.append(dict(request.headers_by_name))
        reply = self.reply(query) if callable(self.reply) else self.reply
        if hasattr(reply, "__await__"):
            reply = await reply
        if query.get("format") != ["json"]:
            await exchange.send(200, {"content-type": "text/html"}, b"<!DOCTYPE html>")
        elif isinstance(reply, int):
            headers = {"content-type": "text/html", "location": "http://127.0.0.1:1/"}
            await exchange.send(reply, headers, b"<title>Error</title>")
        elif isinstance(reply, bytes):
            await exchange.send(200, {"content-type": "application/json"}, reply)
        else:
            await exchange.send(200, {"content-type": "application/json"}, json.dumps(reply).encode())


@asynccontextmanager
async def serve_searxng(searxng):
    """Serve while the block runs; yield the URL of the search."""
    async with listen(searxng.handle, ("127.0.0.1", 0)) as server:
        yield f"{server.base_url}/search"
