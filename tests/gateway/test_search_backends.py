"""A SearXNG server as search backend: what comes back, what goes wrong, and what is hostile."""

import asyncio
import json
import logging

import pytest
from msgspec import structs

from dragoman.core.parts import FoundPage
from dragoman.gateway.search_backends import (
    SearchFailure,
    SearchQuery,
    SearxngBackend,
    clean_text,
    find_public_location,
    select_pages,
)
from dragoman.gateway.search_settings import SearchTable
from dragoman.http.client import Client
from gateway.searxng import Searxng, answer, result, serve_searxng


def search(reply, query=None, *, url="{}", **settings):
    """Return what a backend makes of a server's reply, and the server."""
    server = Searxng(reply)

    async def run():
        async with serve_searxng(server) as base:
            client = Client()
            backend = SearxngBackend(SearchTable(backend=url.format(base), **settings), client, "test/1")
            try:
                return await backend.search(query or SearchQuery(text="fjords & bays"))
            finally:
                await client.close()

    return asyncio.run(run()), server


def fail(reply, **settings):
    with pytest.raises(SearchFailure) as caught:
        search(reply, **settings)
    return caught.value.code, str(caught.value)


def test_a_search_asks_for_json_and_returns_the_pages():
    found = result(
        "https://www.example.org/fjords?a=1", "Fjords", "They are deep.", publishedDate="2026-01-02T00:00:00"
    )
    results, server = search(answer(found, result("https://example.com/", "", None)))
    assert results.pages == (
        FoundPage("https://www.example.org/fjords?a=1", "Fjords", "2026-01-02T00:00:00", "They are deep."),
        FoundPage("https://example.com/", "example.com"),
    )
    assert server.queries == [{"q": ["fjords & bays"], "format": ["json"]}]
    assert server.headers[0]["accept"] == "application/json"
    assert "authorization" not in server.headers[0]


def test_a_key_is_sent_as_a_bearer_token_and_the_urls_own_parameters_are_kept():
    _, server = search(answer(), url="{}?categories=news&language=de", key="secret")
    assert server.headers[0]["authorization"] == "Bearer secret"
    assert server.queries == [{"categories": ["news"], "language": ["de"], "q": ["fjords & bays"], "format": ["json"]}]


@pytest.mark.parametrize("answers", [["42 is it."], [{"answer": "42 is it.", "url": None, "engine": "x"}]])
def test_an_instant_answer_of_both_versions_is_text(answers):
    results, _ = search(answer(answers=answers))
    assert (results.pages, results.answer) == ((), "42 is it.")


def test_an_empty_result_is_no_failure():
    results, _ = search(answer())
    assert (results.pages, results.answer) == ((), "")


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (429, "too_many_requests", "too many requests"),
        (403, "unavailable", "status 403"),
        (500, "unavailable", "status 500"),
        (302, "unavailable", "status 302"),
        (b"", "unavailable", "not the JSON"),
        (b"<html>", "unavailable", "not the JSON"),
        (b'{"results": [', "unavailable", "not the JSON"),
        (b'{"results": {}}', "unavailable", "not the JSON"),
        (b'{"results": ["text"]}', "unavailable", "not the JSON"),
        (b"[]", "unavailable", "not the JSON"),
        (b"\xff\xfe", "unavailable", "not the JSON"),
        (b'{"results": [{"url": "https://a.example/\xff"}]}', "unavailable", "not the JSON"),
        (b'{"results": [' + b'{"a":' * 100_000, "unavailable", "not the JSON"),
    ],
)
def test_what_is_no_answer_of_a_search_is_a_failure(reply, code, words):
    found, message = fail(reply)
    assert found == code
    assert words in message


def test_an_answer_that_is_too_large_is_a_failure():
    assert fail(answer(result("https://a.example/", "a" * 5000)), max_bytes=1000)[0] == "unavailable"


def test_a_server_that_hangs_costs_the_timeout():
    async def hang():
        await asyncio.sleep(60)

    code, message = fail(lambda _: hang(), seconds=0.2)
    assert (code, message) == ("unavailable", "the search backend did not answer within 0.2 seconds")


