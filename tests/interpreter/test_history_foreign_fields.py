"""What only its own dialect or vendor understands: fields, cache marks, signatures."""

import pytest

from dragoman.core.parts import Link, Media, Signature, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.value import Extras
from dragoman.interpreter.history import adapt_messages
from interpreter.workbench import adaptation_for, build_message, exactly, loss_pointers

GOOGLE, ANTHROPIC, OPENAI = (Signature(issuer, "s") for issuer in ("google", "anthropic", "openai"))


def adapt_part(dialect, model, *parts):
    """Return the parts of one message for a target, and its losses; pointers are those of Messages."""
    adaptation = adaptation_for(dialect, model, source="messages")
    (message,) = adapt_messages((build_message("assistant", *parts, where="/m"),), adaptation)
    return message.parts, loss_pointers(adaptation)


def text(words="hi", **more):
    return Text(text=words, where="/p", **more)


def call(**more):
    return ToolCall(id="a", name="f", arguments="{}", where="/p", **more)


def test_fields_only_the_source_understands_are_dropped_from_part_and_message():
    adaptation = adaptation_for("gemini", "gemini-3-pro")
    part = text(extras=Extras("chat", {"/x": b"1", "/y/z": b"2"}))
    message = Message(role="user", parts=(part,), extras=Extras("chat", {"/w": b"3"}), where="/m")
    assert exactly(adapt_messages((message,), adaptation)) == exactly(
        [Message(role="user", parts=(text(),), where="/m")]
    )
    assert loss_pointers(adaptation) == [("dropped", "/m/w"), ("dropped", "/p/x"), ("dropped", "/p/y/z")]


def test_fields_of_a_part_in_the_targets_own_format_stay():
    adaptation = adaptation_for("gemini", "gemini-3-pro")
    part = text(extras=Extras("gemini", {"/partMetadata": b"{}"}))
    assert exactly(adapt_messages((build_message("user", part),), adaptation)) == exactly([build_message("user", part)])
    assert loss_pointers(adaptation) == []


def test_a_message_whose_only_burden_is_its_own_extras_loses_them():
    adaptation = adaptation_for("gemini", "gemini-3-pro")
    message = Message(role="user", parts=(Text(text="hi"),), extras=Extras("chat", {"/w": b"3"}), where="/m")
    assert adapt_messages((message,), adaptation) == [build_message("user", "hi")]
    assert loss_pointers(adaptation) == [("dropped", "/m/w")]


@pytest.mark.parametrize(
    ("mark", "lifetime"), [(b'{"type":"ephemeral"}', ""), (b'{"type":"ephemeral","ttl":"1h"}', "1h")]
)
def test_a_cache_marker_in_anthropics_format_is_accepted_from_chat_clients(mark, lifetime):
    adaptation = adaptation_for("messages", "claude-opus-5")
    part = text(extras=Extras("chat", {"/cache_control": mark, "/x": b"1"}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", text(cache=lifetime))]
    assert loss_pointers(adaptation) == [("dropped", "/p/x")]


@pytest.mark.parametrize(
    ("model", "mark", "cache"),
    [
        ("claude-opus-5", b'{"type":"eternal"}', None),
        ("claude-opus-5", b'{"type":"ephemeral","scope":"x"}', None),
        ("claude-opus-5", b'{"type":"ephemeral","ttl":"1h","scope":"x"}', None),
        ("claude-opus-5", b'{"type":"ephemeral"}', "5m"),
    ],
)
def test_any_other_cache_mark_is_dropped(model, mark, cache):
    adaptation = adaptation_for("messages", model)
    part = text(cache=cache, extras=Extras("chat", {"/cache_control": mark}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", text(cache=cache))]
    assert loss_pointers(adaptation) == [("dropped", "/p/cache_control")]


def test_a_cache_marker_in_anthropics_format_is_dropped_for_targets_without_markers():
    adaptation = adaptation_for("gemini", "gemini-3-pro")
    part = text(extras=Extras("chat", {"/cache_control": b'{"type":"ephemeral"}'}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", text())]
    assert loss_pointers(adaptation) == [("dropped", "/p/cache_control")]


@pytest.mark.parametrize(
    ("dialect", "model", "signature", "kept"),
    [
        ("gemini", "gemini-3-pro", GOOGLE, True),
        ("gemini", "gemini-3-pro", ANTHROPIC, False),
        ("chat", "gemini-3-pro", GOOGLE, False),
        ("messages", "claude-opus-5", ANTHROPIC, False),
        ("messages", "claude-opus-5", GOOGLE, False),
    ],
)
def test_a_signature_on_text_reaches_only_its_issuer_in_its_own_dialect(dialect, model, signature, kept):
    losses = [] if kept else [("dropped", "/p/signature")]
    assert adapt_part(dialect, model, text(signature=signature)) == (
        (text(signature=signature if kept else None),),
        losses,
    )


@pytest.mark.parametrize(
    ("dialect", "model", "signature", "kept"),
    [
        ("gemini", "gemini-3-pro", GOOGLE, True),
        ("gemini", "gemini-2.5-pro", GOOGLE, True),
        ("chat", "gemini-3-pro", GOOGLE, True),
        ("chat", "gpt-4.1", GOOGLE, False),
        ("chat", "gpt-4.1", OPENAI, False),
        ("gemini", "gemini-3-pro", ANTHROPIC, False),
        ("messages", "claude-opus-5", ANTHROPIC, False),
    ],
)
@pytest.mark.parametrize("burdened", [False, True])
def test_a_signature_on_a_call_reaches_only_its_issuer(dialect, model, signature, kept, burdened):
    source = "chat" if dialect == "messages" else "messages"
    burden = {"extras": Extras(source, {"/x": b"1"})} if burdened else {}
    losses = [] if kept else [("dropped", "/p/signature")]
    losses += [("dropped", "/p/x")] if burden else []
    part = call(signature=signature, **burden)
    assert adapt_part(dialect, model, part) == ((call(signature=signature if kept else None),), losses)


def picture(kind="image", **more):
    return Media(kind=kind, media_type="", source=Link("https://a.example/b"), where="/p", **more)


def test_a_field_of_an_image_that_dialects_share_is_sent_under_its_name_there():
    adaptation = adaptation_for("responses", "gpt-5.6")
    part = picture(extras=Extras("chat", {"/image_url/detail": b'"low"', "/x": b"1"}))
    after = picture(extras=Extras("responses", {"/detail": b'"low"'}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", after)]
    assert loss_pointers(adaptation) == [("dropped", "/p/x")]


def test_fields_shared_only_for_images_are_not_sent_for_files():
    adaptation = adaptation_for("chat", "gpt-5.6", source="responses", link_kinds=frozenset({"document"}))
    part = picture("document", extras=Extras("responses", {"/detail": b'"low"'}))
    assert adapt_messages((build_message("user", part),), adaptation) == [build_message("user", picture("document"))]
    assert loss_pointers(adaptation) == [("dropped", "/p/detail")]
