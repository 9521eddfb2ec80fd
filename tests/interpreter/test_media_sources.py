"""Media as callers give them: data URLs, data without a media type, links that some targets do not fetch."""

import json

import pytest

from dragoman.core.parts import Inline, Link, Media, Plain, Text, ToolResult
from dragoman.dialects.record import Call
from dragoman.interpreter.history import adapt_messages
from dragoman.interpreter.translate import translate_request
from interpreter.workbench import adaptation_for, build_message, encode, exactly, loss_pointers

MODELS = {"chat": "gpt-4.1", "responses": "gpt-5.6", "messages": "claude-opus-5", "gemini": "gemini-3-pro"}
URL = "https://a.example/b.png"


def media(kind, media_type, source, **more):
    return Media(kind=kind, media_type=media_type, source=source, where="/p", **more)


def adapt_part(target, part, **changes):
    adaptation = adaptation_for(target, MODELS[target], **changes)
    (message,) = adapt_messages((build_message("user", part),), adaptation)
    return message.parts, loss_pointers(adaptation)


@pytest.mark.parametrize("target", ["chat", "responses", "messages", "gemini"])
@pytest.mark.parametrize(
    ("given", "output"),
    [
        ("_-8=", "/+8="),
        ("_-8", "/+8="),
        ("QUI", "QUI="),
        ("QQ", "QQ=="),
        ("QUJD", "QUJD"),
        ("+/+/", "+/+/"),
        ("+/8", "+/8="),
        ("QUJDR", "QUJDR"),
        ("QU\nI=", "QU\nI="),
        ("a-b c", "a-b c"),
    ],
)
def test_base64_is_sent_in_the_standard_alphabet_with_padding(target, given, output):
    (after,), losses = adapt_part(target, media("image", "image/png", Inline(given)))
    assert (after.source, losses) == (Inline(output), [])


def test_googles_clients_write_base64_for_urls_and_others_read_it():
    part = {"inlineData": {"mimeType": "image/png", "data": "_-8="}}
    body = encode({"contents": [{"role": "user", "parts": [{"text": "look"}, part]}]})
    output = translate_request(Call(body), "gemini", "messages", model="claude-opus-5")
    content = json.loads(output.call.body)["messages"][0]["content"]
    assert content[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "/+8="}
    home = translate_request(Call(body), "gemini", "gemini")
    assert home.call.body == body


@pytest.mark.parametrize(
    ("url", "media_type", "data"),
    [
        ("data:image/png,%89PNG", "image/png", "iVBORw=="),
        ("DATA:image/png;base64,_-8", "image/png", "/+8="),
        ("data:image/png;name=a.png;BASE64,QUJD", "image/png", "QUJD"),
    ],
)
def test_a_link_that_holds_its_data_is_data(url, media_type, data):
    after = media("image", media_type, Inline(data))
    assert adapt_part("gemini", media("image", "", Link(url))) == ((after,), [])


@pytest.mark.parametrize(
    ("url", "text"),
    [("data:,a%20b", "a b"), ("data:text/plain,a+b,c", "a+b,c"), ("data:;charset=utf-8,%C3%A9", "é")],
)
def test_a_link_that_holds_text_is_a_text_document(url, text):
    after = media("document", "text/plain", Plain(text))
    assert adapt_part("messages", media("document", "", Link(url))) == ((after,), [])


def test_a_file_that_turns_out_to_hold_a_picture_is_an_image():
    (after,), losses = adapt_part("messages", media("document", "", Link("data:image/gif,GIF")))
    assert (after, losses) == (media("image", "image/gif", Inline("R0lG")), [])


@pytest.mark.parametrize(
    ("part", "kind", "media_type"),
    [
        (media("document", "", Inline("QUJD"), name="a.b.PDF"), "document", "application/pdf"),
        (media("document", "", Inline("QUJD"), name="a.csv"), "document", "text/csv"),
        (media("document", "", Inline("QUJD"), name="a.png"), "image", "image/png"),
        (media("document", "", Inline("JVBERi0x")), "document", "application/pdf"),
        (media("document", "", Inline("iVBORw0K"), name="picture"), "image", "image/png"),
        (media("image", "", Inline("/9j/4AAQ")), "image", "image/jpeg"),
        (media("image", "", Inline("R0lGODlh")), "image", "image/gif"),
    ],
)
def test_data_without_a_type_is_known_by_its_files_name_or_how_it_begins(part, kind, media_type):
    (after,), losses = adapt_part("gemini", part, image_types=frozenset())
    assert (after.kind, after.media_type) == (kind, media_type)
    assert [kind for kind, _ in losses] == ["dropped"] * bool(part.name)


