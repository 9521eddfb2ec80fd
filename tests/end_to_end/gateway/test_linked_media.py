"""Media behind a link that the upstream does not fetch is fetched before, or refused with the client's own place."""

import asyncio
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Generator
from typing import Any

import httpx2
import pytest

from dragoman.config import MediaTable, UpstreamTable
from dragoman.http.exchange import Exchange
from dragoman.http.server import listen, run_in_thread
from dragoman.simulator import Answer, Call
from dragoman.tools import Registry

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
FILES = {
    "/pixel.png": ("image/png", PIXEL),
    "/pixel": ("application/octet-stream", PIXEL),
    "/page.png": ("image/png", b"<html>no picture</html>"),
    "/paper.pdf": ("application/pdf", PDF),
    "/large.png": ("image/png", PIXEL + b"x" * 5000),
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


class Web:
    """A server with some files, and the number of requests for each."""

    base_url = ""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    async def handle(self, exchange: Exchange) -> None:
        path = exchange.request.path
        self.asked[path] += 1
        if path == "/slow.png":
            await asyncio.sleep(30)
        elif path == "/away":
            await exchange.send(302, {"location": "http://10.0.0.1/"})
        elif path in FILES:
            kind, body = FILES[path]
            await exchange.send(200, {"content-type": kind}, body)
        else:
            await exchange.send(404, {}, b"nothing here")


@pytest.fixture
def web() -> Generator[Web]:
    found = Web()
    with run_in_thread(lambda: listen(found.handle), "web") as server:
        found.base_url = server.base_url
        yield found


@pytest.fixture
def fetching(serve):
    return serve(media=MediaTable(allow=("127.0.0.0/8",), max_bytes=4000))


def part_of(dialect: str, url: str) -> Any:
    """An image by its address, in each dialect's own form."""
    match dialect:
        case "chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case "responses":
            return {"type": "input_image", "image_url": url}
        case "messages":
            return {"type": "image", "source": {"type": "url", "url": url}}
        case _:
            return {"fileData": {"mimeType": "image/png", "fileUri": url}}


def body_of(dialect: str, model: str, part: Any, before: list[Any] | None = None) -> dict[str, Any]:
    match dialect:
        case "chat":
            text = {"type": "text", "text": "What is this?"}
            return {"model": model, "messages": [*(before or []), {"role": "user", "content": [text, part]}]}
        case "responses":
            text = {"type": "input_text", "text": "What is this?"}
            return {"model": model, "store": False, "input": [{"role": "user", "content": [text, part]}]}
        case "messages":
            text = {"type": "text", "text": "What is this?"}
            return {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": [text, part]}]}
        case _:
            return {"contents": [{"role": "user", "parts": [{"text": "What is this?"}, part]}]}


def post(gateway, dialect, model, part, **headers):
    path = PATHS.get(dialect, f"/v1beta/models/{model}:generateContent")
    return httpx2.post(gateway.base_url + path, json=body_of(dialect, model, part), headers=headers)


def get_received(gateway) -> str:
    return gateway.simulator.requests[-1].body.decode()


@pytest.mark.parametrize(
    ("dialect", "model"),
    [("chat", "claude"), ("responses", "claude"), ("gemini", "claude"), ("chat", "vclaude"), ("responses", "vclaude")],
)
def test_a_picture_behind_a_link_that_claude_does_not_fetch_is_sent_itself(fetching, web, dialect, model):
    reply = post(fetching, dialect, model, part_of(dialect, f"{web.base_url}/pixel.png"))
    assert reply.status_code == 200, reply.text
    assert b64encode(PIXEL).decode() in get_received(fetching)
    assert "127.0.0.1" not in get_received(fetching)
    assert "x-dragoman-losses" not in reply.headers or "image" not in reply.headers["x-dragoman-losses"]
    assert web.asked == {"/pixel.png": 1}


@pytest.mark.parametrize("model", ["gem", "gpt", "resp"])
def test_what_the_upstream_fetches_itself_is_left_to_it(fetching, web, model):
    dialect = "messages"
    reply = post(fetching, dialect, model, part_of(dialect, f"{web.base_url}/pixel.png"))
    assert reply.status_code == 200, reply.text
    assert not web.asked
    assert f"{web.base_url}/pixel.png" in get_received(fetching)


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_an_upstream_configured_without_links_gets_the_linked_content(serve, web, dialect):
    gateway = serve(
        media=MediaTable(allow=("127.0.0.1",)),
        upstreams={"plain": UpstreamTable(kind="gemini", links=False)},
        models={"plain": ("plain/gemini-3.8-flash",)},
    )
    reply = post(gateway, dialect, "plain", part_of(dialect, f"{web.base_url}/pixel"))
    assert reply.status_code == 200, reply.text
    assert web.asked == {"/pixel": 1}
    assert b64encode(PIXEL).decode() in get_received(gateway)


def test_a_document_behind_a_link_is_sent_itself_where_only_pictures_are_fetched(fetching, web):
    paper = {"type": "document", "source": {"type": "url", "url": f"{web.base_url}/paper.pdf"}}
    reply = post(fetching, "messages", "gpt", paper)
    assert reply.status_code == 200, reply.text
    assert b64encode(PDF).decode() in get_received(fetching)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("/page.png", "its content is not of type image"),
        ("/none.png", "its server answers with status 404"),
        ("/large.png", "its content is larger than 4000 bytes"),
        ("/away", "it has no public address"),
    ],
)
@pytest.mark.parametrize("dialect", ["chat", "responses", "gemini"])
def test_what_cannot_be_fetched_is_refused_with_its_place(fetching, web, dialect, file, why):
    reply = post(fetching, dialect, "claude", part_of(dialect, web.base_url + file))
    assert reply.status_code == 400
    error = reply.json()["error"]
    host = web.base_url.removeprefix("http://")
    assert error["message"].endswith(f"the image at {host} cannot be fetched: {why}")
    assert "media_not_fetched" in reply.text
    place = {"chat": "messages[0].content[1]", "responses": "input[0].content[1]", "gemini": "contents[0].parts[1]"}
    assert place[dialect] in reply.text
    assert "10.0.0.1" not in reply.text
    assert not fetching.simulator.requests


