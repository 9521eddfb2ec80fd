"""Signatures in envelopes: wrapped for a client, and unwrapped on the part that they sign."""

from base64 import b64decode, b64encode
from hashlib import sha256

import pytest

from dragoman.core.parts import Reasoning, Signature, Text, ToolCall
from dragoman.core.request import Message
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.signature_envelopes import ENVELOPE_MARKER as MARK_BYTES
from dragoman.interpreter.signature_envelopes import (
    UNSIGNED,
    open_envelope,
    open_envelopes,
    remove_foreign_envelopes,
    seal_signature,
)
from interpreter.workbench import build_message, exactly, loss_pointers

GOOGLE = Signature("google", "Cp.oB")
CHECK = sha256(b"google.Cp.oB").hexdigest()[:12]
MARK = MARK_BYTES.decode()
CALL = ToolCall(id="c", name="f", arguments="{}")


def sign(part, signature):
    return type(part)(
        **{name: getattr(part, name) for name in part.__struct_fields__ if name != "signature"}, signature=signature
    )


def envelope(inside, issuer="anthropic"):
    return Signature(issuer, b64encode(inside).decode())


@pytest.mark.parametrize("bearer", ["self", "call", "redacted"])
def test_an_envelope_names_issuer_bearer_and_check_and_gives_them_back(bearer):
    letter = seal_signature(GOOGLE, bearer, "anthropic")
    assert letter.issuer == "anthropic"
    assert b64decode(letter.value) == f"dragoman1.google.{bearer}.{CHECK}.Cp.oB".encode()
    assert letter.value.startswith(MARK)
    assert b64decode(MARK) == b"dragoman1"
    assert open_envelope(letter) == (GOOGLE, bearer)


@pytest.mark.parametrize(
    "damaged",
    [
        GOOGLE,
        Signature("anthropic", ""),
        envelope(f"dragoman2.google.call.{CHECK}.Cp.oB".encode()),
        envelope(f"dragoman1x.google.call.{CHECK}.Cp.oB".encode()),
        envelope(f"dragoman1.google.other.{CHECK}.Cp.oB".encode()),
        envelope(f"dragoman1.openai.call.{CHECK}.Cp.oB".encode()),
        envelope(f"dragoman1.google.call.{CHECK}.Cp.oC".encode()),
        envelope(f"dragoman1.google.call.{CHECK[:-1]}.Cp.oB".encode()),
        envelope(b"dragoman1.google.call"),
        envelope(b"dragoman1.google.call.\xff.Cp"),
        Signature("anthropic", seal_signature(GOOGLE, "call", "anthropic").value[:-1]),
        Signature("anthropic", seal_signature(GOOGLE, "call", "anthropic").value + "!"),
        Signature("anthropic", MARK),
    ],
)
def test_anything_but_a_whole_envelope_is_not_opened(damaged):
    assert open_envelope(damaged) is None


def test_a_history_without_envelopes_is_returned_as_it_is():
    messages = (build_message("user", "hi"), build_message("assistant", sign(Text(text="yes"), GOOGLE), CALL))
    assert open_envelopes(messages) is messages


def test_only_the_assistants_envelopes_are_opened():
    messages = (build_message("user", sign(Text(text="hi"), seal_signature(GOOGLE, "self", "anthropic"))),)
    assert open_envelopes(messages) is messages


def test_an_envelope_on_the_part_it_signs_is_replaced_by_what_it_holds():
    thought = Reasoning(texts=("hm",), signature=seal_signature(GOOGLE, "self", "anthropic"), where="/t")
    message = Message(role="assistant", parts=(thought, Text(text="yes")), where="/m")
    kept = Reasoning(texts=("hm",), signature=GOOGLE, where="/t")
    assert exactly(open_envelopes((message,))) == exactly(
        (Message(role="assistant", parts=(kept, Text(text="yes")), where="/m"),)
    )


def test_an_empty_reasoning_part_with_a_calls_signature_is_removed_and_the_call_is_signed():
    holder = Reasoning(texts=("",), signature=seal_signature(GOOGLE, "call", "anthropic"))
    assert open_envelopes((build_message("assistant", holder, "words", CALL, CALL),)) == (
        build_message("assistant", "words", sign(CALL, GOOGLE), CALL),
    )


