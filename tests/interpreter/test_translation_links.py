"""Links that a target does not fetch: all are asked for at once, and nothing is remembered before they are there."""

import json
from typing import Any

import pytest

from dragoman.core.problems import Problem
from dragoman.dialects.record import Call
from dragoman.interpreter.translate import translate_request
from dragoman.interpreter.translation import FetchedMedia, FetchFailure, Links, MissingLinks, show_host

PICTURE = FetchedMedia("image/png", "iVBORw0KGgo=")


def link(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def call_of(*contents: Any) -> Call:
    text: list[Any] = []
    for content in contents:
        text += [{"role": "user", "content": content}, {"role": "assistant", "content": "Yes."}]
    return Call(json.dumps({"model": "m", "messages": [*text, {"role": "user", "content": "Go on."}]}).encode())


def translate(call: Call, links: Links | None, target: str = "messages") -> Any:
    return json.loads(translate_request(call, "chat", target, model="any", links=links).call.body)


def test_all_missing_links_are_reported_at_once_with_their_first_pointer():
    call = call_of([link("http://a/1.png"), link("https://a/2.png")], [link("http://a/3.png"), link("HTTP://a/1")])
    with pytest.raises(MissingLinks) as missing:
        translate(call, Links())
    places = {url: expected.where for url, expected in missing.value.links.items()}
    assert places == {
        "http://a/1.png": "/messages/0/content/0",
        "http://a/3.png": "/messages/2/content/0",
        "http://a/1": "/messages/2/content/1",
    }


def test_an_upstream_that_fetches_nothing_needs_every_link():
    with pytest.raises(MissingLinks) as missing:
        translate(call_of([link("https://a/2.png")]), Links(upstream_fetches=False))
    assert list(missing.value.links) == ["https://a/2.png"]


@pytest.mark.parametrize("url", ["data:image/png;base64,iVBORw0KGgo=", "gs://bucket/a.png"])
def test_only_http_links_are_fetched(url):
    translate(call_of([link(url)]), Links(upstream_fetches=False))


def test_fetched_content_replaces_its_link():
    call = call_of([link("http://a/1.png")])
    block = translate(call, Links({"http://a/1.png": PICTURE}))["messages"][0]["content"][0]
    assert block["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


def test_what_was_fetched_and_is_of_no_type_for_the_target_is_refused():
    with pytest.raises(Problem) as refused:
        translate(call_of([link("http://a/1.png")]), Links({"http://a/1.png": FetchedMedia("image/avif", "AAAA")}))
    assert (refused.value.code, refused.value.where) == ("media_not_fetched", "/messages/0/content/0")
    assert refused.value.message.startswith("the image at a cannot be used: ")
    assert refused.value.message.endswith(": image/avif")


def test_without_a_fetcher_links_are_dropped_and_are_losses():
    translation = translate_request(call_of([link("http://a/1.png")]), "chat", "messages", model="any")
    assert "/messages/0/content" in [loss.where for loss in translation.losses if loss.kind == "dropped"]


def test_a_long_conversation_is_cached_with_its_images_and_never_without():
    long = ["words " * 10_000, [link("http://a/1.png")], "words " * 10_000]
    for _ in range(3):
        with pytest.raises(MissingLinks):
            translate(call_of(*long), Links())
    assert PICTURE.data in json.dumps(translate(call_of(*long), Links({"http://a/1.png": PICTURE})))
    assert PICTURE.data in json.dumps(translate(call_of(*long, "more"), Links()))
    assert "left out" in json.dumps(translate(call_of(*long, "more"), None))


def test_a_failure_is_a_text_in_place_of_the_media_and_a_loss():
    failures = {"http://a/1.png": FetchFailure("the link at a cannot be fetched: gone")}
    call = call_of([link("http://a/1.png")])
    translation = translate_request(call, "chat", "messages", model="any", links=Links(failures))
    content = json.loads(translation.call.body)["messages"][0]["content"]
    assert content == "[image left out: the link at a cannot be fetched: gone]"
    losses = [(loss.kind, loss.where, loss.what, loss.grade) for loss in translation.losses]
    assert losses == [
        ("dropped", "/messages/0/content", "the link at a cannot be fetched: gone", "material"),
    ]


def test_what_is_of_no_type_for_the_target_is_left_out_of_a_run():
    links = Links({"http://a/1.png": FetchedMedia("image/avif", "AAAA")}, replaces_failed=True)
    content = translate(call_of([link("http://a/1.png")]), links)["messages"][0]["content"]
    assert content.startswith("[image left out: ")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.com/a.png?key=hush", " at example.com"),
        ("https://me:hush@example.com:8443/a", " at example.com:8443"),
        ("https://a@b@example.com/", " at example.com"),
        ("http://[::1/", ""),
        ("http:///a.png", ""),
        ("https://" + "a" * 500, " at " + "a" * 100),
    ],
)
def test_only_the_host_of_a_link_is_shown(url, shown):
    assert show_host(url) == shown