def test_a_server_that_is_gone_is_a_failure_whose_log_line_has_no_query(caplog):
    async def run():
        async with serve_searxng(Searxng(answer())) as base:
            gone = base
        client = Client()
        await SearxngBackend(SearchTable(backend=gone), client, "test/1").search(SearchQuery(text="my secret"))

    with caplog.at_level(logging.WARNING, "dragoman.search"), pytest.raises(SearchFailure) as caught:
        asyncio.run(run())
    assert str(caught.value) == "the search backend cannot be reached"
    assert "cannot be reached" in caplog.text
    assert "secret" not in caplog.text


def test_members_of_wrong_types_leave_out_only_themselves():
    odd = result("https://b.example/", title=7, content=["x"], publishedDate={"a": 1})
    results, _ = search(answer(result(None), result(5), odd, result("https://a.example/", "A", "a")))
    assert results.pages == (
        FoundPage("https://b.example/", "b.example"),
        FoundPage("https://a.example/", "A", "", "a"),
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://app.localhost:8080/",
        "http://router.local/",
        "http://db.internal/",
        "http://intranet/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://10.0.0.8/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://user:pass@example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.com/",
        "https://exa mple.com/",
        "https://example.com/\nx",
        "",
    ],
)
def test_a_page_that_is_not_on_the_public_web_is_no_result(url):
    assert find_public_location(url) is None
    results, _ = search(answer(result(url), result("https://a.example/")))
    assert [page.url for page in results.pages] == ["https://a.example/"]


def test_domains_are_filters_with_subdomains_and_paths():
    urls = (
        "https://docs.example.com/guide/1",
        "https://example.com/blog/a",
        "https://example.com/shop",
        "https://badexample.com/guide",
        "https://other.org/",
    )
    pages = [FoundPage(url) for url in urls]

    def select(**domains):
        return [page.url for page in select_pages(pages, SearchQuery(text="q", **domains), 10)]

    assert select(allowed_domains=("docs.example.com", "example.com/blog")) == [urls[0], urls[1]]
    assert select(blocked_domains=("example.com", "https://other.org")) == [urls[3]]
    _, server = search(answer(), SearchQuery(text="q", allowed_domains=("a.example", "b.example")))
    assert server.queries[0]["q"] == ["q (site:a.example OR site:b.example)"]


def test_a_huge_list_is_cut_and_no_page_comes_twice():
    many = [result(f"https://h{at % 500}.example/", f"T{at}") for at in range(20_000)]
    results, _ = search(answer(*many), max_results=7, max_bytes=64 << 20)
    assert [page.title for page in results.pages] == [f"T{at}" for at in range(7)]


def test_texts_lose_what_is_not_shown_and_are_cut():
    hostile = "a\x00b\x1b[31m\r\nc\u202ed\u200be\ud800\ue000 <b>f</b>"
    assert clean_text(hostile, 100) == "a b [31m c d e <b>f</b>"
    assert clean_text("x" * 500, 10) == "x" * 9 + "…"
    assert clean_text(None, 10) == ""
    results, _ = search(json.dumps(answer(result("https://a.example/", "t" * 9999, "\x07" + "c" * 9999))).encode())
    assert (len(results.pages[0].title), len(results.pages[0].excerpt)) == (300, 2000)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "model"}, "needs `model`"),
        ({"backend": "model", "model": "m", "key": "k"}, "only for a URL"),
        ({"backend": "http://s.example/search", "model": "m"}, 'only for backend = "model"'),
        ({"key": "k"}, "needs a `backend`"),
        ({"backend": "searxng"}, "neither"),
        ({"backend": "ftp://s.example/"}, "neither"),
    ],
)
def test_settings_that_contradict_each_other_are_rejected(settings, words):
    with pytest.raises(ValueError, match=words):
        SearchTable(**settings)
    assert structs.asdict(SearchTable())["max_uses"] == 8
