"""Parts of a history as each target takes them: text, thinking, calls and refusals."""

import json

import pytest

from dragoman.core.parts import Citation, Data, Opaque, Reasoning, Refusal, Signature, Text, ToolCall
from dragoman.core.request import Message
from dragoman.core.value import Extras
from dragoman.interpreter.history import adapt_messages
from dragoman.interpreter.history_parts import wrap_free_text
from dragoman.interpreter.undo import Undo
from interpreter.workbench import adaptation_for, build_message, exactly, loss_pointers

GOOGLE, ANTHROPIC, OPENAI = (Signature(issuer, "s") for issuer in ("google", "anthropic", "openai"))


def adapt_part(dialect, model, *parts, role="assistant", **options):
    """Return the parts of one message for a target, and its losses; pointers are those of Messages."""
    adaptation = adaptation_for(dialect, model, source="messages", **options)
    (message,) = adapt_messages((build_message(role, *parts, where="/m"),), adaptation)
    return message.parts, loss_pointers(adaptation)


def text(words="hi", **more):
    return Text(text=words, where="/p", **more)


def call(arguments="{}", name="f", **more):
    return ToolCall(id="a", name=name, arguments=arguments, where="/p", **more)


@pytest.mark.parametrize(
    "message",
    [
        build_message("user", "hi"),
        build_message("assistant", "hi", ToolCall(id="a", name="f", arguments='{"a": 1}')),
        build_message("user", "a", "b"),
    ],
)
def test_a_message_that_needs_nothing_is_the_same_object(message):
    adaptation = adaptation_for("messages", "claude-opus-5")
    assert adapt_messages((message,), adaptation)[0] is message
    assert loss_pointers(adaptation) == []


@pytest.mark.parametrize(
    ("dialect", "model", "words", "kept", "losses"),
    [
        ("messages", "claude-opus-5", "", False, []),
        ("messages", "claude-opus-5", " \n", False, [("dropped", "/p")]),
        ("gemini", "gemini-3-pro", "", False, []),
        ("gemini", "gemini-3-pro", " ", False, [("dropped", "/p")]),
        ("chat", "gpt-4.1", "", True, []),
        ("chat", "gpt-4.1", " ", True, []),
        ("responses", "gpt-5.6", " ", True, []),
        ("messages", "claude-opus-5", " x ", True, []),
    ],
)
def test_empty_text_is_left_out_where_it_is_refused(dialect, model, words, kept, losses):
    assert adapt_part(dialect, model, text(words)) == ((text(words),) if kept else (), losses)


def test_empty_text_with_fields_of_its_own_is_reported_when_it_is_left_out():
    part = text("", extras=Extras("messages", {"/x": b"1"}))
    assert adapt_part("gemini", "gemini-3-pro", part) == ((), [("dropped", "/p")])


@pytest.mark.parametrize(
    ("dialect", "model", "name", "losses"),
    [
        ("chat", "gpt-4.1", "ann", []),
        ("messages", "claude-opus-5", "", [("dropped", "/m/name")]),
        ("gemini", "gemini-3-pro", "", [("dropped", "/m/name")]),
        ("responses", "gpt-5.6", "", [("dropped", "/m/name")]),
    ],
)
def test_a_participants_name_is_sent_if_the_target_has_a_field_for_it(dialect, model, name, losses):
    adaptation = adaptation_for(dialect, model)
    message = Message(role="user", parts=(text(),), name="ann", where="/m")
    assert exactly(adapt_messages((message,), adaptation)) == exactly(
        [Message(role="user", parts=(text(),), name=name, where="/m")]
    )
    assert loss_pointers(adaptation) == losses


def test_citations_of_an_earlier_answer_are_not_sent_back():
    part = text(citations=(Citation("messages", b"{}"),))
    assert adapt_part("gemini", "gemini-3-pro", part) == ((text(),), [("dropped", "/p/citations")])


