"""Media types as people write them, and as targets know them."""

import json
from base64 import b64encode

import pytest

from dragoman.core.parts import Inline, Link, Media, Plain, Text
from dragoman.dialects.record import Call
from dragoman.interpreter.media import adapt_media
from dragoman.interpreter.translate import translate_request
from dragoman.simulator.apis import APIS
from dragoman.simulator.apis.conversation import TokenSigner
from dragoman.simulator.apis.rule import CheckContext, Violation
from interpreter.workbench import adaptation_for, build_message, loss_pointers

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="  # a PNG
MODELS = {"messages": "claude-opus-5", "gemini": "gemini-3.8-flash", "responses": "gpt-5.2"}


def adapt_part(target, kind, media_type, source=None, **changes):
    adaptation = adaptation_for(target, MODELS.get(target, "gpt-4.1"), source="messages", **changes)
    part = Media(kind=kind, media_type=media_type, source=source or Inline("QUJD"), where="/p")
    return adapt_media(part, build_message("user"), adaptation), loss_pointers(adaptation)


def translate_image(url, target):
    """Return what an image in Chat becomes, its losses, and the verdict of the target's simulator."""
    content = [{"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    result = translate_request(Call(json.dumps(body).encode(), "m"), "chat", target, model=MODELS[target])
    verdict = APIS[target].accept(result.call.body, CheckContext(model=MODELS[target], recorded=True), TokenSigner())
    return result.call.body.decode(), loss_pointers(result.losses), verdict


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("head", ["image/x-png", "image/PNG", "image/png;charset=utf-8", "image/png ; CHARSET=x"])
def test_a_picture_of_a_type_that_is_only_written_oddly_is_shown(head, target):
    body, losses, verdict = translate_image(f"data:{head};base64,{PIXEL}", target)
    assert PIXEL in body
    assert "image/png" in body
    assert losses == []
    assert not isinstance(verdict, Violation)


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize(
    ("declared_type", "known"),
    [
        ("image/jpg", "image/jpeg"),
        ("image/pjpeg", "image/jpeg"),
        ("IMAGE/JPG", "image/jpeg"),
        ("image/x-webp", "image/webp"),
    ],
)
def test_a_name_that_was_never_registered_is_the_registered_one(declared_type, known, target):
    part, losses = adapt_part(target, "image", declared_type)
    assert isinstance(part, Media)
    assert (part.media_type, losses) == (known, [])


def test_what_another_type_is_called_does_not_make_it_taken():
    part, losses = adapt_part("messages", "image", "image/x-icon")
    assert part == Text(text="[image left out: the target takes no image of this type]")
    assert losses == [("dropped", "/p")]


def test_a_pdf_by_an_older_name_is_one():
    part, losses = adapt_part("messages", "document", "application/x-pdf; charset=binary")
    assert isinstance(part, Media)
    assert (part.media_type, losses) == ("application/pdf", [])


@pytest.mark.parametrize(
    ("declared_type", "known"),
    [("audio/vnd.wave", "audio/wav"), ("audio/x-mp3", "audio/mpeg"), ("audio/mp3", "audio/mp3")],
)
def test_audio_gets_the_format_name_that_the_target_uses(declared_type, known):
    part, losses = adapt_part("chat", "audio", declared_type, media=frozenset({"audio"}))
    assert isinstance(part, Media)
    assert (part.media_type, losses) == (known, [])


def test_a_target_that_accepts_any_audio_gets_its_sample_rate():
    part, losses = adapt_part("gemini", "audio", "audio/L16;rate=24000")
    assert isinstance(part, Media)
    assert (part.media_type, losses) == ("audio/L16;rate=24000", [])


def test_a_meaningful_media_type_parameter_is_a_loss_if_dropped():
    part, losses = adapt_part("messages", "image", "image/png;name=a.png")
    assert isinstance(part, Media)
    assert (part.media_type, losses) == ("image/png", [("approximated", "/p/source/media_type")])


@pytest.mark.parametrize(
    ("media_type", "charset", "losses"),
    [
        ("text/plain;charset=utf-8", "utf-8", []),
        ('text/plain; Charset="ISO-8859-1"', "iso-8859-1", []),
        ("Text/CSV; charset=utf-16", "utf-16", [("approximated", "/p/source/media_type")]),
    ],
)
def test_text_is_read_in_the_charset_it_names(media_type, charset, losses):
    data = Inline(b64encode("Größe".encode(charset)).decode())
    part, found = adapt_part("messages", "document", media_type, data)
    assert isinstance(part, Media)
    assert (part.source, part.media_type, found) == (Plain("Größe"), "text/plain", losses)


@pytest.mark.parametrize("charset", ["utf-8", "no-such-charset"])
def test_text_that_is_not_in_its_charset_is_no_text(charset):
    part, losses = adapt_part("messages", "document", f"text/plain;charset={charset}", Inline("/w=="))
    assert part == Text(text="[document left out: the target takes no document of this type]")
    assert losses == [("dropped", "/p")]


def test_claude_fetches_by_https_only_and_the_rest_is_left_out_and_reported():
    body, losses, verdict = translate_image("http://a.example/x.png", "messages")
    assert "[image left out: the target does not fetch http: links]" in body
    assert losses == [("dropped", "/messages/0/content")]
    assert not isinstance(verdict, Violation)


@pytest.mark.parametrize("target", ["gemini", "responses"])
def test_others_fetch_by_http_too(target):
    body, losses, _ = translate_image("http://a.example/x.png", target)
    assert "http://a.example/x.png" in body
    assert losses == []


@pytest.mark.parametrize("target", MODELS)
def test_the_scheme_of_a_link_is_written_small(target):
    part, losses = adapt_part(target, "image", "", Link("HTTPS://A.example/X.png"))
    assert isinstance(part, Media)
    assert (part.source, losses) == (Link("https://A.example/X.png"), [])


def test_a_text_of_another_type_is_plain_text_to_claude():
    part, losses = adapt_part("messages", "document", "text/html", Plain("<p>"))
    assert isinstance(part, Media)
    assert (part.media_type, part.source) == ("text/plain", Plain("<p>"))
    assert [kind for kind, _ in losses] == ["approximated"]
    assert adapt_part("messages", "document", "text/plain", Plain("x"))[1] == []


@pytest.mark.parametrize(
    ("media_type", "taken"),
    [("application/octet-stream", False), ("application/zip", False), ("text/csv", True), ("application/json", True)],
)
def test_gemini_is_shown_documents_that_it_reads(media_type, taken):
    part, losses = adapt_part("gemini", "document", media_type)
    assert (isinstance(part, Media), losses == []) == (taken, taken)


HEADS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "image/gif": b"GIF89a\x01\x00",
    "image/webp": b"RIFF\x1a\x0a\x00\x00WEBPVP8 ",
}


@pytest.mark.parametrize("real", HEADS)
@pytest.mark.parametrize("stated", [*HEADS, "image/jpg", "image/svg+xml", "IMAGE/BMP"])
def test_an_image_reaches_claude_with_the_type_of_its_data(stated, real):
    if stated == "image/jpg" and real == "image/jpeg":
        pytest.skip("the same type in another spelling")
    data = b64encode(HEADS[real] + b"\x00" * 20).decode()
    body, losses, verdict = translate_image(f"data:{stated};base64,{data}", "messages")
    assert json.loads(body)["messages"][0]["content"][0]["source"]["media_type"] == real
    assert [kind for kind, _ in losses] == ([] if stated == real else ["approximated"])
    assert not isinstance(verdict, Violation)


@pytest.mark.parametrize("target", ["messages", "responses"])
def test_an_image_in_a_tool_result_has_the_type_of_its_data(target):
    image = {"inlineData": {"mimeType": "image/jpeg", "data": PIXEL}}
    result = {"functionResponse": {"name": "f", "response": {"a": 1}, "parts": [image]}}
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [result]},
    ]
    call = Call(json.dumps({"contents": contents}).encode(), "m")
    translation = translate_request(call, "gemini", target, model=MODELS[target])
    assert b"image/jpeg" not in translation.call.body
    assert b"image/png" in translation.call.body


def test_an_image_of_a_format_that_claude_does_not_take_is_left_out_whatever_its_label():
    data = b64encode(b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic").decode()
    body, losses, verdict = translate_image(f"data:image/jpeg;base64,{data}", "messages")
    assert data not in body
    assert "dropped" in [kind for kind, _ in losses]
    assert not isinstance(verdict, Violation)


@pytest.mark.parametrize("data", ["QUJD", "!!!", ""])
def test_an_image_of_unknown_data_keeps_its_type(data):
    part, losses = adapt_part("messages", "image", "image/jpeg", Inline(data))
    assert isinstance(part, Media)
    assert (part.media_type, losses) == ("image/jpeg", [])