def test_nothing_is_fetched_from_our_own_network_unless_it_is_allowed(serve, web):
    gateway = serve()
    reply = post(gateway, "chat", "claude", part_of("chat", f"{web.base_url}/pixel.png"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "media_not_fetched")
    assert "it has no public address" in reply.text
    assert not web.asked


def test_nothing_is_fetched_where_that_is_switched_off(serve, web):
    gateway = serve(media=MediaTable(fetch=False, allow=("127.0.0.0/8",)))
    reply = post(gateway, "chat", "claude", part_of("chat", f"{web.base_url}/pixel.png"))
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "media_not_fetched")
    assert not web.asked


def test_a_long_continued_conversation_keeps_its_image_and_fetches_it_once(fetching, web):
    picture = part_of("chat", f"{web.base_url}/pixel.png")
    output: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "What is this? " * 6000}, picture]}]
    for turn in range(4):
        output += [{"role": "assistant", "content": f"A pixel {turn}. " * 300}, {"role": "user", "content": "Sure?"}]
        body = {"model": "claude", "messages": output}
        reply = httpx2.post(fetching.base_url + PATHS["chat"], json=body)
        assert reply.status_code == 200, reply.text
        assert b64encode(PIXEL).decode() in get_received(fetching)
    assert web.asked == {"/pixel.png": 1}


def test_more_links_than_allowed_are_refused(serve, web):
    gateway = serve(media=MediaTable(allow=("127.0.0.0/8",), max_links=2))
    pictures = [part_of("chat", f"{web.base_url}/pixel.png?{at}") for at in range(3)]
    body = {"model": "claude", "messages": [{"role": "user", "content": pictures}]}
    reply = httpx2.post(gateway.base_url + PATHS["chat"], json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "media_not_fetched")
    assert not web.asked


@pytest.mark.parametrize(
    ("url", "shown", "why"),
    [
        ("http://me:hush@127.0.0.1/a.png", "127.0.0.1", "its URL contains a user name or an IPv6 zone ID"),
        ("http://10.1.2.3/hush/a.png?signature=hush#hush", "10.1.2.3", "it has no public address"),
        ("http://no-such-host.invalid/hush.png", "no-such-host.invalid", "it has no public address"),
    ],
)
def test_an_error_names_the_host_of_a_link_and_nothing_secret(serve, url, shown, why):
    reply = post(serve(), "chat", "claude", part_of("chat", url))
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "messages[0].content[1]")
    assert reply.json()["error"]["message"] == f"the image at {shown} cannot be fetched: {why}"
    assert "hush" not in reply.text