def thought(*texts, **more):
    return Reasoning(texts=texts, where="/p", **more)


GONE = [("dropped", "/p")]


@pytest.mark.parametrize(
    ("dialect", "model", "part", "after", "losses"),
    [
        ("messages", "claude-opus-5", thought("hm", signature=ANTHROPIC), thought("hm", signature=ANTHROPIC), []),
        ("messages", "claude-opus-5", thought("hm", signature=GOOGLE), None, GONE),
        ("messages", "claude-opus-5", thought("hm"), None, GONE),
        (
            "messages",
            "claude-opus-5",
            thought(redacted=True, signature=ANTHROPIC),
            thought(redacted=True, signature=ANTHROPIC),
            [],
        ),
        ("gemini", "gemini-3-pro", thought("hm", signature=GOOGLE), thought("hm", signature=GOOGLE), []),
        ("gemini", "gemini-2.0-flash", thought("hm", signature=GOOGLE), None, GONE),
        ("responses", "gpt-5.6", thought("hm", signature=OPENAI), thought("hm", signature=OPENAI), []),
        ("responses", "gpt-5.6", thought("hm", signature=ANTHROPIC), None, GONE),
        ("chat", "gpt-4.1", thought("hm", signature=OPENAI), None, GONE),
        ("chat", "deepseek", thought("hm"), thought("hm"), []),
        ("chat", "deepseek", thought("hm", signature=ANTHROPIC), thought("hm"), [("dropped", "/p/signature")]),
        ("chat", "deepseek", thought("hm", signature=OPENAI), thought("hm"), [("dropped", "/p/signature")]),
        ("chat", "deepseek", thought(redacted=True, signature=ANTHROPIC), None, GONE),
        (
            "messages",
            "claude-opus-5",
            thought("hm", signature=ANTHROPIC, extras=Extras("chat", {"/x": b"1"})),
            thought("hm", signature=ANTHROPIC),
            [("dropped", "/p/x")],
        ),
    ],
)
def test_reasoning_is_sent_to_its_signer_or_to_targets_that_accept_any(dialect, model, part, after, losses):
    assert adapt_part(dialect, model, part) == ((after,) if after is not None else (), losses)


@pytest.mark.parametrize(
    ("dialect", "model", "arguments", "sent", "losses"),
    [
        ("messages", "claude-opus-5", '{"a": 1}', '{"a": 1}', []),
        ("messages", "claude-opus-5", "", "{}", []),
        ("gemini", "gemini-3-pro", " ", "{}", []),
        ("messages", "claude-opus-5", "[1]", '{"INVALID_JSON":"[1]"}', [("approximated", "/p/input")]),
        ("messages", "claude-opus-5", "null", "{}", [("approximated", "/p/input")]),
        ("gemini", "gemini-3-pro", " null\n", "{}", [("approximated", "/p/input")]),
        ("chat", "gpt-4.1", "null", "null", []),
        ("gemini", "gemini-3-pro", '{"a":', '{"INVALID_JSON":"{\\"a\\":"}', [("approximated", "/p/input")]),
        ("chat", "gpt-4.1", "", "{}", []),
        ("chat", "gpt-4.1", "[1", "[1", []),
        ("responses", "gpt-5.6", "", "{}", []),
    ],
)
def test_arguments_are_an_object_where_the_wire_has_one(dialect, model, arguments, sent, losses):
    assert adapt_part(dialect, model, call(arguments)) == ((call(sent),), losses)


@pytest.mark.parametrize(
    ("dialect", "model", "after"),
    [
        ("chat", "gpt-5.6", call("ls", form="text")),
        ("responses", "gpt-5.6", call("ls", form="text")),
        ("chat", "gpt-4.1", call('{"input":"ls"}')),
        ("messages", "claude-opus-5", call('{"input":"ls"}')),
        ("gemini", "gemini-3-pro", call('{"input":"ls"}')),
    ],
)
def test_a_free_form_call_is_a_functions_where_there_are_none(dialect, model, after):
    assert adapt_part(dialect, model, call("ls", form="text")) == ((after,), [])