@pytest.mark.parametrize(
    ("kind", "media_type"), [("document", "application/pdf"), ("image", "image/jpeg"), ("audio", "audio/mpeg")]
)
def test_unrecognized_data_gets_the_most_common_type_of_its_kind(kind, media_type):
    (after,), losses = adapt_part("gemini", media(kind, "", Inline("QUJD")))
    assert (after.media_type, losses) == (media_type, [("approximated", "/p")])


def test_bare_data_of_a_chat_file_reaches_gemini_with_its_type():
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "QUJD"}}
    body = encode({"model": "m", "messages": [{"role": "user", "content": [file]}]})
    output = translate_request(Call(body), "chat", "gemini", model="gemini-3-pro")
    parts = json.loads(output.call.body)["contents"][0]["parts"]
    assert parts == [{"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}}]


def test_gemini_follows_links_to_googles_storage():
    part = media("image", "image/png", Link("gs://b/a.png"))
    assert adapt_part("gemini", part) == ((part,), [])


def answer(target, *content, **more):
    result = ToolResult(call_id="a", content=content, where="/r", **more)
    return adapt_part(target, result)


@pytest.mark.parametrize(
    ("target", "url", "inside"),
    [
        ("gemini", URL, False),
        ("gemini", "gs://b/a.png", True),
        ("responses", URL, True),
        ("responses", "b.png", True),
        ("messages", URL, True),
    ],
)
def test_a_link_follows_a_result_that_cannot_contain_it(target, url, inside):
    part = media("image", "image/png" if target == "gemini" else "", Link(url))
    (result, *behind), losses = answer(target, part)
    if inside:
        assert (result.content, behind, losses) == ((part,), [], [])
    else:
        assert result.content == (Text(text="[image follows]"),)
        assert (behind, losses) == ([part], [("approximated", "/p")])


PICTURE = media("image", "image/png", Inline("QUJD"))


@pytest.mark.parametrize(("failed", "inside"), [(True, False), (False, True)])
def test_claude_takes_no_picture_in_a_result_that_failed(failed, inside):
    (result, *behind), losses = answer("messages", Text(text="no"), PICTURE, failed=failed)
    follows = PICTURE if inside else Text(text="[image follows]")
    assert exactly(result.content) == exactly((Text(text="no"), follows))
    assert result.failed is failed
    assert (behind, losses) == (([], []) if inside else ([PICTURE], [("approximated", "/p")]))


def test_gemini_takes_a_picture_in_a_result_that_failed():
    (result, *behind), losses = answer("gemini", Text(text="no"), PICTURE, failed=True)
    assert (result.content, behind, losses) == ((Text(text="no"), PICTURE), [], [])


@pytest.mark.parametrize("tail", ["", "?x=y", "#frag", "?x=.pdf#frag.pdf"])
@pytest.mark.parametrize("target", ["chat", "messages", "gemini"])
def test_a_file_by_link_whose_path_ends_like_a_picture_is_one(target, tail):
    link = Link(URL + tail)
    (after,), losses = adapt_part(target, media("document", "", link))
    assert (after.kind, after.source, losses) == ("image", link, [])


@pytest.mark.parametrize("url", ["https://a.example/b.pdf#c.png", "https://a.example/b", "https://a.example/b.csv"])
def test_any_other_file_by_link_stays_a_document(url):
    (after,), _ = adapt_part("messages", media("document", "", Link(url)))
    assert after.kind == "document"


@pytest.mark.parametrize(
    ("media_type", "url"), [("", "https://a.example/b.gif?x"), ("image/gif", "https://a.example/b")]
)
def test_a_link_to_a_picture_of_a_type_that_gemini_refuses_is_left_out(media_type, url):
    (after,), losses = adapt_part("gemini", media("image", media_type, Link(url)))
    assert after == Text(text="[image left out: the target takes no image of this type]")
    assert losses == [("dropped", "/p")]
    assert adapt_part("messages", media("image", "", Link(url)))[1] == []
