"""Images, documents, audio and video in the form that each target takes."""

from base64 import b64encode

import pytest

from dragoman.core.parts import Inline, Link, Media, Plain, Stored, Text
from dragoman.core.value import Extras
from dragoman.interpreter.history import adapt_messages
from interpreter.workbench import adaptation_for, build_message, exactly, loss_pointers

TARGETS = {
    "chat": "gpt-4.1",
    "responses": "gpt-5.6",
    "messages": "claude-opus-5",
    "gemini": "gemini-3-pro",
    "gemini 2.5": "gemini-2.5-pro",
}


def adapt_part(target, *parts, role="user", source="messages", **changes):
    adaptation = adaptation_for(target.partition(" ")[0], TARGETS[target], source=source, **changes)
    (message,) = adapt_messages((build_message(role, *parts, where="/m"),), adaptation)
    return message.parts, loss_pointers(adaptation)


def media(kind, media_type, source, name=""):
    return Media(kind=kind, media_type=media_type, source=source, name=name, where="/p")


PDF = media("document", "application/pdf", Inline("QUE="))
NAMED = media("document", "application/pdf", Inline("QUE="), "a.pdf")
LINKED = media("image", "", Link("https://x/a.png?q=1"))
TYPE, NAME = "/p/source/media_type", "/p/title"


@pytest.mark.parametrize(
    ("target", "part", "after", "losses"),
    [
        ("chat", PDF, media("document", "application/pdf", Inline("QUE="), "document.pdf"), []),
        ("responses", PDF, media("document", "application/pdf", Inline("QUE="), "document.pdf"), []),
        (
            "chat",
            media("document", "text/plain", Inline("QUE=")),
            media("document", "text/plain", Inline("QUE="), "document.txt"),
            [],
        ),
        (
            "chat",
            media("document", "text/csv", Inline("QUE=")),
            media("document", "text/csv", Inline("QUE="), "document"),
            [],
        ),
        ("chat", NAMED, NAMED, []),
        ("messages", NAMED, NAMED, []),
        ("gemini", NAMED, PDF, [("dropped", NAME)]),
        ("messages", PDF, PDF, []),
        ("gemini", LINKED, media("image", "image/png", Link("https://x/a.png?q=1")), []),
        ("chat", LINKED, LINKED, []),
        (
            "chat",
            media("image", "image/png", Link("u"), "n"),
            media("image", "", Link("u")),
            [("dropped", TYPE), ("dropped", NAME)],
        ),
        ("gemini", media("image", "image/webp", Link("u")), media("image", "image/webp", Link("u")), []),
        (
            "gemini",
            media("image", "image/png", Inline("QUE="), "n"),
            media("image", "image/png", Inline("QUE=")),
            [("dropped", NAME)],
        ),
        ("responses", media("document", "", Link("u")), media("document", "", Link("u")), []),
        (
            "messages",
            media("document", "", Stored("anthropic", "f")),
            media("document", "", Stored("anthropic", "f")),
            [],
        ),
        ("chat", media("document", "", Stored("openai", "f")), media("document", "", Stored("openai", "f")), []),
    ],
)
def test_media_has_the_media_type_that_the_target_uses(target, part, after, losses):
    result, reported_losses = adapt_part(target, part)
    assert exactly(result) == exactly((after,))
    assert reported_losses == losses