def test_a_free_form_input_is_wrapped_as_json():
    assert json.loads(wrap_free_text('a "b"\n')) == {"input": 'a "b"\n'}


@pytest.mark.parametrize(
    ("dialect", "model", "part", "after", "names"),
    [
        ("chat", "gpt-4.1", call(name="find", namespace="crm"), call(name="crm__find"), {"crm__find": ("crm", "find")}),
        ("responses", "gpt-5.6", call(name="find", namespace="crm"), call(name="find", namespace="crm"), {}),
        ("chat", "gpt-4.1", call(name="a b"), call(name="a_b_c8687a08"), {"a_b_c8687a08": ("", "a b")}),
        (
            "responses",
            "gpt-5.6",
            call(name="a b", namespace="crm"),
            call(name="a_b_c8687a08", namespace="crm"),
            {"a_b_c8687a08": ("crm", "a b")},
        ),
    ],
)
def test_a_called_name_is_what_the_target_calls_the_tool(dialect, model, part, after, names):
    adaptation = adaptation_for(dialect, model)
    assert adapt_messages((build_message("assistant", part),), adaptation) == [build_message("assistant", after)]
    assert adaptation.build_undo() == Undo(names)


@pytest.mark.parametrize(
    ("dialect", "model", "words", "after"),
    [
        ("chat", "gpt-4.1", "no", (Refusal(text="no"),)),
        ("responses", "gpt-5.6", "no", (Text(text="no"),)),
        ("messages", "claude-opus-5", "no", (Text(text="no"),)),
        ("gemini", "gemini-3-pro", "no", (Text(text="no"),)),
        ("gemini", "gemini-3-pro", "", ()),
    ],
)
def test_a_refusal_is_text_where_there_are_none(dialect, model, words, after):
    source = "responses" if dialect == "chat" else "chat"
    part = Refusal(text=words, where="/p", extras=Extras(source, {"/x": b"1"}))
    result, losses = adapt_part(dialect, model, part)
    bent = [("approximated", "/p")] if any(isinstance(one, Text) for one in after) else []
    assert (result, losses) == (after, [*bent, ("dropped", "/p/x")])
    assert all(one.where == "/p" for one in result)


def test_a_block_only_its_own_dialect_understands_reaches_only_that():
    block = Opaque(dialect="responses", raw=b"{}", where="/p")
    assert adapt_part("responses", "gpt-5.6", block) == ((block,), [])
    assert adapt_part("chat", "gpt-4.1", block) == ((), [("dropped", "/p")])


def test_data_passes():
    assert adapt_part("chat", "gpt-4.1", Data(json=b"1")) == ((Data(json=b"1"),), [])


def test_parts_around_a_changed_one_stay_in_order():
    block = Opaque(dialect="responses", raw=b"{}", where="/p")
    parts = (Text(text="a"), block, Text(text="b"), call(""), Text(text="c"))
    assert adapt_part("chat", "gpt-4.1", *parts)[0] == (Text(text="a"), Text(text="b"), call("{}"), Text(text="c"))


@pytest.mark.parametrize(
    ("changes", "losses"),
    [
        ({}, []),
        ({"cache": ""}, [("dropped", "/p")]),
        ({"signature": Signature("google", "s")}, [("dropped", "/p")]),
        ({"extras": Extras("chat", {"/x": b"1"})}, [("dropped", "/p")]),
    ],
)
def test_empty_text_is_dropped_without_a_loss_only_if_nothing_depends_on_it(changes, losses):
    adaptation = adaptation_for("messages", "claude-opus-5")
    part = Text(text="", where="/p", **changes)
    (message,) = adapt_messages((build_message("user", part, "hi"),), adaptation)
    assert (message.parts, loss_pointers(adaptation)) == ((Text(text="hi"),), losses)