def test_reasoning_with_text_stays_without_the_envelope():
    holder = Reasoning(texts=("hm",), signature=seal_signature(GOOGLE, "call", "anthropic"))
    assert open_envelopes((build_message("assistant", holder, CALL),)) == (
        build_message("assistant", Reasoning(texts=("hm",)), sign(CALL, GOOGLE)),
    )


def test_a_call_that_has_its_own_signature_keeps_it():
    own = Signature("google", "own")
    holder = Reasoning(signature=seal_signature(GOOGLE, "call", "anthropic"))
    assert open_envelopes((build_message("assistant", holder, sign(CALL, own)),)) == (
        build_message("assistant", sign(CALL, own)),
    )


def test_a_calls_envelope_on_the_call_itself_is_opened_there():
    call = sign(CALL, seal_signature(GOOGLE, "call", "openai"))
    assert open_envelopes((build_message("assistant", call),)) == (build_message("assistant", sign(CALL, GOOGLE)),)


def test_a_redacted_thought_is_redacted_again():
    thought = Reasoning(texts=("",), signature=seal_signature(GOOGLE, "redacted", "openai"), where="/t")
    assert exactly(open_envelopes((build_message("assistant", thought),))) == exactly(
        (build_message("assistant", Reasoning(redacted=True, signature=GOOGLE, where="/t")),)
    )


def test_an_envelope_in_a_message_of_its_own_signs_the_call_in_the_next():
    holder = Reasoning(signature=seal_signature(GOOGLE, "call", "openai"))
    messages = (build_message("user", "hi"), build_message("assistant", holder), build_message("assistant", CALL))
    assert open_envelopes(messages) == (build_message("user", "hi"), build_message("assistant", sign(CALL, GOOGLE)))


def test_an_envelope_does_not_sign_a_call_after_a_user_turn():
    holder = Reasoning(signature=seal_signature(GOOGLE, "call", "openai"))
    messages = (build_message("assistant", holder), build_message("user", "hi"), build_message("assistant", CALL))
    assert open_envelopes(messages) == (build_message("user", "hi"), build_message("assistant", CALL))


def test_a_damaged_envelope_stays_where_it_is_and_signs_nothing():
    thought = Reasoning(texts=("hm",), signature=Signature("anthropic", MARK + "????"))
    messages = (build_message("assistant", thought, CALL),)
    assert open_envelopes(messages) == messages


def test_unsigned_reasoning_is_restored_unsigned():
    thought = Reasoning(texts=("hm",), signature=seal_signature(Signature("google", UNSIGNED), "self", "anthropic"))
    assert open_envelope(thought.signature) == (Signature("google", ""), "self")
    assert open_envelopes((build_message("assistant", thought),)) == (
        build_message("assistant", Reasoning(texts=("hm",))),
    )


def keep_native(*parts):
    ledger = Ledger({"part.signature": ("/signature",)})
    return remove_foreign_envelopes(
        (build_message("user", "hi"), build_message("assistant", *parts)), "anthropic", ledger
    ), loss_pointers(ledger)


OWN = Signature("anthropic", "own")


@pytest.mark.parametrize(
    ("part", "after", "losses"),
    [
        (Reasoning(texts=("hm",), signature=OWN), Reasoning(texts=("hm",), signature=OWN), []),
        (Reasoning(texts=("hm",)), Reasoning(texts=("hm",)), []),
        (
            Reasoning(texts=("hm",), signature=seal_signature(OWN, "self", "anthropic")),
            Reasoning(texts=("hm",), signature=OWN),
            [],
        ),
        (Reasoning(signature=seal_signature(OWN, "call", "anthropic"), where="/p"), None, [("dropped", "/p")]),
        (Reasoning(signature=seal_signature(GOOGLE, "self", "anthropic"), where="/p"), None, [("dropped", "/p")]),
        (
            Text(text="hi", signature=seal_signature(GOOGLE, "self", "anthropic"), where="/p"),
            Text(text="hi"),
            [("dropped", "/p/signature")],
        ),
    ],
)
def test_in_the_same_dialect_envelopes_are_removed_unless_they_are_the_vendors_own(part, after, losses):
    result = (build_message("assistant", after),) if after is not None else ()
    assert keep_native(part) == ((build_message("user", "hi"), *result), losses)