def test_a_link_that_does_not_load_in_time_is_refused(serve, web):
    gateway = serve(media=MediaTable(allow=("127.0.0.0/8",), seconds=0.2))
    reply = post(gateway, "chat", "claude", part_of("chat", f"{web.base_url}/slow.png"))
    assert reply.status_code == 400
    assert "it did not load within 0.2 seconds" in reply.text


def build_tools():
    tools = Registry()

    def look() -> str:
        """Look again."""
        return "nothing new"

    tools.register(look)
    return tools


def call_once(received):
    """Call the tool once, then answer."""
    if any(turn.results for turn in received.request.turns):
        return Answer(text="I saw what there was.")
    return Answer(calls=(Call(id="c1", name="look", arguments={}),))


def serve_agent(serve, **media):
    settings = MediaTable(**{"allow": ("127.0.0.0/8",), "max_bytes": 4000, "seconds": 0.5, **media})
    plain = {"plain": UpstreamTable(kind="gemini", links=False)}
    return serve(
        simulate={"script": call_once},
        media=settings,
        tools=build_tools(),
        upstreams=plain,
        models={"plain": ("plain/gemini-3.8-flash",)},
    )


IN_RUN = {"x-dragoman-tools": "look"}


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("/page.png", "its content is not of type image"),
        ("/none.png", "its server answers with status 404"),
        ("/large.png", "its content is larger than 4000 bytes"),
        ("/away", "it has no public address"),
        ("/slow.png", "it did not load within 0.5 seconds"),
    ],
)
@pytest.mark.parametrize(
    "way", [("chat", "claude"), ("responses", "vclaude"), ("gemini", "claude"), ("messages", "plain")]
)
def test_a_run_goes_on_with_a_text_for_the_model_where_a_link_cannot_be_fetched(serve, web, way, file, why):
    gateway = serve_agent(serve)
    dialect, model = way
    reply = post(gateway, dialect, model, part_of(dialect, web.base_url + file), **IN_RUN)
    assert reply.status_code == 200, reply.text
    assert "I saw what there was." in reply.text
    host = web.base_url.removeprefix("http://")
    text = f"[image left out: the link at {host} cannot be fetched: {why}]"
    seen = [one for one in gateway.simulator.requests if "loadCodeAssist" not in one.target]
    assert [text in one.body.decode() for one in seen] == [True, True]
    assert why in reply.headers["x-dragoman-losses"]
    assert web.asked[file] == 1


def test_a_run_keeps_the_media_that_can_be_fetched(serve, web):
    gateway = serve_agent(serve, max_links=2)
    paths = ("/pixel.png", "/none.png", "/pixel")
    body = body_of("chat", "claude", part_of("chat", web.base_url + paths[0]))
    body["messages"][0]["content"] += [part_of("chat", web.base_url + path) for path in paths[1:]]
    reply = httpx2.post(gateway.base_url + PATHS["chat"], json=body, headers=IN_RUN)
    assert reply.status_code == 200, reply.text
    received = get_received(gateway)
    assert b64encode(PIXEL).decode() in received
    assert "cannot be fetched: its server answers with status 404]" in received
    assert "cannot be fetched: the request has more than 2 links to fetch (`max_links` in [media])]" in received
    assert web.asked == {"/pixel.png": 1, "/none.png": 1}


def test_a_run_goes_on_where_fetching_is_switched_off(serve, web):
    gateway = serve_agent(serve, fetch=False)
    reply = post(gateway, "chat", "claude", part_of("chat", f"{web.base_url}/pixel.png"), **IN_RUN)
    assert reply.status_code == 200, reply.text
    assert "`fetch` in [media] is off]" in get_received(gateway)
    assert not web.asked


def test_a_strict_run_is_refused_for_a_link_that_cannot_be_fetched(serve, web):
    gateway = serve_agent(serve)
    headers = {**IN_RUN, "x-dragoman-strict": "true"}
    reply = post(gateway, "chat", "claude", part_of("chat", f"{web.base_url}/none.png"), **headers)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "messages[0].content[1]")
    assert "cannot be fetched: its server answers with status 404" in reply.text