@pytest.mark.parametrize(
    ("target", "part", "why"),
    [
        ("messages", media("audio", "audio/wav", Inline("QUE=")), "the target takes no audio"),
        ("chat", media("video", "video/mp4", Inline("QUE=")), "the target takes no video"),
        ("chat", media("document", "", Link("u")), "the target does not fetch document links"),
        ("responses", media("audio", "", Link("u")), "the target takes no audio"),
        ("responses", media("audio", "audio/wav", Inline("QUE=")), "the target takes no audio"),
        ("messages", media("image", "image/png", Link("gs://b/a.png")), "the target does not fetch gs: links"),
        ("responses", media("image", "", Link("gs://b/a.png")), "the target does not fetch gs: links"),
        ("chat", media("image", "", Link("GS://b/a.png")), "the target does not fetch gs: links"),
        ("gemini", media("image", "image/png", Link("file:///a.png")), "the target does not fetch file: links"),
        ("gemini", media("image", "", Link("data:nothing")), "the target does not fetch data: links"),
        ("chat", media("image", "", Stored("openai", "f")), "the target takes no image by file id"),
        (
            "gemini",
            media("image", "", Stored("openai", "f")),
            "the target cannot read files stored at openai",
        ),
        (
            "messages",
            media("document", "application/zip", Inline("QUE=")),
            "the target takes no document of this type",
        ),
    ],
)
def test_unsupported_media_is_replaced_by_a_placeholder_and_is_a_loss(target, part, why):
    result = (Text(text=f"[{part.kind} left out: {why}]"),)
    assert adapt_part(target, part) == (result, [("dropped", "/p")])
    assert adapt_part(target, part, role="assistant", assistant_media=True) == ((), [("dropped", "/p")])


@pytest.mark.parametrize(("target", "kept"), [("gemini", True), ("messages", False), ("chat", False)])
def test_media_in_an_assistant_message_is_sent_only_to_gemini(target, kept):
    part = media("image", "image/png", Inline("QUE="))
    assert adapt_part(target, part, role="assistant") == (((part,), []) if kept else ((), [("dropped", "/p")]))


CSV = media("document", "text/csv", Inline(b64encode("a;ö".encode()).decode()), "t.csv")


def test_a_text_document_is_plain_text_to_claude():
    after = media("document", "text/plain", Plain("a;ö"), "t.csv")
    assert adapt_part("messages", CSV) == ((after,), [("approximated", TYPE)])
    plain = media("document", "text/plain", Plain("x"))
    assert adapt_part("messages", plain) == ((plain,), [])
    inline = media("document", "text/plain", Inline(b64encode(b"x").decode()))
    assert adapt_part("messages", inline) == ((plain,), [])


@pytest.mark.parametrize("data", ["!", b64encode(b"\xff").decode()])
def test_a_text_document_that_is_no_text_is_refused_by_claude(data):
    part = media("document", "text/csv", Inline(data))
    words = "[document left out: the target takes no document of this type]"
    assert adapt_part("messages", part) == ((Text(text=words),), [("dropped", "/p")])


@pytest.mark.parametrize(("name", "words"), [("", "x"), ("a.txt", "a.txt\n\nx")])
@pytest.mark.parametrize("target", ["chat", "responses", "gemini"])
def test_a_document_given_as_text_is_text_where_there_are_none(target, name, words):
    part = Media(
        kind="document",
        media_type="text/plain",
        source=Plain("x"),
        name=name,
        where="/p",
        extras=Extras("messages", {"/context": b'"c"'}),
    )
    result, losses = adapt_part(target, part)
    assert exactly(result) == exactly((Text(text=words, where="/p"),))
    assert losses == [("approximated", "/p"), ("dropped", "/p/context")]


@pytest.mark.parametrize("target", ["chat", "responses", "gemini"])
def test_the_context_of_a_document_is_a_text_before_it_where_documents_have_none(target):
    part = Media(kind="document", media_type="application/pdf", source=Inline("JVBERi0="), context="a note", where="/p")
    result, losses = adapt_part(target, part)
    assert [type(one) for one in result] == [Text, Media]
    assert result[0].text == "a note"
    assert losses[0] == ("approximated", "/p/context")


def test_the_context_of_a_document_stays_with_it_at_claude():
    part = Media(kind="document", media_type="application/pdf", source=Inline("JVBERi0="), context="a note")
    assert adapt_part("messages", part) == ((part,), [])


def test_an_inline_text_document_stays_inline_where_any_type_is_taken():
    assert adapt_part("gemini", CSV)[0] == (media("document", "text/csv", CSV.source),)


@pytest.mark.parametrize(
    ("kind", "url", "media_type", "guessed"),
    [
        ("image", "u/a.PNG", "image/png", False),
        ("image", "u/a.jpg", "image/jpeg", False),
        ("image", "u/a.png#page=1", "image/png", False),
        ("image", "u/a.png#a?b.pdf", "image/png", False),
        ("image", "u/a.png?x=y#z.pdf", "image/png", False),
        ("image", "u/a.jpeg", "image/jpeg", False),
        ("image", "u/a.webp", "image/webp", False),
        ("document", "u/a.pdf?x=.png", "application/pdf", False),
        ("audio", "u/a.mp3", "audio/mpeg", False),
        ("audio", "u/a.wav", "audio/wav", False),
        ("video", "u/a.mp4", "video/mp4", False),
        ("image", "u", "image/jpeg", True),
        ("document", "u", "application/pdf", True),
        ("audio", "u", "audio/mpeg", True),
        ("video", "u", "video/mp4", True),
    ],
)
def test_a_links_media_type_is_named_by_its_ending_or_is_the_commonest(kind, url, media_type, guessed):
    losses = [("approximated", "/p")] if guessed else []
    assert adapt_part("gemini", media(kind, "", Link(url))) == ((media(kind, media_type, Link(url)),), losses)


def test_fields_of_media_only_the_source_understands_are_dropped():
    part = Media(
        kind="image",
        media_type="image/png",
        source=Inline("QUE="),
        where="/p",
        extras=Extras("chat", {"/detail": b'"low"'}),
    )
    assert adapt_part("gemini", part) == ((media("image", "image/png", Inline("QUE=")),), [("dropped", "/p/detail")])


@pytest.mark.parametrize(
    ("target", "kind", "media_type", "taken"),
    [
        ("chat", "image", "image/png", True),
        ("chat", "image", "image/PNG", True),
        ("chat", "image", "image/bmp", False),
        ("gemini", "image", "image/heic", True),
        ("gemini", "image", "image/gif", False),
        ("gemini", "audio", "audio/flac", True),
        ("messages", "document", "application/pdf", True),
        ("messages", "document", "application/zip", False),
        ("gemini", "video", "video/webm", True),
    ],
)
def test_inline_media_is_left_out_where_its_type_is_not_taken(target, kind, media_type, taken):
    (after,), losses = adapt_part(target, media(kind, media_type, Inline("QUE=")))
    assert isinstance(after, Media) is taken
    if not taken:
        assert after == Text(text=f"[{kind} left out: the target takes no {kind} of this type]")
        assert losses == [("dropped", "/p")]


@pytest.mark.parametrize(("media_type", "taken"), [("audio/wav", True), ("audio/flac", False), ("", True)])
def test_an_inline_sound_is_left_out_where_its_type_is_not_taken(media_type, taken):
    sounds = {"media": frozenset({"audio"}), "audio_types": frozenset({"audio/wav"})}
    (after,), _ = adapt_part("chat", media("audio", media_type, Inline("QUE=")), **sounds)
    assert isinstance(after, Media) is taken


def test_the_type_of_a_link_is_read_from_the_end_of_its_path():
    (after,), _ = adapt_part("gemini", media("image", "", Link("https://x.y/a.b.PNG?q=1?r=.gif")))
    assert after.media_type == "image/png"


@pytest.mark.parametrize(
    ("ending", "media_type"),
    [
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("webp", "image/webp"),
        ("heic", "image/heic"),
        ("pdf", "application/pdf"),
        ("txt", "text/plain"),
        ("md", "text/markdown"),
        ("csv", "text/csv"),
        ("html", "text/html"),
        ("json", "application/json"),
        ("mp3", "audio/mpeg"),
        ("wav", "audio/wav"),
        ("mp4", "video/mp4"),
    ],
)
def test_a_link_without_a_media_type_gets_it_from_its_extension(ending, media_type):
    main = media_type.partition("/")[0]
    kind = main if main in ("image", "audio", "video") else "document"
    (after,), losses = adapt_part("gemini", media(kind, "", Link(f"https://x.y/z/a.b.{ending.upper()}?q=.x")))
    assert (after.media_type, losses) == (media_type, [])


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_a_file_gets_its_media_type_from_its_content(kind):
    link = Link(f"data:{kind}/x;base64,QUE=")
    (after,), _ = adapt_part("gemini", media("document", "", link), image_types=frozenset())
    assert (after.kind, after.media_type, after.source) == (kind, f"{kind}/x", Inline("QUE="))
